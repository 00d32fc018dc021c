/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_IMPL_H
#define BTRKIT_SPACE_SPACE_IMPL_H

/* Shared by chunk.c and the files that manage free space for writing. */

#include "lib/format/items/devices/dev.h"
#include "lib/space/space.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"

struct space {
	struct btrkit_fs *fs;
	struct overlay *overlay; /* of the open transaction, or NULL */
	uint64_t tree;		 /* that contains the groups' items */
	/* In address order. Each is allocated separately, so that its address does not change. */
	struct space_group **groups;
	size_t num_groups, groups_size;
	struct space_group *touched; /* list, most recent first */
	uint64_t used;		     /* in all groups */
	/* For data, metadata, system: see space_type_index(). */
	uint64_t next[3];     /* end of the last allocation */
	uint64_t profiles[3]; /* see chunk_set_profile() */
	struct space_load_stats stats;
	/* Chunks removed in this transaction: their space on the devices must not be reused yet. */
	struct volume_chunk **gone;
	size_t num_gone, gone_size;
	struct cursor extents; /* in the committed extent tree, from the first allocation in this transaction on */
	bool reads_extents;
};

/* Mixed groups are as those for data. */
static inline unsigned space_type_index(uint64_t type)
{
	return type & BG_DATA ? 0 : type & BG_METADATA ? 1 : 2;
}

/* In space.c: */
void space_touch(struct space *s, struct space_group *g);
/* Index of the first group that ends after @logical, or the number of groups if there is none. */
size_t space_group_index(const struct space *s, uint64_t logical);

/* Adds a new group, completely free, whose chunk is in the volume already. @return 0 or -ENOMEM */
int space_add_group(struct space *s, const struct block_group *item, struct space_group **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_load.c: */
/* The root of a tree at the last commit, whether a transaction is open or not. @return as fs_find_tree() */
int space_committed_root(const struct space *s, uint64_t id, struct tree_root *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_items.c: */
/*
 * Inserts or deletes an item of chunks or devices: it is damage if it exists already, or does not exist.
 * space_missing_item() says the latter if @ret is -ENOENT or 1, and otherwise returns @ret.
 */
int space_insert_item(struct space *s, uint64_t tree, const struct btrkit_key *key, const void *data, uint32_t size,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int space_delete_item(struct space *s, uint64_t tree, const struct btrkit_key *key,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int space_missing_item(int ret, uint64_t tree, const struct btrkit_key *key,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks before the first edit that an item exists (@there), or does not. @return 0; -EUCLEAN: otherwise; <0 */
int space_expect_item(struct space *s, uint64_t tree, const struct btrkit_key *key, bool there,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads the item of a device. @return 0; -EUCLEAN: it is missing or not valid; <0 */
int space_read_device(struct space *s, uint64_t devid, struct disk_dev_item *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Passes on the result of several edits that belong together: if it is an error, they are half done, which is recorded
 * in the transaction.
 */
int space_edited(const struct space *s, int ret, const struct btrkit_error *err);

/* In space_alloc.c: */
/*
 * Checks that the last commit does not use a free range of a group.
 * @return 0; -EUCLEAN: by its extent tree it does; <0
 */
int space_check_committed(struct space *s, const struct space_group *g, const struct range *r,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_changes.c: */
/* Records a change for space_take_changes(). */
int space_record(struct space_group *g, const struct range *r, bool free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_full_stripes.c: */
/*
 * Sorts the free space of a group with parity again: full stripes may be allocated, the rest may not.
 * @return 0; -ENOMEM: nothing was changed
 */
int space_sort_full_stripes(struct space *s, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Frees what is pinned in a group, and sorts its full stripes again. @return 0; <0: the maps must be dropped */
int space_free_pinned(struct space *s, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_load.c: */
/* Adds those parts of @range that are not reserved for superblocks. */
int space_add_free(struct free_map *m, const struct block_group_supers *supers, struct range range,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
