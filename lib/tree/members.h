/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_MEMBERS_H
#define BTRKIT_TREE_MEMBERS_H

/* Which of the given devices belong to a filesystem, and which do not. */

#include "lib/tree/filesystem.h"

/* The given devices, and the superblock of each. */
struct members {
	struct btrkit_io *const *devices;
	struct super *supers;
	size_t n;
	const struct btrkit_open_options *opts;
	size_t chosen;	/* device whose superblock is that of the filesystem */
	size_t present; /* number of devices in the chunk tree that are present; see members_confirm() */
};

/*
 * Chooses the superblock: the newest one, but that of a seed device only if there is no other.
 * @return 0; -EINVAL: two of them are the same device, or of different filesystems; both are named
 */
int members_choose(struct members *m, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Accepts tree blocks of the given seed devices from now on. @return 0, -ENOMEM */
int members_admit_seeds(const struct members *m, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Compares the devices with the chunk tree, which lists those of the filesystem, and set m->present. Missing seed
 * devices, and devices that no longer belong to the filesystem, are reported to the note function.
 * @return 0; -EINVAL: a device in the place of another, or a seed device of another filesystem; -EOPNOTSUPP: not
 * writable; or an error of reading the chunk tree
 */
int members_confirm(struct members *m, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether options demand that all devices are there and in step. */
bool members_write_whole(const struct btrkit_open_options *opts);
/* Marks stale devices, which missed the last writes, to be read last. */
void members_mark_stale(const struct members *m, const struct btrkit_fs *fs);
/* Notes each stale device, when the chunks are known. @return 0; -EOPNOTSUPP: for writing */
int members_tell_stale(const struct members *m, const struct btrkit_fs *fs,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Treats stale devices as missing. */
void members_leave_stale(const struct members *m, const struct btrkit_fs *fs);
/* Notes in one line which devices are missing, and how much cannot be read without them. */
void members_note_missing(const struct members *m, const struct btrkit_fs *fs);

#endif
