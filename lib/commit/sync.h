/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_SYNC_H
#define BTRKIT_COMMIT_SYNC_H

/*
 * The locks of a transaction. A thread takes those that it needs in this order, and never waits for one before another
 * that it holds:
 *
 *   1. the turn in the queue for space (reservations), which is no lock, but is waited for like one
 *   2. runs: one thread at a time inserts delayed items into the trees
 *   3. the gate: inside are all threads that work on the transaction; whoever closes it works alone
 *   4. renames: one thread at a time moves a directory to another directory
 *   5. inodes, by tree and shard (delayed items)
 *   6. trees: read lock to read their blocks, write lock to change them
 *   7. space: allocation, references and checksums that are not in trees yet, the new superblock
 *   8. the counters of reservations, and the failure
 *
 * A thread inside the gate must not wait for 1 or 2, since whoever holds these may be closing the gate.
 */

#include <pthread.h>

#include "lib/base/gate.h"

struct txn_sync {
	struct gate gate;
	pthread_mutex_t runs, renames, space;
	pthread_rwlock_t trees;
};

void sync_init(struct txn_sync *s);
void sync_destroy(struct txn_sync *s);

/* Enters the gate, and leaves it. A thread waits here while another one works alone. */
static inline void sync_enter(struct txn_sync *s)
{
	gate_enter(&s->gate);
}

static inline void sync_leave(struct txn_sync *s)
{
	gate_leave(&s->gate);
}

/* Closes the gate and waits until nobody is inside. Not by a thread inside. */
static inline void sync_close_gate(struct txn_sync *s)
{
	gate_close(&s->gate);
}

static inline void sync_open_gate(struct txn_sync *s)
{
	gate_open(&s->gate);
}

/* Only one thread runs delayed items. Not by a thread inside the gate. */
static inline void sync_lock_runs(struct txn_sync *s)
{
	pthread_mutex_lock(&s->runs);
}

static inline void sync_unlock_runs(struct txn_sync *s)
{
	pthread_mutex_unlock(&s->runs);
}

/* Begins exclusive use: until its end nobody is in the gate, and nothing is run. Not by a thread inside the gate. */
static inline void sync_begin_exclusive(struct txn_sync *s)
{
	sync_lock_runs(s);
	sync_close_gate(s);
}

static inline void sync_end_exclusive(struct txn_sync *s)
{
	sync_open_gate(s);
	sync_unlock_runs(s);
}

static inline void sync_lock_renames(struct txn_sync *s)
{
	pthread_mutex_lock(&s->renames);
}

static inline void sync_unlock_renames(struct txn_sync *s)
{
	pthread_mutex_unlock(&s->renames);
}

/* Keeps the trees as they are, for reading them. Many threads may do so at once. */
static inline void sync_rdlock_trees(struct txn_sync *s)
{
	pthread_rwlock_rdlock(&s->trees);
}

static inline void sync_rdunlock_trees(struct txn_sync *s)
{
	pthread_rwlock_unlock(&s->trees);
}

static inline void sync_lock_space(struct txn_sync *s)
{
	pthread_mutex_lock(&s->space);
}

static inline void sync_unlock_space(struct txn_sync *s)
{
	pthread_mutex_unlock(&s->space);
}

/* Locks trees and space, for changing trees. */
static inline void sync_lock_trees(struct txn_sync *s)
{
	pthread_rwlock_wrlock(&s->trees);
	sync_lock_space(s);
}

static inline void sync_unlock_trees(struct txn_sync *s)
{
	sync_unlock_space(s);
	pthread_rwlock_unlock(&s->trees);
}

#endif
