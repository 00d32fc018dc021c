/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DELAYED_DELAYED_H
#define BTRKIT_DELAYED_DELAYED_H

/*
 * Delayed items: changes of items in file trees are collected in memory, by inode, and inserted into the trees in key
 * order, as many at a time as fit into a leaf.
 *
 * Any number of threads work at once. Each is inside the gate while it works, and holds the locks of the inodes whose
 * items it reads or changes. The lock of an inode is that of its shard, so two inodes may have the same one. A thread
 * that needs exclusive use closes the gate instead, and needs no locks.
 *
 * The thread that runs delayed items takes over all of them at once; new changes are collected separately meanwhile. A
 * tree is locked for one batch at a time, and what the items had reserved is released without that lock.
 *
 * A reference to file data is added when an item with it is delayed. It is dropped when the item is deleted:
 * immediately if the item was not in the tree, otherwise when it is deleted from the tree, because copying its leaf may
 * add the reference first. Delayed references must therefore not be applied while one delayed item drops a reference
 * and another one needs the extent. They are not, because additions come first.
 *
 * The items are in delayed.c, locks of inodes in lock.c, what readers need in read.c, and what runs items in take.c.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "lib/base/pool.h"
#include "lib/base/percpu.h"
#include "lib/delayed/amount.h"
#include "lib/tree/edit.h"

#define DELAYED_SHARDS 64u
#define DELAYED_LEAVES 1024u
#define DELAYED_SEEN 3u

struct btrkit_txn;
struct delayed_inode;
struct delayed_batch;

/* The objectid is in the table itself, because the inode is usually not in the processor's cache. */
struct delayed_slot {
	uint64_t objectid;
	struct delayed_inode *in; /* NULL: free slot */
};

/* A leaf that was looked up: all keys from the first to the last belong there. */
struct delayed_seen {
	uint64_t bytenr; /* 0: none */
	bool own;	 /* private already: it will not be copied */
	struct btrkit_key first, last;
};

/* The inodes of a shard that have delayed items. */
struct delayed_table {
	struct delayed_slot *slots; /* by objectid, open addressing */
	size_t size, n;
	struct pool inodes, items;
};

struct delayed_shard {
	pthread_mutex_t lock;
	struct delayed_table now;     /* changed by operations */
	struct delayed_table running; /* being inserted into the tree: changes no more */
	uint64_t changes; /* of delayed items, since the transaction began */
	size_t bytes; /* approximate memory used by delayed items */
	size_t uncounted; /* part of that not included in struct delayed's waiting yet */
	int64_t places; /* that items have been delayed for: one for a new inode, plus one for each of its entries */
	int64_t leaves; /* that these were in, plus one for each new item: see leaves.c */
	struct delayed_seen seen[DELAYED_SEEN];
	char apart[PERCPU_APART];
};

/* The items of one tree. */
struct delayed_tree {
	struct delayed_tree *next;
	struct delayed *delayed;
	uint64_t id;
	struct edit_tree *edit; /* needs the lock of trees */
	uint64_t blocks; /* in the tree when the transaction began */
	bool read_only; /* like the next one, changes only during exclusive use */
	atomic_bool deleted;
	char apart[PERCPU_APART];
	struct delayed_shard shards[DELAYED_SHARDS];
	atomic_uint_fast64_t leaves[DELAYED_LEAVES]; /* with delayed items, by address */
	atomic_uint_fast64_t next_inode; /* 0: not determined yet */
};

/* Calls to whoever reserves space for delayed items. */
struct delayed_watch {
	/* A tree is used that was not used before. Called with the locks of trees. */
	void (*tree_opened)(void *ctx);
	/* The gate is closed, and all delayed items are being run, except for @kept. */
	void (*taken)(void *ctx, const struct delayed_amount *kept);
	/* These have been inserted into the trees, or the transaction has failed. */
	void (*ran)(void *ctx);
	void *ctx;
};

struct delayed {
	struct btrkit_txn *txn;
	_Atomic(struct delayed_tree *) list; /* grows at the head, with the lock of trees */
	struct delayed_batch *batch; /* being assembled, with the lock of runs */
	struct delayed_watch watch;
	atomic_size_t waiting; /* approximate memory used by delayed items, except for what the last run left */
	size_t waiting_max;    /* limit for that */
	atomic_bool running;   /* delayed items are being run because of it */
};

