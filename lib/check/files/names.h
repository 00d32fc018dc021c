/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_NAMES_H
#define BTRKIT_CHECK_NAMES_H

/* Facts about names that contradict each other in one tree. */

#include "lib/check/files/span.h"
#include "lib/check/state.h"

/* The kind of item that has a name. */
enum fact_kind {
	FACT_ITEM,
	FACT_INDEX,
	FACT_REF
};

struct fact {
	uint64_t name; /* the hash of name and directory */
	uint64_t dir, index;
	struct btrkit_key location; /* key of an inode or a subvolume */
	uint64_t entry;		    /* the hash of the entry */
	uint16_t len;		    /* length of the name, for names of inodes */
	uint8_t type, kind;
	bool unindexed;	       /* a DIR_ITEM entry without a DIR_INDEX */
	bool known;	       /* its contradiction is reported for another fact */
	struct btrkit_key key; /* of the item */
};

/* Sums over all names whose hashes have the same low bits. */
struct bucket {
	uint64_t names, entries;
};

struct names {
	struct check *c;
	const struct check_root *root;
	struct cursor cur;
	uint64_t inode; /* the current inode */
	uint8_t type;	/* file type from its INODE_ITEM; 0: no such item */
	bool gone;	/* whether it is waiting for deletion: see inode.c */
	struct bucket *buckets;
	bool second; /* whether this is the second pass */
	struct array facts;
	uint64_t reported;
};

/* Examines a tree whose sums of names do not cancel out. */
void span_names(struct check *c, const struct check_root *root, const struct span *all);

#endif
