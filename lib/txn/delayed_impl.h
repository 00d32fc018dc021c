/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_DELAYED_IMPL_H
#define BTRKIT_TXN_DELAYED_IMPL_H

/* What the files of delayed items share: items, the inodes that have them, and the tables of these. */

#include "lib/txn/delayed.h"

/* What waits of one item. */
enum delayed_change {
	DELAYED_NONE,	 /* nothing: it came and went */
	DELAYED_NEW,	 /* it is not in the tree */
	DELAYED_OVER,	 /* it takes the place of the one in the tree */
	DELAYED_DELETED	 /* that in the tree goes */
};

/* There are many, so they are small: whose it is says the inode. */
struct delayed_item {
	uint64_t offset; /* of the key, as the type */
	uint16_t size, room;
	uint8_t type;
	uint8_t change; /* enum delayed_change */
	uint8_t data[];
};

_Static_assert(offsetof(struct delayed_item, data) == 14, "its data would begin behind padding");

struct delayed_place {
	uint64_t hash;
	struct delayed_item *item; /* NULL: it is free */
};

#define DELAYED_FEW 4u

struct delayed_inode {
	uint64_t objectid;
	struct delayed_item **items; /* @few, or memory of its own */
	struct pool *own; /* of one that has many: its items */
	struct delayed_place *index; /* the same by key, with open addressing, when they are many */
	uint32_t n, room, index_size;
	uint64_t next_index; /* of a directory's entries; 0: not looked for yet */
	uint32_t sorted; /* so many of the first are in order, below all others */
	uint64_t bytes;	 /* that count_item() saw of its items */
	bool fresh;	 /* made in this transaction: the tree has no items of it */
	uint8_t notes;	 /* of operations */
	struct delayed_item *few[DELAYED_FEW];
};

static inline struct btrkit_key delayed_key(const struct delayed_inode *in, const struct delayed_item *it)
{
	return KEY(in->objectid, it->type, it->offset);
}

/* Whether it has bytes for who reads. */
static inline bool delayed_is_there(const struct delayed_item *it)
{
	return it->change == DELAYED_NEW || it->change == DELAYED_OVER;
}

/* Where an item is beside a key of the same inode: below 0, 0 or above. */
static inline int delayed_cmp(const struct delayed_item *it, const struct btrkit_key *key)
{
	if (it->type != key->type)
		return it->type < key->type ? -1 : 1;
	return it->offset < key->offset ? -1 : it->offset > key->offset;
}

struct delayed_shard *delayed_shard_of(struct delayed_tree *t, uint64_t inode);
struct delayed_inode *delayed_table_find(const struct delayed_table *t, uint64_t objectid);
/* An empty one. */
struct delayed_table delayed_table(const struct delayed *d);
int delayed_inode_get(struct delayed_table *t, uint64_t objectid, struct delayed_inode **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct delayed_item *delayed_inode_find(const struct delayed_inode *in, const struct btrkit_key *key);
/* Puts the items in order. */
void delayed_sort(struct delayed_inode *in);
/* Adds or drops the reference that an EXTENT_DATA makes; nothing for other items. */
int delayed_change_ref(struct delayed *d, uint64_t tree, const struct item *item, int add,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* An item that is not there, without bytes yet, and with room for @size. @return 0; -ENOMEM */
int delayed_item_add(struct delayed_table *t, struct delayed_inode *in, const struct btrkit_key *key, uint32_t size,
		     struct delayed_item **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Puts bytes into an item that is known, which may have to move for that. @data: as of delayed_insert() */
int delayed_item_set(struct delayed_table *t, struct delayed_inode *in, struct delayed_item **at, const void *data,
		     uint32_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* One with memory of its own goes on in another table, where it is not; it is empty then. @return 0; -ENOMEM */
int delayed_inode_move(struct delayed_table *to, struct delayed_inode *in);
/*
 * Puts what was taken over into the trees of a list, @bytes of it, with the lock of runs.
 * @return 0; -EUCLEAN, <0: the transaction has failed
 */
int delayed_run_taken(struct delayed *d, struct delayed_tree *t, size_t bytes,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gives back the items of an inode, which are all in the tree: who looks for them finds them there. */
void delayed_inode_empty(struct delayed_inode *in);
void delayed_table_free(struct delayed_table *t);

/* The leaf where a cursor of the tree stands, with the locks of an item of it that was looked for, and of the tree. */
void delayed_see_leaf(struct delayed_tree *t, const struct btrkit_key *key, const struct cursor *c);
/* An item of the tree waits. @return false: its leaf need not be copied for that, or must be for another one too */
bool delayed_count_leaf(struct delayed_tree *t, const struct btrkit_key *key);
/* All of what waits is taken over. */
void delayed_forget_leaves(struct delayed_tree *t);
/*
 * What a shard has taken over to run: puts back what had better wait, and adds what that was granted for. The newest
 * inodes where space is short, new directories where memory is.
 */
void delayed_keep_newest(struct delayed_tree *t, struct delayed_shard *s, struct ticket_amount *kept);
void delayed_keep_directories(struct delayed_shard *s, struct ticket_amount *kept);

#endif
