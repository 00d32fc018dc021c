// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/options.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/csum.h"
#include "lib/base/err.h"
#include "lib/format/disk.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/mkfs/layout.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume.h"

#define BLOCKSIZE_MIN 4096u
#define BLOCKSIZE_MAX 65536u
#define NODESIZE_DEFAULT 16384u
#define FREE_PERCENT_MAX UINT16_MAX
#define FLAGS_OF_SOURCE \
	(BTRKIT_MKFS_FIT | BTRKIT_MKFS_CLAMP_TIMES | BTRKIT_MKFS_DETERMINISTIC | BTRKIT_MKFS_DRY | \
	 BTRKIT_MKFS_VERIFY | BTRKIT_MKFS_SHARE)
#define FLAGS_KNOWN (BTRKIT_MKFS_REPRODUCIBLE | BTRKIT_MKFS_DISCARD | BTRKIT_MKFS_QUOTA | FLAGS_OF_SOURCE)

/* Features that a new filesystem can have. */
#define INCOMPAT_WRITTEN                                                                                   \
	(INCOMPAT_MIXED_BACKREF | INCOMPAT_MIXED_GROUPS | INCOMPAT_BIG_METADATA | INCOMPAT_EXTENDED_IREF | \
	 INCOMPAT_RAID56 | INCOMPAT_SKINNY_METADATA | INCOMPAT_NO_HOLES | INCOMPAT_RAID1C34 | INCOMPAT_SIMPLE_QUOTA)
#define COMPAT_RO_WRITTEN (COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID | COMPAT_RO_BLOCK_GROUP_TREE)

static bool is_block_size(uint32_t v)
{
	return v >= BLOCKSIZE_MIN && v <= BLOCKSIZE_MAX && !(v & (v - 1));
}

static int check_sizes(struct btrkit_mkfs_options *o, struct btrkit_error *err)
{
	if (!o->sectorsize)
		o->sectorsize = BLOCKSIZE_MIN;
	if (!o->nodesize && o->mixed)
		o->nodesize = o->sectorsize;
	if (!o->nodesize)
		o->nodesize = o->sectorsize > NODESIZE_DEFAULT ? o->sectorsize : NODESIZE_DEFAULT;
	if (!is_block_size(o->sectorsize))
		return err_set(err, BTRKIT_INVALID, "sectorsize %" PRIu32 " is not a power of two from %u to %u",
			       o->sectorsize, BLOCKSIZE_MIN, BLOCKSIZE_MAX);
	if (!is_block_size(o->nodesize))
		return err_set(err, BTRKIT_INVALID, "nodesize %" PRIu32 " is not a power of two from %u to %u",
			       o->nodesize, BLOCKSIZE_MIN, BLOCKSIZE_MAX);
	if (o->nodesize < o->sectorsize)
		return err_set(err, BTRKIT_INVALID, "nodesize %" PRIu32 " is less than sectorsize %" PRIu32,
			       o->nodesize, o->sectorsize);
	if (o->mixed && o->nodesize != o->sectorsize)
		return err_set(err, BTRKIT_INVALID, "mixed block groups require equal nodesize and sectorsize");
	return 0;
}

static int check_profile(const char *what, const struct raid_profile *p, size_t n, struct btrkit_error *err)
{
	if (n < mkfs_profile_devices(p))
		return err_set(err, BTRKIT_INVALID, "%s profile %s needs %u devices, %zu given", what, p->name,
			       mkfs_profile_devices(p), n);
	return 0;
}

static int check_profiles(struct btrkit_mkfs_options *o, size_t n, struct btrkit_error *err)
{
	const struct raid_profile *data, *metadata;
	int ret;

	if ((unsigned)o->data > BTRKIT_PROFILE_RAID6 || (unsigned)o->metadata > BTRKIT_PROFILE_RAID6)
		return err_set(err, BTRKIT_INVALID, "unknown profile");
	if (!o->metadata)
		o->metadata = o->mixed ? BTRKIT_PROFILE_SINGLE : n > 1 ? BTRKIT_PROFILE_RAID1 : BTRKIT_PROFILE_DUP;
	if (!o->data)
		o->data = BTRKIT_PROFILE_SINGLE;
	if (o->mixed && o->data != o->metadata)
		return err_set(err, BTRKIT_INVALID,
			       "mixed block groups require the same profile for data and metadata");
	data = mkfs_profile(o->data);
	metadata = mkfs_profile(o->metadata);
	ret = check_profile("metadata", metadata, n, err);
	if (!ret)
		ret = check_profile("data", data, n, err);
	if (ret)
		return ret;
	/* Only metadata is written with parity: filesystems with parity are not filled. */
	if (metadata->parity && !parity_available())
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "metadata profile %s is not supported: this build is without ISA-L", metadata->name);
	if (data->parity || metadata->parity)
		o->incompat |= INCOMPAT_RAID56;
	if (data->copies > 2 || metadata->copies > 2)
		o->incompat |= INCOMPAT_RAID1C34;
	return 0;
}

