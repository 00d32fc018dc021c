/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DELAYED_IMPL_H
#define BTRKIT_DELAYED_IMPL_H

/*
 * Shared by the files of delayed items: items, inodes that have them, and tables of inodes (table.c); leaves that will
 * be copied (leaves.c); what stays delayed (keep.c), and how the rest is inserted (sort.c, run.c).
 */

#include "lib/delayed/delayed.h"

/* How an item has changed. */
enum delayed_change {
	DELAYED_NONE,	 /* not at all: it was inserted and deleted */
	DELAYED_NEW,	 /* it is not in the tree */
	DELAYED_OVER,	 /* it replaces the one in the tree */
	DELAYED_DELETED	 /* the one in the tree is to be deleted */
};

/* There are many, so they are small. The objectid is in the inode. */
struct delayed_item {
	uint64_t offset; /* of the key, as is the type */
	uint16_t size, room;
	uint8_t type;
	uint8_t change; /* enum delayed_change */
	uint8_t data[];
};

_Static_assert(offsetof(struct delayed_item, data) == 14, "its data would begin behind padding");

struct delayed_place {
	uint64_t hash;
	struct delayed_item *item; /* NULL: free slot */
};

#define DELAYED_FEW 4u

struct delayed_inode {
	uint64_t objectid;
	struct delayed_item **items; /* @few, or allocated */
	struct pool *own; /* the pool of its items, if it has many */
	struct delayed_place *index; /* the items by key, with open addressing, if there are many */
	uint32_t n, room, index_size;
	uint64_t next_index; /* of directory entries; 0: not determined yet */
	uint32_t sorted; /* this many of the first are in order, and below all others */
	uint64_t bytes;	 /* size of its items as counted by count_item() */
	bool fresh;	 /* created in this transaction: the tree has no items of it */
	uint8_t notes;	 /* see delayed_notes() */
	struct delayed_item *few[DELAYED_FEW];
};

static inline struct btrkit_key delayed_key(const struct delayed_inode *in, const struct delayed_item *it)
{
	return KEY(in->objectid, it->type, it->offset);
}

/* Whether readers see the item. */
static inline bool delayed_is_there(const struct delayed_item *it)
{
	return it->change == DELAYED_NEW || it->change == DELAYED_OVER;
}

/* Compares an item with a key of the same inode. */
static inline int delayed_cmp(const struct delayed_item *it, const struct btrkit_key *key)
{
	if (it->type != key->type)
		return it->type < key->type ? -1 : 1;
	return it->offset < key->offset ? -1 : it->offset > key->offset;
}

/* Inodes created at the same time have different shards. That of OID_ORPHAN, which is -5, is the last one. */
static inline struct delayed_shard *delayed_shard_of(struct delayed_tree *t, uint64_t inode)
{
	_Static_assert((OID_ORPHAN + 4) % DELAYED_SHARDS == DELAYED_SHARDS - 1, "see delayed_lock_orphans()");

	return &t->shards[(inode + 4) % DELAYED_SHARDS];
}

/* In table.c: */
struct delayed_inode *delayed_table_find(const struct delayed_table *t, uint64_t objectid);
/* Returns an empty table. */
struct delayed_table delayed_table(const struct delayed *d);
int delayed_inode_get(struct delayed_table *t, uint64_t objectid, struct delayed_inode **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct delayed_item *delayed_inode_find(const struct delayed_inode *in, const struct btrkit_key *key);

/* In sort.c: */
/* Sorts the items. */
void delayed_sort(struct delayed_inode *in);

/* In delayed.c: */
/* Adds or drops the reference of an EXTENT_DATA item. Does nothing for other items. */
int delayed_change_ref(struct delayed *d, uint64_t tree, const struct item *item, int add,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In table.c: */
/* Adds an item that does not exist, without contents, but with room for @size bytes. @return 0; -ENOMEM */
int delayed_item_add(struct delayed_table *t, struct delayed_inode *in, const struct btrkit_key *key, uint32_t size,
		     struct delayed_item **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Sets the contents of a known item, which may have to move for that. @data: as for delayed_insert() */
int delayed_item_set(struct delayed_table *t, struct delayed_inode *in, struct delayed_item **at, const void *data,
		     uint32_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Moves an inode that has its own pool to another table, which does not have it yet. @in is then empty.
 * @return 0; -ENOMEM
 */
int delayed_inode_move(struct delayed_table *to, struct delayed_inode *in);

/* In run.c: */
/*
 * Inserts into the trees of a list what was taken over, @bytes in total. Requires the lock of runs.
 * @return 0; -EUCLEAN, <0: the transaction has failed
 */
int delayed_run_taken(struct delayed *d, struct delayed_tree *t, size_t bytes,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In table.c: */
/* Frees the items of an inode that are all in the tree, where readers then finds them. */
void delayed_inode_empty(struct delayed_inode *in);
void delayed_table_free(struct delayed_table *t);

/* In leaves.c: */
/* Remembers the leaf at which a cursor found an item with @key. Requires the locks of the item and of the tree. */
void delayed_see_leaf(struct delayed_tree *t, const struct btrkit_key *key, const struct cursor *c);
/* Counts the leaf of a changed item. @return false: it need not be copied, or must be copied for another item anyway */
bool delayed_count_leaf(struct delayed_tree *t, const struct btrkit_key *key);
/* All delayed items are being taken over. */
void delayed_forget_leaves(struct delayed_tree *t);

/* In keep.c: */
/*
 * A shard's items have been taken over: put back what should remain delayed, and add what was granted for it to @kept.
 * That is the newest inodes when space is short, and new directories when memory is.
 */
void delayed_keep_newest(struct delayed_tree *t, struct delayed_shard *s, struct delayed_amount *kept);
void delayed_keep_directories(struct delayed_shard *s, struct delayed_amount *kept);

#endif
