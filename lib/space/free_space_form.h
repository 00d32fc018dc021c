/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_SPACE_FORM_H
#define BTRKIT_SPACE_FREE_SPACE_FORM_H

/* The form of a group, extents or bitmaps: when it changes, and for free_space_edit.c, the conversion. */

#include "lib/space/free_space_edit.h"

/* With more than @high ranges a group uses bitmaps, with less than @low extents; in between it is not converted. */
struct free_space_thresholds {
	uint32_t low, high;
};

struct free_space_thresholds free_space_thresholds(uint64_t group_length, uint32_t sectorsize);

/* A group that is being edited. */
struct free_space_editor {
	struct edit_tree *t;
	const struct block_group *group;
	struct free_space_thresholds limits;
	uint32_t sectorsize;
	bool bitmaps;		/* form and number of ranges; newer than the INFO */
	uint32_t count;
	struct range bitmap;	/* at which the cursor stands; length 0: it is elsewhere */
	struct free_space_stats *stats;
};

/* Stores form and counts in the INFO. */
int free_space_write_info(const struct free_space_editor *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Both read the group and check the count. The caller must store the new form in the INFO. */
int free_space_to_bitmaps(struct free_space_editor *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int free_space_to_extents(struct free_space_editor *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
