/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_IMPL_H
#define BTRKIT_SPACE_SPACE_IMPL_H

/* What the files of free space that is kept for writing share with chunk.c. */

#include "lib/space/space.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"

struct space {
	struct btrkit_fs *fs;
	struct overlay *overlay; /* of the open transaction, or NULL */
	uint64_t tree;		 /* that has the groups' items */
	/* In the order of addresses. Each is allocated alone, so that it stays where it is. */
	struct space_group **groups;
	size_t num_groups, groups_size;
	struct space_group *touched; /* a list, the last first */
	uint64_t used;		     /* in all groups */
	uint64_t next[3];	     /* of data, metadata, system: where the last allocation ended */
	struct space_load_stats stats;
	/* Chunks that were removed in this transaction: nothing else may take their place on the devices. */
	struct volume_chunk **gone;
	size_t num_gone, gone_size;
	struct cursor extents; /* of the committed extent tree, once something was taken in this transaction */
	bool reads_extents;
};

void space_touch(struct space *s, struct space_group *g);
/* The number of the first group that ends behind @logical; of all groups if there is none. */
size_t space_group_index(const struct space *s, uint64_t logical);

/* A new group, all of it free, whose chunk the volume has already. @return 0 or -ENOMEM */
int space_add_group(struct space *s, const struct block_group *item, struct space_group **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The root of a tree as the last commit left it, in a transaction or not. @return as fs_find_tree() */
int space_committed_root(const struct space *s, uint64_t id, struct tree_root *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Keeps a change for space_take_changes(). */
int space_record(struct space_group *g, const struct range *r, bool free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Sorts what is free of a group with parity anew: whole rows to what may be handed out, the rest to what may not.
 * @return 0; -ENOMEM: then it is as it was
 */
int space_sort_rows(struct space *s, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What of a group is pinned becomes free, and rows are sorted with it. @return 0; <0: the maps are to be forgotten */
int space_free_pinned(struct space *s, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds what of @range is not kept free for superblocks. */
int space_add_free(struct free_map *m, const struct block_group_supers *supers, struct range range,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