static int check_csum(const struct btrkit_mkfs_options *o, struct btrkit_error *err)
{
	const struct csum_kind *csum = (unsigned)o->csum > UINT16_MAX ? NULL : csum_kind_find((uint16_t)o->csum);

	if (!csum)
		return err_set(err, BTRKIT_INVALID, "unknown checksum");
	if (!csum->compute)
		return err_set(err, BTRKIT_UNSUPPORTED, "checksum %s is not supported by this build", csum->name);
	return 0;
}

static int check_features(struct btrkit_mkfs_options *o, struct btrkit_error *err)
{
	const uint64_t needed = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_BLOCK_GROUP_TREE;
	uint64_t incompat = o->incompat & ~INCOMPAT_WRITTEN, compat_ro = o->compat_ro & ~COMPAT_RO_WRITTEN;

	if (incompat || compat_ro) {
		enum btrkit_feature_set set = incompat ? BTRKIT_FEATURE_INCOMPAT : BTRKIT_FEATURE_COMPAT_RO;
		uint64_t bits = incompat ? incompat : compat_ro;

		return features_refuse(set, bits & -bits, "a new filesystem cannot have the feature", err);
	}
	/* Mixed back references are always used, as in every filesystem since 2009. */
	o->incompat |= INCOMPAT_MIXED_BACKREF;
	/* mkfs.btrfs 7.3 sets this for nodes of any size; only larger ones than 4096 bytes need it. */
	o->incompat |= INCOMPAT_BIG_METADATA;
	o->incompat &= ~INCOMPAT_MIXED_GROUPS;
	if (o->mixed)
		o->incompat |= INCOMPAT_MIXED_GROUPS;
	if (o->incompat & INCOMPAT_SIMPLE_QUOTA)
		o->flags |= BTRKIT_MKFS_QUOTA;
	if (!(o->compat_ro & COMPAT_RO_FREE_SPACE_TREE) || !(o->incompat & INCOMPAT_NO_HOLES))
		o->compat_ro &= ~COMPAT_RO_BLOCK_GROUP_TREE;
	o->compat_ro &= needed;
	if (o->compat_ro & COMPAT_RO_FREE_SPACE_TREE)
		o->compat_ro |= COMPAT_RO_FREE_SPACE_TREE_VALID;
	return 0;
}

int mkfs_options_check(const struct btrkit_mkfs_options *given, size_t n, struct btrkit_mkfs_options *ret,
		       struct btrkit_error *err)
{
	static const struct btrkit_mkfs_options defaults = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_mkfs_options o = given ? *given : defaults;
	int r;

	if (o.flags & ~(unsigned)FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (o.label && strlen(o.label) >= SUPER_LABEL_SIZE)
		return err_set(err, BTRKIT_INVALID, "label is too long: %zu bytes, maximum is %d", strlen(o.label),
			       SUPER_LABEL_SIZE - 1);
	if (o.label && strchr(o.label, '\n'))
		return err_set(err, BTRKIT_INVALID, "label contains a newline");
	if (!n || n > VOLUME_DEVICES_MAX)
		return err_set(err, BTRKIT_INVALID, "invalid number of devices: %zu", n);
	if (o.source == NULL &&
	    (o.flags & FLAGS_OF_SOURCE || o.compression || o.free_bytes || o.free_percent || o.sort))
		return err_set(err, BTRKIT_INVALID, "options for filling the filesystem require a source");
	if (o.compression_level && !o.compression)
		return err_set(err, BTRKIT_INVALID, "compression level %d without compression", o.compression_level);
	if (o.sort && o.source->kind == BTRKIT_SOURCE_ARCHIVE)
		return err_set(err, BTRKIT_INVALID, "the contents of an archive cannot be sorted");
	if (o.flags & BTRKIT_MKFS_SHARE && o.source->kind != BTRKIT_SOURCE_DIRECTORY)
		return err_set(err, BTRKIT_INVALID, "blocks can only be shared with the files of a directory");
	if (o.source && o.source->flags & BTRKIT_SOURCE_ACCEPT_CHANGES &&
	    o.flags & (BTRKIT_MKFS_VERIFY | BTRKIT_MKFS_SHARE))
		return err_set(err, BTRKIT_INVALID,
			       "files that may change can be neither verified nor share their blocks");
	if (o.flags & BTRKIT_MKFS_DRY && o.flags & BTRKIT_MKFS_VERIFY)
		return err_set(err, BTRKIT_INVALID, "a dry run writes nothing that could be verified");
	if (!(o.flags & BTRKIT_MKFS_FIT) && (o.free_bytes || o.free_percent))
		return err_set(err, BTRKIT_INVALID,
			       "free space can only be requested if the size follows from the contents");
	if (o.free_bytes > INT64_MAX || o.free_percent > FREE_PERCENT_MAX)
		return err_set(err, BTRKIT_INVALID, "the requested free space is too large");
	if (o.flags & BTRKIT_MKFS_DETERMINISTIC)
		o.flags |= BTRKIT_MKFS_REPRODUCIBLE;
	r = check_sizes(&o, err);
	if (!r)
		r = check_profiles(&o, n, err);
	if (!r)
		r = check_csum(&o, err);
	if (!r)
		r = check_features(&o, err);
	if (!r)
		*ret = o;
	return r;
}
