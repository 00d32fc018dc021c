/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_DELAYED_H
#define BTRKIT_TXN_DELAYED_H

/*
 * Delayed items: what operations change of the items of trees of files waits in memory, by inode, and goes into the
 * trees in the order of keys, as many items at a time as a leaf can hold.
 *
 * Any number of threads work at once. Each is inside the gate while it does, and has the locks of the inodes whose
 * items it asks for or changes: an inode's lock is that of its shard, so two inodes may have the same one. Who has to
 * be alone closes the gate instead and needs no locks.
 *
 * What waits is taken over at once by who runs it, and new changes are collected beside it: a tree is locked for a
 * batch at a time, and what a batch had reserved is released without its lock.
 *
 * A reference to file data is added when an item that makes it is put here, and dropped when that goes: an item that
 * never came into the tree at once, one that the tree has when it is taken out there, since a copy of its leaf may add
 * the reference before. So delayed references are not to be applied while an item waits that drops one and another
 * waits that needs the extent; they are not, since what is added is added first.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "lib/base/gate.h"
#include "lib/base/pool.h"
#include "lib/base/stripe.h"
#include "lib/tree/edit.h"
#include "lib/txn/ticket.h"

#define DELAYED_SHARDS 64u
#define DELAYED_LEAVES 1024u
#define DELAYED_SEEN 3u

struct btrkit_txn;
struct delayed_inode;
struct delayed_batch;

/* What is looked for stands in the table itself: what it leads to is seldom in the processor's cache. */
struct delayed_slot {
	uint64_t objectid;
	struct delayed_inode *in; /* NULL: it is free */
};

/* A leaf that somebody has looked into: all keys from the first up to the last belong there. */
struct delayed_seen {
	uint64_t bytenr; /* 0: none */
	bool own;	 /* it will not be copied any more */
	struct btrkit_key first, last;
};

/* The inodes of a shard that have items here. */
struct delayed_table {
	struct delayed_slot *slots; /* by objectid, with open addressing */
	size_t size, n;
	struct pool inodes, items;
};

struct delayed_shard {
	pthread_mutex_t lock;
	struct delayed_table now;     /* what operations change */
	struct delayed_table running; /* what is going into the tree: it changes no more */
	size_t bytes; /* of memory that items take which wait, about */
	size_t uncounted; /* of these, not in struct delayed's waiting yet */
	int64_t places; /* that items waited for at any time, of each new inode one; but each of its entries */
	int64_t leaves; /* that they were in, and one for each new one of those: see delayed_leaves.c */
	struct delayed_seen seen[DELAYED_SEEN];
	char apart[STRIPE_APART];
};

/* The items of one tree. */
struct delayed_tree {
	struct delayed_tree *next;
	struct delayed *delayed;
	uint64_t id;
	struct edit_tree *edit; /* with the lock of trees */
	uint64_t blocks; /* that the tree had when the transaction began */
	bool read_only; /* changes only while somebody is alone, like the next */
	atomic_bool deleted;
	char apart[STRIPE_APART];
	struct delayed_shard shards[DELAYED_SHARDS];
	atomic_uint_fast64_t leaves[DELAYED_LEAVES]; /* in which something waits, by their address */
	atomic_uint_fast64_t next_inode; /* 0: not looked for yet */
};

/* What made the transaction fail, as it was told first. */
struct delayed_failure {
	pthread_mutex_t lock; /* after all others */
	struct btrkit_error first;
	bool of_commit; /* then that tells the state, too */
	enum btrkit_commit_state state;
};

struct delayed {
	struct btrkit_txn *txn;
	struct gate gate;
	pthread_rwlock_t trees; /* for reading blocks; for writing by who changes them */
	pthread_mutex_t lock;	/* of space and references */
	pthread_mutex_t run;	/* one runs at a time */
	pthread_mutex_t renames; /* before all others: directories go from one into another one at a time */
	_Atomic(struct delayed_tree *) list; /* grows at its beginning, with the lock of trees */
	struct delayed_batch *batch; /* that is put together, with the lock of runs */
	struct tickets tickets;
	atomic_bool failed;	/* a change was half done, or a commit failed */
	struct delayed_failure failure;
	atomic_size_t waiting; /* bytes of memory that what waits takes, about, but for what the last run left */
	size_t waiting_max;    /* much, of that */
	atomic_bool running;   /* much is */
	atomic_bool full; /* a device had no space for data, which neither smaller steps nor a commit help against */
};

