/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_H
#define BTRKIT_CHECK_LOG_H

/*
 * A log tree has those items of files that an fsync wanted on disk, to be put into the tree of the subvolume at the
 * next mount. It need not make sense without that tree, and may have what a later change in the same transaction made
 * pointless: checksums of data that is no longer named, names in directories that are not there. Of that nothing is
 * told; only what Linux refuses or makes a damage of when it replays it, or what contradicts itself.
 */

#include "lib/base/hash.h"
#include "lib/check/state.h"
#include "lib/space/range.h"

/* A block that was met: by each pointer but the first it would be read again. */
struct log_block {
	uint64_t bytenr;
	UT_hash_handle hh;
};

/* A pointer that is still to be followed. */
struct log_ref {
	struct node_ref ref;
	struct btrkit_key first_key;
	bool has_key;
};

/* The inode whose items are gone through. */
struct log_inode {
	uint64_t objectid;
	bool any, item; /* there was an item of it, and its INODE_ITEM */
	bool doubt;	/* an item of it is not valid */
	uint32_t mode;	/* 0: not known */
	uint64_t flags;
	uint64_t end; /* of its extents */
};

/* Of a log tree: a mode that an inode has there. */
struct log_mode {
	uint64_t objectid;
	uint32_t mode;
};

/* A name that can be judged when it is known what inodes the log has. */
struct log_name {
	uint64_t directory, leaf;
	uint64_t other; /* inode that has the name's index in the subvolume, or 0: which does not have the directory */
	struct btrkit_key key;
};

/* Data of which checksums are wanted, or which should have none. */
struct log_wanted {
	struct range range;
	uint64_t objectid, offset, leaf;
	bool none;
};

struct log {
	struct check *c;
	struct check_list trees;   /* struct tree_root */
	struct check_list pending; /* struct log_ref, of one tree, the next one last */
	struct log_block *met;
	struct check_hints hints;
	size_t block_hint, group_hint;
	bool top; /* the tree that names the others is read */

	/* Of the tree that is read: */
	bool lost; /* something of it could not be read, or is out of order */
	bool any;  /* an item was met; the last one had this key */
	struct btrkit_key last;
	struct cursor subvolume; /* the tree that the log is of */
	bool has_subvolume;	 /* and all of it can be looked up */
	struct log_inode inode;
	uint64_t asked; /* of the subvolume, and what it said */
	uint32_t answer;
	size_t first_sum;	  /* of the check's log_sums the first one of the tree */
	struct check_list wanted; /* struct log_wanted */
	struct check_list modes;  /* struct log_mode, by objectid */
	struct check_list names;  /* struct log_name */
};

void log_say(struct log *l, enum check_code code, uint64_t logical, const struct btrkit_key *key, const char *field,
	     const char *message);
/* Whether the extent tree has anything in the range. */
bool log_is_used(struct log *l, uint64_t start, uint64_t length);

/* log_files.c: a tree begins, an item of a leaf of it that is valid, one that is not, and all was read. */
void log_files_begin(struct log *l, uint64_t subvolume);
void log_files_item(struct log *l, const struct node *leaf, const struct item *item);
void log_files_doubt(struct log *l, const struct item *item);
void log_files_end(struct log *l);

/* log_data.c: the same of extents and checksums, */
void log_extent(struct log *l, const struct node *leaf, const struct item *item);
void log_sums(struct log *l, const struct node *leaf, const struct item *item);
void log_data_end(struct log *l);
/* and of all log trees together. */
void log_data_join(struct log *l);

#endif
