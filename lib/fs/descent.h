/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DESCENT_H
#define BTRKIT_FS_DESCENT_H

/*
 * Going down from a directory through all that are below it. Entries of a damaged filesystem may lead to a directory
 * from several places, or back up, and so for ever, or for longer than anybody waits; here each directory is entered
 * at most once: a directory has one name, which it knows itself, and a subvolume is entered where it is met first.
 */

#include <btrkit/inode.h>

struct descent {
	struct btrkit_fs *fs;
	uint64_t root, inode; /* where it began */
	uint64_t *roots;      /* subvolumes that were entered, in ascending order */
	size_t num_roots, room;
};

/* From directory @inode of subvolume @root on. Free with descent_end(), on failure too. */
int descent_begin(struct descent *d, struct btrkit_fs *fs, uint64_t root, uint64_t inode,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
void descent_end(struct descent *d);

/*
 * Whether what @e of directory @inode of subvolume @root leads to, a directory that is not BTRKIT_EMPTY_SUBVOLUME, may
 * be entered now.
 * @return 0; -EUCLEAN: it is another's, or was entered; -EIO, -ENODATA, -ENOMEM
 */
int descent_enter(struct descent *d, uint64_t root, uint64_t inode, const struct btrkit_dir_entry *e,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
