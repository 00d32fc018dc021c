// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/options.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/disk.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/mkfs/layout.h"

#define BLOCKSIZE_MIN 4096u
#define BLOCKSIZE_MAX 65536u
#define NODESIZE_DEFAULT 16384u
/* Above the page size of the first kernels; a flag says so. */
#define SMALL_NODESIZE 4096u

#define FLAGS_KNOWN (BTRKIT_MKFS_REPRODUCIBLE | BTRKIT_MKFS_DISCARD)

/* What a new and empty filesystem can be made with. */
#define INCOMPAT_WRITTEN                                                                                   \
	(INCOMPAT_MIXED_BACKREF | INCOMPAT_MIXED_GROUPS | INCOMPAT_BIG_METADATA | INCOMPAT_EXTENDED_IREF | \
	 INCOMPAT_SKINNY_METADATA | INCOMPAT_NO_HOLES)
#define COMPAT_RO_WRITTEN (COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID | COMPAT_RO_BLOCK_GROUP_TREE)

static bool is_block_size(uint32_t v)
{
	return v >= BLOCKSIZE_MIN && v <= BLOCKSIZE_MAX && !(v & (v - 1));
}

static int judge_sizes(struct btrkit_mkfs_options *o, struct btrkit_error *err)
{
	if (!o->sectorsize)
		o->sectorsize = BLOCKSIZE_MIN;
	if (!o->nodesize && o->mixed)
		o->nodesize = o->sectorsize;
	if (!o->nodesize)
		o->nodesize = o->sectorsize > NODESIZE_DEFAULT ? o->sectorsize : NODESIZE_DEFAULT;
	if (!is_block_size(o->sectorsize))
		return err_set(err, BTRKIT_INVALID, "sectorsize %" PRIu32 " is no power of two from %u to %u",
			       o->sectorsize, BLOCKSIZE_MIN, BLOCKSIZE_MAX);
	if (!is_block_size(o->nodesize))
		return err_set(err, BTRKIT_INVALID, "nodesize %" PRIu32 " is no power of two from %u to %u",
			       o->nodesize, BLOCKSIZE_MIN, BLOCKSIZE_MAX);
	if (o->nodesize < o->sectorsize)
		return err_set(err, BTRKIT_INVALID, "nodesize %" PRIu32 " is below sectorsize %" PRIu32, o->nodesize,
			       o->sectorsize);
	if (o->mixed && o->nodesize != o->sectorsize)
		return err_set(err, BTRKIT_INVALID, "mixed block groups need nodesize and sectorsize to be equal");
	return 0;
}

static int judge_features(struct btrkit_mkfs_options *o, struct btrkit_error *err)
{
	const uint64_t needed = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_BLOCK_GROUP_TREE;
	uint64_t incompat = o->incompat & ~INCOMPAT_WRITTEN, compat_ro = o->compat_ro & ~COMPAT_RO_WRITTEN;

	if (incompat || compat_ro) {
		enum btrkit_feature_set set = incompat ? BTRKIT_INCOMPAT : BTRKIT_COMPAT_RO;
		uint64_t bits = incompat ? incompat : compat_ro;

		return features_refuse(set, bits & -bits, "a new filesystem cannot have the feature", err);
	}
	/* Every filesystem since 2009 has these back references; nothing here makes others. */
	o->incompat |= INCOMPAT_MIXED_BACKREF;
	o->incompat &= ~(INCOMPAT_BIG_METADATA | INCOMPAT_MIXED_GROUPS);
	if (o->nodesize > SMALL_NODESIZE)
		o->incompat |= INCOMPAT_BIG_METADATA;
	if (o->mixed)
		o->incompat |= INCOMPAT_MIXED_GROUPS;
	if (!(o->compat_ro & COMPAT_RO_FREE_SPACE_TREE) || !(o->incompat & INCOMPAT_NO_HOLES))
		o->compat_ro &= ~COMPAT_RO_BLOCK_GROUP_TREE;
	o->compat_ro &= needed;
	if (o->compat_ro & COMPAT_RO_FREE_SPACE_TREE)
		o->compat_ro |= COMPAT_RO_FREE_SPACE_TREE_VALID;
	return 0;
}

int mkfs_options_judge(const struct btrkit_mkfs_options *given, struct btrkit_mkfs_options *ret,
		       struct btrkit_error *err)
{
	struct btrkit_mkfs_options o = *given;
	int r;

	if (o.flags & ~(unsigned)FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (o.label && strlen(o.label) >= SUPER_LABEL_SIZE)
		return err_set(err, BTRKIT_INVALID, "label of %zu bytes is longer than %d", strlen(o.label),
			       SUPER_LABEL_SIZE - 1);
	if (o.label && strchr(o.label, '\n'))
		return err_set(err, BTRKIT_INVALID, "label has a newline in it");
	if ((unsigned)o.data > BTRKIT_DUP || (unsigned)o.metadata > BTRKIT_DUP)
		return err_set(err, BTRKIT_INVALID, "unknown profile");
	if (o.mixed && o.data != o.metadata)
		return err_set(err, BTRKIT_INVALID, "with mixed block groups data and metadata have one profile");
	r = judge_sizes(&o, err);
	if (!r)
		r = judge_features(&o, err);
	if (!r)
		*ret = o;
	return r;
}
