/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_COMPARE_H
#define BTRKIT_MKFS_COMPARE_H

/* Compares inodes of the new filesystem, as read by lib/fs, with the source. */

#include "lib/mkfs/filled/digest.h"
#include "lib/mkfs/filled/fill.h"

#define COMPARE_LINES 20u  /* differences with a message; others are only counted */
#define COMPARE_LINE_MAX 480u
#define COMPARE_NAME_SHOWN 120
#define COMPARE_UNITS 8u /* maximum units of contents per call */
#define COMPARE_BYTES (COMPARE_UNITS * DIGEST_UNIT)

/* State of one thread. */
struct compare {
	const struct mkfs_fill *fill;
	struct btrkit_fs *fs;
	uint8_t *found, *wanted; /* DIGEST_UNIT each */
	uint64_t differences;
	char lines[COMPARE_LINES][COMPARE_LINE_MAX];
	/* Digests of a part of a file whose source cannot be read again. */
	struct {
		uint64_t offset, digest;
	} units[COMPARE_UNITS];
	unsigned num_units;
	bool unread; /* some units could not be read */
};

/* Reports a difference in an inode, or in the filesystem as a whole if @inode is SOURCE_NONE. */
void compare_differs(struct compare *c, uint32_t inode, const char *fmt, ...) BTRKIT_PRINTF(3, 4);
/* Reports a difference in a name of a directory. */
void compare_name_differs(struct compare *c, uint32_t dir, const char *name, size_t len, const char *fmt, ...)
	BTRKIT_PRINTF(5, 6);
/* Reports as a difference that something cannot be read, if @ret < 0. @return 0, or -ENOMEM */
int compare_unreadable(struct compare *c, uint32_t inode, int ret, const char *what, const struct btrkit_error *why,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns the offset of the first byte that differs. */
uint64_t compare_first_difference(const uint8_t *a, const uint8_t *b, size_t len);

/*
 * These functions return 0 even if something differs, which includes unreadable parts of the filesystem.
 * @return 0; -ESTALE: the source changed (the message has the path); -ENOMEM; <0
 */
/* Compares the list of subvolumes and the default subvolume. */
int compare_subvolumes(struct compare *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Compares attributes, xattrs, directory entries, back references to names, and the target of a symlink. */
int compare_inode(struct compare *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In compare_refs.c: */
/*
 * Compares the INODE_REF and INODE_EXTREF items of an inode, and the root references if it is the top of a subvolume.
 */
int compare_refs(struct compare *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In compare.c: */
/* Compares a part of a regular file, at most COMPARE_BYTES from a multiple of DIGEST_UNIT on. */
int compare_contents(struct compare *c, uint32_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In copies.c: */
/*
 * Compares the copies of a part of a group with each other, and verifies checksums of tree blocks. The part must be in
 * use entirely and start at a block boundary.
 */
int compare_copies(struct compare *c, const struct mkfs_plan *plan, const struct mkfs_group *g, uint64_t logical,
		   uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In compare.c: */
/* Compares the digest of a whole file whose source cannot be read again. */
void compare_digest(struct compare *c, uint32_t inode, uint64_t digest);

#endif