int delayed_create(struct btrkit_txn *txn, const struct delayed_watch *watch, struct delayed **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops all delayed items. NULL is allowed. */
struct delayed *delayed_destroy(struct delayed *d);

/* In take.c: */
/*
 * Forgets a subvolume that is being deleted. Requires exclusive use, and nothing delayed. Other users notice in the
 * gate.
 */
void delayed_forget_tree(struct delayed *d, uint64_t id);
/* Allow or forbid changes of a subvolume, under the same conditions. */
void delayed_set_read_only(struct delayed *d, uint64_t id, bool read_only);

/* In delayed.c: */
/* Gets the tree of a subvolume that is in use. @return 0; -ENOENT; <0 */
int delayed_tree(struct delayed *d, uint64_t id, struct delayed_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The locks of up to six inodes, taken in an order that prevents deadlocks. */
struct delayed_locks {
	struct delayed_shard *held[6];
	unsigned n;
	struct delayed_amount places; /* counters of the shards when the locks were taken */
	uint64_t changes;
};

/* In lock.c: */
void delayed_lock(struct delayed_tree *t, const uint64_t *inodes, unsigned n, struct delayed_locks *ret);
/* Like delayed_lock(), for two inodes that may be in different trees. */
void delayed_lock_two(struct delayed_tree *a, uint64_t inode, struct delayed_tree *b, uint64_t other,
		      struct delayed_locks *ret);
/*
 * Adds the lock of OID_ORPHAN to those of inodes of the same tree. It comes last, so it can be taken later than the
 * others.
 */
void delayed_lock_orphans(struct delayed_tree *t, struct delayed_locks *l);
/* Places and leaves for which items have been delayed since the locks were taken: see struct delayed_amount. */
struct delayed_amount delayed_places(const struct delayed_locks *l);
/* Whether an item has been changed since the locks were taken, be it half. */
bool delayed_changed(const struct delayed_locks *l);
/* Number of changes of delayed items in all trees since the transaction began. Requires exclusive use. */
uint64_t delayed_num_changes(const struct delayed *d);
void delayed_unlock(struct delayed_locks *l);

/*
 * Buffer of a reader. An item that was found is in the buffer or in memory of the delayed items. It is valid until the
 * reader is used again, the item is changed, or the lock is released.
 */
struct delayed_reader {
	uint8_t *buf;
	size_t size;
};

/* In read.c: */
void delayed_reader_release(struct delayed_reader *r);

/* Finds the item with that key. @return 0; 1: there is none; <0 */
int delayed_find(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finds the first item of the key's inode not below the key. @r: NULL for its key only.
 * @return 0; 1: there is none; <0
 */
int delayed_seek(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finds the last item of the key's inode not above the key. @r: NULL for its key only.
 * @return 0; 1: there is none; <0
 */
int delayed_seek_back(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * If the following functions fail half way (no memory, or an error of references), the transaction has failed. If they
 * fail before they have changed anything, it has not.
 */

/* In delayed.c: */
/* Note that an inode is new: the tree is not searched for its items. @return 0; -ENOMEM */
int delayed_new_inode(struct delayed_tree *t, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Inserts an item that does not exist. Its contents are @size bytes of @data; if that is NULL, the caller fills in
 * *@ret before releasing the lock. Otherwise @ret may be NULL. @return 0; -EEXIST; -EINVAL: too large for a leaf; <0
 */
int delayed_insert(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		   uint8_t **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Replaces the contents of an existing item. @data is not part of the item. @return as above; -ENOENT */
int delayed_replace(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Deletes an existing item. @return 0; -ENOENT: it does not exist any more; <0 */
int delayed_delete(struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In take.c: */
/*
 * Runs all delayed items, that is, inserts them into the trees; others continue meanwhile. Not by a thread inside the
 * gate.
 * @return 0; -EUCLEAN, <0: the transaction has failed
 */
int delayed_run(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like delayed_run(), except for inodes that were created just now. */
int delayed_run_older(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Called after an operation: if delayed items use much memory, run those that may be run, by one thread at a time. If
 * that fails, the transaction has failed, and the next operation reports it.
 */
void delayed_run_much(struct delayed *d);
/* Whether any item is delayed. Not by a thread that holds the lock of an inode. */
bool delayed_waits(struct delayed *d);

/* Runs all delayed items during exclusive use. */
int delayed_run_exclusive(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In delayed.c: */
/* Continues as the next transaction, when nothing is delayed: look up the trees again. */
int delayed_go_on(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In read.c: */
/* Allocates an inode number. @return 0; -ENOSPC: there is none left; <0 */
int delayed_take_inode(struct delayed_tree *t, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Allocates the index of a directory's next entry, greater than all existing ones. @return 0; <0 */
int delayed_next_index(struct delayed_tree *t, struct delayed_reader *r, uint64_t dir, uint64_t *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bits that operations may store for an inode; they are kept until delayed items are run. @return 0; -ENOMEM */
int delayed_notes(struct delayed_tree *t, uint64_t inode, uint8_t **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
