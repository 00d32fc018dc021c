/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_STATE_H
#define BTRKIT_CHECK_LOG_STATE_H

/*
 * A log tree has the items that fsync wrote, to be replayed into the subvolume's tree at the next mount. It need not be
 * consistent without that tree, and may have items that a later change in the same transaction made obsolete, such as
 * checksums of data that is no longer referenced, or names in directories that do not exist. Those are not reported;
 * only what Linux refuses to replay, what would cause damage when replayed, and what contradicts itself.
 */

#include "lib/base/hash.h"
#include "lib/check/codes.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/state.h"
#include "lib/space/range.h"

/* A block that was visited, so that further pointers to it do not cause it to be read again. */
struct log_block {
	uint64_t bytenr;
	UT_hash_handle hh;
};

/* The inode whose items are being read. */
struct log_inode {
	uint64_t objectid;
	bool any, item; /* whether there was any item, and an INODE_ITEM */
	bool doubt;	/* one of its items is invalid */
	uint32_t mode;	/* 0: unknown */
	uint64_t flags;
	uint64_t end; /* of its last extent */
};

/* The mode of an inode in a log tree. */
struct log_mode {
	uint64_t objectid;
	uint32_t mode;
};

/* A name that can be checked once all inodes in the log are known. */
struct log_name {
	uint64_t directory, leaf;
	uint64_t other; /* inode with the name's index in the subvolume; 0: no such directory there */
	struct btrkit_key key;
};

/* Data that must have checksums, or with @none must not have any. */
struct log_wanted {
	struct range range;
	uint64_t objectid, offset, leaf;
	bool none;
};

struct log {
	struct check *c;
	uint8_t *buf; /* the block being read, and what it says about itself */
	struct node node;
	struct log_block *met;
	struct check_hints hints;
	size_t block_hint, group_hint;

	/* About the tree that is being read: */
	bool lost;		 /* some of it is unreadable or out of order */
	struct cursor subvolume; /* in the subvolume that the log belongs to */
	bool has_subvolume;	 /* which exists and can be searched completely */
	struct log_inode inode;
	uint64_t asked; /* the last inode looked up in the subvolume, and the result */
	uint32_t answer;
	size_t first_sum;    /* index in check.log_sums of the tree's first one */
	struct array wanted; /* struct log_wanted */
	struct array modes;  /* struct log_mode, by objectid */
	struct array names;  /* struct log_name */
};

void log_report(struct log *l, enum check_code code, uint64_t logical, const struct btrkit_key *key, const char *field,
		const char *message);
/* Whether the extent tree has an extent in the range. */
bool log_is_used(struct log *l, uint64_t start, uint64_t length);

#endif
