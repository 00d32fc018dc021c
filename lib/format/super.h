/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_SUPER_H
#define BTRKIT_FORMAT_SUPER_H

/* Validation and decoding of the superblock. */

#include <btrkit/error.h>

#include "lib/base/csum.h"
#include "lib/base/emit.h"
#include "lib/format/item.h"

struct super {
	struct disk_super disk;	/* as read */
	const struct csum_kind *csum;
	uint8_t fsid[16];
	uint8_t metadata_uuid[16];	/* the fsid in tree blocks */
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

/* Location of superblock copy @mirror (0 to SUPER_MIRRORS - 1) on a device. */
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
 * Validates and decodes a superblock read from @offset: magic, checksum, location, fields, and bounds of the
 * sys_chunk_array, in this order. Only features that may change the meaning of fields are checked: see feature.h.
 * @return 0; -EMEDIUMTYPE: wrong magic; -EOPNOTSUPP: unsupported feature or checksum type; -EUCLEAN
 */
int super_decode(const struct disk_super *disk, uint64_t offset, struct super *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * While an undo is in progress, a sector like this replaces the first sector of each superblock, so that no reader
 * takes the half-restored device for a filesystem. @id is that of the undo file, and @device the number of the device
 * in it; @offset is that of the superblock.
 */
#define SUPER_SECTOR_SIZE 512
void super_undo_mark(const uint8_t id[16], uint64_t offset, unsigned device, uint8_t ret[SUPER_SECTOR_SIZE]);

/* @return 0; -EMEDIUMTYPE: the sector is such a mark */
int super_refuse_undo_mark(const struct disk_super *disk, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The context to validate items of this filesystem with. The owner is 0. */
struct item_ctx super_item_ctx(const struct super *s);

/*
 * Iterates over the chunks in the sys_chunk_array. *pos is the position in bytes and starts at 0.
 * @return 0: a chunk, @item points into the superblock; 1: no more chunks; -EUCLEAN
 */
int super_next_chunk(const struct super *s, uint32_t *pos, struct item *item,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
