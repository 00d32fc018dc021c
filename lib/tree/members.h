/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_MEMBERS_H
#define BTRKIT_TREE_MEMBERS_H

/* Which of the devices that were given a filesystem is made of, and which have no place in it. */

#include "lib/tree/filesystem.h"

/* The devices as they were given, and the superblock of each. */
struct members {
	struct btrkit_io *const *devices;
	struct super *supers;
	size_t n;
	const struct btrkit_open_options *opts;
	size_t chosen;	/* whose superblock is the filesystem's */
	size_t present; /* how many devices of the chunk tree are there; see members_confirm() */
};

/*
 * Chooses the superblock: the newest, and never a seed's where there is another.
 * @return 0; -EINVAL: two that are one device, or of different filesystems, with both names; -EOPNOTSUPP: a device that
 *	   was not there when the others were written last, for who writes
 */
int members_choose(struct members *m, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* From then on tree blocks may be those of the seeds that are given. @return 0, -ENOMEM */
int members_admit_seeds(const struct members *m, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Holds the devices against the chunk tree, which says what the filesystem is made of, and fills in m->present. A
 * missing seed and a device that is no longer of the filesystem are told by the note function.
 * @return 0; -EINVAL: a device in the place of another, or a seed of something else; -EOPNOTSUPP: what stands against
 *	   writing; what reading the chunk tree returns
 */
int members_confirm(struct members *m, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Tells of the devices that were not there when the others were written last; they are read from last. */
void members_note_stale(const struct members *m, const struct btrkit_fs *fs);

#endif