int delayed_create(struct btrkit_txn *txn, struct delayed **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops what waits. NULL is allowed. */
struct delayed *delayed_destroy(struct delayed *d);

/*
 * A change was half done, with what was told of that in @err, which may be NULL: the transaction has failed, and tells
 * what was told first from now on. @return @ret
 */
int delayed_fail(struct delayed *d, int ret, const struct btrkit_error *err);
/* The same by a commit. What that told of the state is told on. */
int delayed_fail_commit(struct delayed *d, int ret, const struct btrkit_error *err, enum btrkit_commit_state state);
/* @return 0; <0: the transaction has failed, and this is what was told first */
int delayed_judge(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @return whether a commit has failed; then @state is what it left */
bool delayed_commit_failed(struct delayed *d, enum btrkit_commit_state *state);

/* A subvolume goes, by who is alone while nothing waits: whoever has its tree here finds that out in the gate. */
void delayed_forget_tree(struct delayed *d, uint64_t id);
/* It may be written no longer, or again. In the same way. */
void delayed_set_read_only(struct delayed *d, uint64_t id, bool read_only);

/* Both locks: trees and space may be changed. */
void delayed_lock_trees(struct delayed *d);
void delayed_unlock_trees(struct delayed *d);

/* The tree of a subvolume that is in use. @return 0; -ENOENT; <0 */
int delayed_tree(struct delayed *d, uint64_t id, struct delayed_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The locks of up to six inodes, in an order that cannot lock up. */
struct delayed_locks {
	struct delayed_shard *held[6];
	unsigned n;
	struct ticket_amount places; /* that were waited for when they were taken */
};
void delayed_lock(struct delayed_tree *t, const uint64_t *inodes, unsigned n, struct delayed_locks *ret);
/* Those of two inodes that may be of two trees, likewise. */
void delayed_lock_two(struct delayed_tree *a, uint64_t inode, struct delayed_tree *b, uint64_t other,
		      struct delayed_locks *ret);
/* That of OID_ORPHAN besides those of inodes of the same tree: it comes last, and is taken when it is needed. */
void delayed_lock_orphans(struct delayed_tree *t, struct delayed_locks *l);
/* How many places items wait for since then that nobody waited for before, and leaves: see struct ticket_need. */
struct ticket_amount delayed_places(const struct delayed_locks *l);
void delayed_unlock(struct delayed_locks *l);

/*
 * Who reads: what is found lies in its buffer or in memory of the delayed items, and is valid until the reader is used
 * again, the item is changed, or the lock is given back.
 */
struct delayed_reader {
	uint8_t *buf;
	size_t size;
};
void delayed_reader_release(struct delayed_reader *r);

/* The item with that key. @return 0; 1 there is none; <0 */
int delayed_find(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The first item of the key's inode that is not below it. @r: NULL for its key alone. @return 0; 1 there is none; <0 */
int delayed_seek(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The last item of the key's inode that is not above it. @r: NULL for its key alone. @return 0; 1 there is none; <0 */
int delayed_seek_back(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What follows fails half way only for want of memory, or for what references do: then the transaction has failed. */

/* All items of the inode that come are new: the tree is not searched for them. @return 0; -ENOMEM */
int delayed_new_inode(struct delayed_tree *t, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * An item that is not there. Its bytes are @size of @data, or the caller's to fill in before the lock is given back if
 * @data is NULL. @ret may be NULL. @return 0; -EEXIST; -EINVAL: larger than a leaf; <0
 */
int delayed_insert(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		   uint8_t **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Other contents, of any size, for an item that is there. @data is not of the item itself. @return as above; -ENOENT */
int delayed_replace(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* An item that is there goes. @return 0; -ENOENT: it has gone already; <0 */
int delayed_delete(struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * All that waits goes into the trees; others go on meanwhile. Not by who is in the gate.
 * @return 0; -EUCLEAN, <0: the transaction has failed
 */
int delayed_run(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same but for inodes that have just been made. */
int delayed_run_older(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * By who has ended an operation: when much waits what may goes into the trees, by one at a time. Where it fails the
 * transaction has failed, and tells who comes next.
 */
void delayed_run_much(struct delayed *d);
/* Whether anything waits. Not by who has the lock of an inode. */
bool delayed_waits(struct delayed *d);

/* To be alone: nobody is in the gate, and nothing is run, until delayed_open(). Not by who is in the gate. */
void delayed_close(struct delayed *d);
void delayed_open(struct delayed *d);
/* The same by who is alone. */
int delayed_run_alone(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The transaction goes on as the next one, all of what waited being in the trees: finds these anew. */
int delayed_go_on(struct delayed *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A number for a new inode. @return 0; -ENOSPC: there is none; <0 */
int delayed_take_inode(struct delayed_tree *t, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The index for a directory's next entry: behind all that it has. @return 0; <0 */
int delayed_next_index(struct delayed_tree *t, struct delayed_reader *r, uint64_t dir, uint64_t *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bits that operations remember of an inode, if they like, until what waits goes into the trees. @return 0; -ENOMEM */
int delayed_notes(struct delayed_tree *t, uint64_t inode, uint8_t **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
