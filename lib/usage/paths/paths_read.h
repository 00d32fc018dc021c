/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_READ_H
#define BTRKIT_USAGE_PATHS_READ_H

#include "lib/usage/paths/paths.h"

/* Reads all leaves of all subvolumes. */
int paths_read(struct paths_work *pw, const struct paths_reader *reader, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reports damage in an item of a leaf; does nothing if @ret is 0. */
int paths_report_item(struct paths_batch *b, const uint8_t *leaf, uint32_t slot, int ret, struct btrkit_error *what,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Moves to the first item of an inode with at least @type. @return 0; 1: there is none, or it is unreadable; <0 */
int paths_seek(struct paths_batch *b, struct cursor *c, uint64_t inode, uint8_t type,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reports damage of a subvolume. */
int paths_report(struct paths_work *pw, uint64_t subvolume, struct btrkit_error *what,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
