/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_SUPER_H
#define BTRKIT_FORMAT_SUPER_H

/* The superblock: judged, decoded, rendered. */

#include <btrkit/error.h>

#include "lib/base/csum.h"
#include "lib/base/emit.h"
#include "lib/format/item.h"

struct super {
	struct disk_super disk;	/* as read */
	const struct csum_kind *csum;
	uint8_t fsid[16];
	uint8_t metadata_uuid[16];	/* what tree blocks carry as their fsid */
	uint64_t bytenr, flags, generation;
	uint64_t root, chunk_root, log_root;
	uint64_t chunk_root_generation;
	uint8_t root_level, chunk_root_level, log_root_level;
	uint64_t total_bytes, bytes_used, num_devices;
	uint32_t sectorsize, nodesize;
	uint64_t compat, compat_ro, incompat;
	uint64_t cache_generation, uuid_tree_generation;
	uint64_t devid;
	uint8_t dev_uuid[16];
};

/* Where copy @mirror (0 to SUPER_MIRRORS - 1) lies on a device. */
static inline uint64_t super_offset(unsigned mirror)
{
	return mirror ? 1ull << (26 + 12 * (mirror - 1)) : 65536;
}

static inline const char *const *super_mirror_names(void)
{
	static const char *const names[SUPER_MIRRORS] = { "primary superblock", "superblock mirror 1",
							  "superblock mirror 2" };
	return names;
}

/*
 * Judges what was read at @offset, in the order magic, checksum, own address, fields, sys_chunk_array bounds, and
 * decodes it. Of features only those are judged that may change what the fields mean: see feature.h.
 * @return 0; -EMEDIUMTYPE without the magic; -EOPNOTSUPP for these, or a checksum this build cannot compute; -EUCLEAN
 */
int super_decode(const struct disk_super *disk, uint64_t offset, struct super *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * As long as an undo is at work there is such a sector in the place of the first of each superblock, so that no reader
 * takes what is half put back for a filesystem. @id is the undo file's, in which the device has the number @device;
 * @offset is that of the superblock.
 */
#define SUPER_SECTOR_SIZE 512
void super_undo_mark(const uint8_t id[16], uint64_t offset, unsigned device, uint8_t ret[SUPER_SECTOR_SIZE]);

/* @return 0, or -EMEDIUMTYPE where there is such a mark */
int super_refuse_undo_mark(const struct disk_super *disk, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What items of this filesystem are judged by (owner is left 0). */
struct item_ctx super_item_ctx(const struct super *s);

/*
 * The chunks of the sys_chunk_array, one by one: *pos counts bytes and begins at 0.
 * @return 0 a chunk (@item points into the superblock), 1 the end, -EUCLEAN
 */
int super_next_chunk(const struct super *s, uint32_t *pos, struct item *item,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
