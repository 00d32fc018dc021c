/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_STREAMS_H
#define BTRKIT_MKFS_STREAMS_H

/* Generators of the items of each tree of a new filesystem. Each is a mkfs_stream_fn. */

#include "lib/mkfs/plan.h"

/* In streams_space.c: */
/* Trees that describe devices and space. */
int mkfs_stream_chunks(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
		       struct btrkit_error *err);
int mkfs_stream_devices(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err);
int mkfs_stream_extents(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err);
int mkfs_stream_free_space(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			   struct btrkit_error *err);
int mkfs_stream_block_groups(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			     struct btrkit_error *err);

/* In streams_names.c: */
/* Trees with roots and directories of an empty filesystem. */
int mkfs_stream_top_level(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			  struct btrkit_error *err);
int mkfs_stream_data_reloc(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			   struct btrkit_error *err);
int mkfs_stream_uuids(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
		      struct btrkit_error *err);
int mkfs_stream_roots(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
		      struct btrkit_error *err);
int mkfs_stream_quota(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
		      struct btrkit_error *err);
int mkfs_stream_nothing(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err);

/* In streams_files.c: */
/* Trees of a filled filesystem. */
int mkfs_stream_files(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err);

/* In streams_contents.c: */
int mkfs_stream_csums(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err);
/* Adds the item of data extent *next (from 0) if it is in the group. @return 0; 1: it is not; <0 */
int mkfs_add_data_extent(const struct mkfs_plan *p, const struct mkfs_group *g, size_t *next, struct bulk *b,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In streams_space.c: */
/* Size and contents of the chunk item of a group, for the chunk tree and the superblock. */
uint32_t mkfs_chunk_item_size(const struct mkfs_group *g);
void mkfs_chunk_item(const struct mkfs_plan *p, const struct mkfs_group *g, uint8_t *to);
/* Returns the device item of device number @device in the plan. */
struct disk_dev_item mkfs_dev_item(const struct mkfs_plan *p, unsigned device);

#endif
