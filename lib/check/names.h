/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_NAMES_H
#define BTRKIT_CHECK_NAMES_H

/* What is said of names that contradict each other in one tree. */

#include "lib/check/span.h"

/* How somebody says a name. */
enum fact_kind {
	FACT_ITEM,
	FACT_INDEX,
	FACT_REF
};

struct fact {
	uint64_t name; /* the hash of name and directory */
	uint64_t dir, index;
	struct btrkit_key location; /* of an inode or a subvolume */
	uint64_t entry;		    /* the hash of it with its type */
	uint16_t len;		    /* of a name that an inode knows */
	uint8_t type, kind;
	bool alone;	       /* an entry by name that has no index */
	bool known;	       /* what is wrong with it is told of another one */
	struct btrkit_key key; /* where it is said */
};

/* Sums of what is said of names with the same few bits of their hashes. */
struct bucket {
	uint64_t names, entries;
};

struct names {
	struct check *c;
	const struct check_root *root;
	struct cursor cur;
	uint64_t inode; /* the current one, */
	uint8_t type;	/* what it is by its item; 0: it has none; */
	bool gone;	/* and whether it waits to be deleted: see inode.c */
	struct bucket *buckets;
	bool second; /* the pass */
	struct check_list facts;
	uint64_t told;
};

/* names_judge.c: holds the facts against each other. */
void names_judge(struct names *n);

#endif
