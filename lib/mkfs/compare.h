/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_COMPARE_H
#define BTRKIT_MKFS_COMPARE_H

/* What was written of an inode, as it is read by the functions of lib/fs, held against the source. */

#include "lib/mkfs/digest.h"
#include "lib/mkfs/fill.h"

#define COMPARE_LINES 20u  /* that are kept; the others are only counted */
#define COMPARE_LINE_MAX 480u
#define COMPARE_NAME_SHOWN 120
#define COMPARE_UNITS 8u /* of contents at a time, at most */
#define COMPARE_BYTES (COMPARE_UNITS * DIGEST_UNIT)

/* One thread's. */
struct compare {
	const struct mkfs_fill *fill;
	struct btrkit_fs *fs;
	uint8_t *found, *wanted; /* DIGEST_UNIT each */
	uint64_t differences;
	char lines[COMPARE_LINES][COMPARE_LINE_MAX];
	/* Of a part of a file that cannot be read again: what its number is made of. */
	struct {
		uint64_t offset, digest;
	} units[COMPARE_UNITS];
	unsigned num_units;
	bool unread; /* what there is of them is not all */
};

/* Counts one, and says what it is, of an inode or, where that is SOURCE_NONE, of all. */
void compare_differs(struct compare *c, uint32_t inode, const char *fmt, ...) BTRKIT_PRINTF(3, 4);
/* The same of a name in a directory. */
void compare_name_differs(struct compare *c, uint32_t dir, const char *name, size_t len, const char *fmt, ...)
	BTRKIT_PRINTF(5, 6);
/* What cannot be read (@ret < 0, and why) differs from what was to be written. @return 0, or -ENOMEM */
int compare_unreadable(struct compare *c, uint32_t inode, int ret, const char *what, const struct btrkit_error *why,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The number of the first byte that differs. */
uint64_t compare_first_difference(const uint8_t *a, const uint8_t *b, size_t len);

/*
 * These return 0 also where something differs; what cannot be read of the filesystem does.
 * @return 0; -ESTALE: the source changed, by name; -ENOMEM; <0
 */
/* Which subvolumes there are, and the default one. */
int compare_subvolumes(struct compare *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Attributes, extended ones too, names in a directory, those that the inode knows of itself, a symlink's target. */
int compare_inode(struct compare *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* compare_inode()'s: the names that it knows of itself, and of a subvolume whose top it is. */
int compare_refs(struct compare *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A part of a regular file that begins at a multiple of DIGEST_UNIT: at most COMPARE_BYTES. */
int compare_contents(struct compare *c, uint32_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * A part of a group, all of it in use, which begins where a block does: that its copies are equal, and checksums of
 * tree blocks.
 */
int compare_copies(struct compare *c, const struct mkfs_plan *plan, const struct mkfs_group *g, uint64_t logical,
		   uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* All of a file that cannot be read again: its number. */
void compare_digest(struct compare *c, uint32_t inode, uint64_t digest);

#endif
