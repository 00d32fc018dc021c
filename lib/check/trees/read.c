// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads every copy of tree blocks, adjacent blocks in one request. */
#include <stdlib.h>
#include <string.h>

#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/read.h"
#include "lib/io/buffer.h"
#include "lib/volume/volume.h"

struct node check_node(const struct check *c, const uint8_t *block)
{
	struct node n = { .data = (uint8_t *)(uintptr_t)block };

	node_describe(&n, c->items.nodesize);
	return n;
}

/* Reports a bad copy of a block that has a good one. */
static void tell_copy(struct check *c, const struct node_ref *ref, const struct copy *copy,
		      const struct btrkit_error *why)
{
	struct btrkit_error what = *why;

	err_at_device(&what, copy->devid, copy->physical);
	err_at_logical(&what, ref->bytenr);
	err_at_tree(&what, ref->owner);
	check_tell(c, CHECK_BLOCK_COPY, &what);
}

/* Verifies a copy. @good: NULL, or a good copy; an equal one need not be verified. @return 0, or why it is bad */
static int judge_copy(const struct check *c, const struct node_ref *ref, const struct copy *copy, const uint8_t *good,
		      uint8_t *buf, struct btrkit_error *err)
{
	int ret = btrkit_io_read(copy->io, copy->physical, buf, c->items.nodesize, err);

	if (ret)
		return ret;
	if (good && !memcmp(good, buf, c->items.nodesize))
		return 0;
	return node_verify(&c->fs->judge, ref, buf, err);
}

/* Since 6.8, Linux requires the WRITTEN flag, and it cannot find references of another backref revision. */
static void judge_flags(struct check *c, const struct node_ref *ref, const uint8_t *block)
{
	const struct check_place at = { .tree = ref->owner, .logical = ref->bytenr, .field = "flags" };
	const uint64_t flags = le64_get(((const struct disk_header *)block)->flags);

	if (!(flags & HEADER_FLAG_WRITTEN))
		check_say(c, CHECK_BLOCK_FLAGS, &at, "tree block does not have the WRITTEN flag");
	else if (flags >> HEADER_BACKREF_SHIFT != MIXED_BACKREF_REV >> HEADER_BACKREF_SHIFT)
		check_say(c, CHECK_BLOCK_FLAGS, &at, "tree block has unsupported backref revision %u",
			  (unsigned)(flags >> HEADER_BACKREF_SHIFT));
}

bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf)
{
	struct btrkit_error why[CHECK_COPIES_MAX], err = BTRKIT_ERROR_INIT;
	struct copy copies[CHECK_COPIES_MAX];
	bool bad[CHECK_COPIES_MAX] = { false }, good = false;
	uint8_t *other = NULL;
	unsigned n;

	for (n = 0; n < CHECK_COPIES_MAX; n++) {
		if (volume_map(c->fs->volume, ref->bytenr, c->items.nodesize, n, &copies[n], NULL))
			break;
		if (!copies[n].io || copies[n].length < c->items.nodesize)
			continue;
		if (good && !other)
			other = io_buffer(c->items.nodesize);
		if (good && !other) {
			check_fail(c, err_nomem(&err), &err);
			break;
		}
		why[n] = (struct btrkit_error)BTRKIT_ERROR_INIT;
		bad[n] = judge_copy(c, ref, &copies[n], good ? buf : NULL, good ? other : buf, &why[n]);
		good |= !bad[n];
	}
	free(other);
	/* No copy is good; it may be possible to rebuild the block from parity. */
	if (!good) {
		const int ret = node_read_alone(c->fs, ref, buf, &err);

		if (ret) {
			err_at_logical(&err, ref->bytenr);
			check_tell_failure(c, ref->owner, ret, &err);
			return false;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (bad[i])
			tell_copy(c, ref, &copies[i], &why[i]);
	judge_flags(c, ref, buf);
	return true;
}

void check_run_release(struct check_run *run)
{
	free(run->blocks);
	free(run->others);
	run->blocks = run->others = NULL;
}

int check_run_init(struct check *c, struct check_run *run)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	run->max = CHECK_RUN_BYTES / c->items.nodesize;
	run->blocks = io_buffer(CHECK_RUN_BYTES);
	run->others = io_buffer(CHECK_RUN_BYTES);
	if (run->blocks && run->others)
		return 0;
	check_run_release(run);
	return check_fail(c, err_nomem(&err), &err);
}

/* The number of blocks whose first copies are contiguous on disk; others are in another strip or chunk. */
static size_t in_one_piece(const struct check *c, const struct node_ref *refs, size_t n)
{
	const uint64_t size = c->items.nodesize;
	struct copy copy;

	while (volume_map(c->fs->volume, refs->bytenr, n * size, 0, &copy, NULL)) {
		if (n == 1)
			return 0;
		n = 1;
	}
	return (size_t)(copy.length / size);
}

/* Reads the first copy that can be read. @return its number, or CHECK_COPIES_MAX */
static unsigned read_first(const struct check *c, uint64_t logical, uint8_t *buf, size_t len)
{
	struct copy copy;

	for (unsigned m = 0; m < CHECK_COPIES_MAX && !volume_map(c->fs->volume, logical, len, m, &copy, NULL); m++)
		if (copy.io && copy.length == len)
			return btrkit_io_read(copy.io, copy.physical, buf, len, NULL) ? CHECK_COPIES_MAX : m;
	return CHECK_COPIES_MAX;
}

/* Compares the other copies with the first, and marks blocks that differ as bad. @return whether all could be read */
static bool compare_others(const struct check *c, struct check_run *run, uint64_t logical, size_t n, unsigned first,
			   bool *good)
{
	const size_t size = c->items.nodesize;
	struct copy copy;

	for (unsigned m = first + 1; m < CHECK_COPIES_MAX; m++) {
		if (volume_map(c->fs->volume, logical, n * size, m, &copy, NULL))
			break;
		if (!copy.io)
			continue;
		if (copy.length < n * size || btrkit_io_read(copy.io, copy.physical, run->others, n * size, NULL))
			return false;
		for (size_t i = 0; i < n; i++)
			good[i] = good[i] && !memcmp(run->blocks + i * size, run->others + i * size, size);
	}
	return true;
}

/* Reads all copies at once. If all are good and equal, there is nothing to report. */
static bool read_together(struct check *c, struct check_run *run, const struct node_ref *refs, size_t n, bool *good)
{
	const size_t size = c->items.nodesize;
	const unsigned first = read_first(c, refs->bytenr, run->blocks, n * size);

	if (first == CHECK_COPIES_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		good[i] = !node_verify(&c->fs->judge, &refs[i], run->blocks + i * size, NULL);
	return compare_others(c, run, refs->bytenr, n, first, good);
}

size_t check_read_run(struct check *c, struct check_run *run, const struct node_ref *refs, size_t n, bool *good)
{
	const size_t size = c->items.nodesize, most = in_one_piece(c, refs, n < run->max ? n : run->max);
	const bool together = most && read_together(c, run, refs, most, good);

	n = most ? most : 1;
	for (size_t i = 0; i < n; i++) {
		uint8_t *block = run->blocks + i * size;

		/* Read the block alone to find out which copy is bad and why. */
		if (!together || !good[i])
			good[i] = check_read_block(c, &refs[i], block);
		else
			judge_flags(c, &refs[i], block);
	}
	return n;
}

void check_request(struct check *c, uint64_t logical, size_t n)
{
	const uint64_t len = (uint64_t)n * c->items.nodesize;
	struct copy copy;

	for (unsigned m = 0; m < CHECK_COPIES_MAX; m++) {
		for (uint64_t pos = 0; pos < len; pos += copy.length) {
			if (volume_map(c->fs->volume, logical + pos, len - pos, m, &copy, NULL))
				return;
			if (copy.io && copy.io->ops->prefetch)
				copy.io->ops->prefetch(copy.io, copy.physical, copy.length);
		}
	}
}
