// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads every copy of tree blocks, and reports those that are bad. */
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/read.h"
#include "lib/sweep/copies.h"

struct node check_node(const struct check *c, const uint8_t *block)
{
	struct node n = { .data = (uint8_t *)(uintptr_t)block };

	node_describe(&n, c->items.nodesize);
	return n;
}

static void report_copy(void *ctx, const struct node_ref *ref, const struct copy *copy, const struct btrkit_error *why)
{
	struct btrkit_error what = *why;

	/* What it has instead of the block, and how that differs, is chance. */
	if (volume_is_stale(((const struct check *)ctx)->fs->volume, copy->devid))
		what.cause = BTRKIT_CAUSE_DEVICE_STALE;
	err_at_device(&what, copy->devid, copy->physical);
	err_at_logical(&what, ref->bytenr);
	err_at_tree(&what, ref->owner);
	check_report(ctx, CHECK_BLOCK_COPY, &what);
}

static void report_unreadable(void *ctx, const struct node_ref *ref, int ret, const struct btrkit_error *why)
{
	check_report_unreadable(ctx, ref->owner, ret, why);
}

static struct sweep_copies copies_of(struct check *c)
{
	return (struct sweep_copies){ c->fs, report_copy, report_unreadable, c };
}

/* Since 6.8, Linux requires the WRITTEN flag, and it cannot find references of another backref revision. */
static void check_flags(struct check *c, const struct node_ref *ref, const uint8_t *block)
{
	const struct check_location at = { .tree = ref->owner, .logical = ref->bytenr, .field = "flags" };
	const uint64_t flags = le64_get(((const struct disk_header *)block)->flags);

	if (!(flags & HEADER_FLAG_WRITTEN))
		check_report_at(c, CHECK_BLOCK_FLAGS, &at, "tree block does not have the WRITTEN flag");
	else if (flags >> HEADER_BACKREF_SHIFT != MIXED_BACKREF_REV >> HEADER_BACKREF_SHIFT)
		check_report_at(c, CHECK_BLOCK_FLAGS, &at, "tree block has unsupported backref revision %u",
				(unsigned)(flags >> HEADER_BACKREF_SHIFT));
}

bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf)
{
	const struct sweep_copies s = copies_of(c);

	if (!sweep_copies_block(&s, ref, buf))
		return false;
	check_flags(c, ref, buf);
	return true;
}

size_t check_read_run(struct check *c, struct sweep_run *run, const struct node_ref *refs, size_t n, bool *good)
{
	const struct sweep_copies s = copies_of(c);

	n = sweep_copies_run(&s, run, refs, n, good);
	for (size_t i = 0; i < n; i++)
		if (good[i])
			check_flags(c, &refs[i], run->blocks + i * c->items.nodesize);
	return n;
}
