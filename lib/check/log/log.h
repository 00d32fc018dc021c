/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_H
#define BTRKIT_CHECK_LOG_H

/*
 * A log tree has the items that fsync wrote, to be replayed into the subvolume's tree at the next mount. It need not be
 * consistent without that tree, and may have items that a later change in the same transaction made obsolete, such as
 * checksums of data that is no longer referenced, or names in directories that do not exist. Those are not reported;
 * only what Linux refuses to replay, what would cause damage when replayed, and what contradicts itself.
 */

#include "lib/base/hash.h"
#include "lib/check/state.h"
#include "lib/space/range.h"
#include "lib/sweep/log.h"

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

void log_say(struct log *l, enum check_code code, uint64_t logical, const struct btrkit_key *key, const char *field,
	     const char *message);
/* Whether the extent tree has an extent in the range. */
bool log_is_used(struct log *l, uint64_t start, uint64_t length);

/* log_files.c: called at the start and end of a log, and for each invalid item. */
void log_files_begin(struct log *l, uint64_t subvolume);
void log_files_doubt(struct log *l, const struct item *item);
void log_files_end(struct log *l);
/* Checks what all items have in common. @return whether it is one that its own event should see */
bool log_files_item(struct log *l, const struct node *leaf, const struct item *item);
/* Events of lib/sweep/log.h; @ctx is the struct log. */
int log_inode(void *ctx, const struct sweep_log_item *at, const struct inode_item *inode, struct btrkit_error *err);
int log_inode_ref(void *ctx, const struct sweep_log_item *at, const struct inode_ref *ref, struct btrkit_error *err);
int log_entry(void *ctx, const struct sweep_log_item *at, unsigned number, const struct dir_entry *e,
	      struct btrkit_error *err);
int log_range(void *ctx, const struct sweep_log_item *at, uint64_t first, uint64_t last, struct btrkit_error *err);

/* log_data.c: events, and called at the end of a tree. */
int log_extent(void *ctx, const struct sweep_log_item *at, const struct file_extent *fe, struct btrkit_error *err);
int log_csums(void *ctx, const struct sweep_log_item *at, uint64_t start, uint64_t length, const uint8_t *csums,
	      struct btrkit_error *err);
void log_data_end(struct log *l);
/* Called at the end of all log trees: merges their data. */
void log_data_join(struct log *l);

#endif
