/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DESCENT_H
#define BTRKIT_FS_DESCENT_H

/*
 * Guards a walk through all directories below a directory. Entries of a damaged filesystem may lead to a directory from
 * several places or back up, which could make a walk endless or exponentially long. Here each directory is entered at
 * most once: it must have exactly one name, which its inode confirms, and a subvolume is only entered where it is found
 * first. A directory whose name is lost is entered by the first entry that leads to it.
 */

#include <btrkit/inode.h>

#include "lib/base/hash.h"

/* An entered directory whose name is lost. */
struct descent_dir {
	struct {
		uint64_t root, inode;
	} key;
	UT_hash_handle hh;
};

struct descent {
	struct btrkit_fs *fs;
	uint64_t root, inode; /* start of the walk */
	uint64_t *roots;      /* entered subvolumes, sorted */
	size_t num_roots, room;
	struct descent_dir *dirs;
};

/* Starts at directory @inode of subvolume @root. Call descent_end() even after a failure. */
int descent_begin(struct descent *d, struct btrkit_fs *fs, uint64_t root, uint64_t inode,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
void descent_end(struct descent *d);

/*
 * Checks whether the directory that entry @e of directory @inode in subvolume @root leads to may be entered. It must
 * not be BTRKIT_EMPTY_SUBVOLUME.
 * @return 0; 1: it may, but @err says that its name is lost; -EUCLEAN: it has another name, or was entered before;
 *	   -EIO, -ENXIO, -ENOMEM
 */
int descent_enter(struct descent *d, uint64_t root, uint64_t inode, const struct btrkit_dir_entry *e,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
