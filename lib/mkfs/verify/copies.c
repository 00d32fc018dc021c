// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares all copies of everything, because normal reads stop at the first good copy. */
#include "lib/mkfs/verify/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/volume/volume.h"

/* The range that is compared. */
struct piece {
	const struct mkfs_group *group;
	uint64_t logical;
	size_t len;
};

/* it cannot be read, which was reported */
static int read_copy(struct compare *c, const struct piece *p, unsigned number, uint8_t *to, struct btrkit_error *err)
{
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	struct copy at;
	char line[300];
	int ret;

	ret = volume_map(c->fs->volume, p->logical, p->len, number, &at, &why);
	if (!ret)
		ret = btrkit_io_read(at.io, at.physical, to, p->len, &why);
	if (ret == -ENOMEM)
		return err_nomem(err);
	if (ret)
		compare_differs(c, SOURCE_NONE, "copy %u: address %" PRIu64 " cannot be read: %s", number + 1,
				p->logical, ret < 0 ? btrkit_error_format(&why, line, sizeof(line)) : "no such copy");
	return ret ? 1 : 0;
}

/*
 * Returns how much of the range is contiguous in all copies. An address that is not mapped is reported when it is read.
 */
static size_t in_one_piece(const struct compare *c, const struct piece *p)
{
	size_t len = p->len;
	struct copy at;

	for (unsigned i = 0; i < raid_copies(&p->group->shape); i++)
		if (!volume_map(c->fs->volume, p->logical, p->len, i, &at, NULL) && at.length < len)
			len = (size_t)at.length;
	return len;
}

/* Verifies checksums of tree blocks, because blocks that are not needed to find files are not read elsewhere. */
static void check_blocks(struct compare *c, const struct piece *p, const struct mkfs_plan *plan)
{
	const uint32_t nodesize = plan->opts.nodesize;
	uint8_t sum[CSUM_SIZE_MAX];

	for (size_t at = 0; at < p->len; at += nodesize) {
		const uint8_t *block = c->found + at;

		plan->rules.csum->compute(block + CSUM_SIZE_MAX, nodesize - CSUM_SIZE_MAX, sum);
		if (memcmp(sum, block, plan->rules.csum->size) != 0)
			compare_differs(c, SOURCE_NONE, "tree block %" PRIu64 ": checksum mismatch", p->logical + at);
	}
}

static int compare_piece(struct compare *c, const struct piece *p, const struct mkfs_plan *plan,
			 struct btrkit_error *err)
{
	int ret;

	ret = read_copy(c, p, 0, c->found, err);
	if (ret)
		return ret < 0 ? ret : 0;
	if (p->group->role != MKFS_DATA)
		check_blocks(c, p, plan);
	for (unsigned i = 1; i < raid_copies(&p->group->shape); i++) {
		ret = read_copy(c, p, i, c->wanted, err);
		if (ret < 0)
			return ret;
		if (!ret && memcmp(c->found, c->wanted, p->len) != 0)
			compare_differs(c, SOURCE_NONE, "copy %u: byte at address %" PRIu64 " differs from copy 1",
					i + 1, p->logical + compare_first_difference(c->found, c->wanted, p->len));
	}
	return 0;
}

int compare_copies(struct compare *c, const struct mkfs_plan *plan, const struct mkfs_group *g, uint64_t logical,
		   uint64_t len, struct btrkit_error *err)
{
	struct piece p = { g, logical, 0 };
	int ret = 0;

	for (const uint64_t end = logical + len; !ret && p.logical < end; p.logical += p.len) {
		p.len = end - p.logical < DIGEST_UNIT ? (size_t)(end - p.logical) : DIGEST_UNIT;
		p.len = in_one_piece(c, &p);
		ret = compare_piece(c, &p, plan, err);
	}
	return ret;
}
