/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_RESERVE_TICKET_H
#define BTRKIT_RESERVE_TICKET_H

/*
 * Reservations: before an operation changes anything, it reserves the tree blocks that its changes may need, including
 * those of the commit. Most reservations are served from a credit that was granted before, or that others have not
 * used. Operations that find too little queue. The first in the queue reclaims space, in order of increasing cost:
 * delayed items are run, after which it is known what they take; delayed references are applied; a chunk is allocated;
 * and finally, if allowed, the transaction is committed, once. If that is not enough, the operation fails, and nothing
 * was changed. The commit comes earlier if it frees at least as much as is free, because what the other steps gain
 * would soon be used up.
 *
 * All operations except removals leave as much space free as Linux keeps as its global reserve.
 *
 * The queue is in ticket.c, credit and its release in ticket_credit.c, and exclusive operations in ticket_exclusive.c.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <btrkit/transaction.h>

#include "lib/base/percpu.h"
#include "lib/delayed/delayed.h"

struct btrkit_txn;

/* Maximum changes of an operation. */
struct ticket_need {
	/*
	 * Items of file trees. Of items that are certain to be in the same leaf, and of those of a new inode, only one
	 * counts. Each may be in a leaf of its own.
	 */
	unsigned items;
	uint32_t bytes; /* of items that are inserted or grow, including headers */
	bool removes;	/* it may use the space kept for Linux */
};

/* What a thread with exclusive use may need in addition, directly in the trees. */
struct ticket_exclusive {
	uint64_t blocks; /* of all trees except those that the commit changes */
	uint64_t refs;	 /* extents whose references change */
	uint64_t data;	 /* of these, data that may be freed */
};

/* The last guarantee: @blocks more could be allocated when @taken had been. */
struct ticket_promise {
	uint64_t blocks, taken;
};

/* Granted credit that nobody has taken yet. */
struct ticket_credit {
	atomic_int_fast64_t items, bytes, leaves;
};

/* Credit and counters of some threads: see stripe.h. */
struct ticket_stripe {
	struct ticket_credit credit;
	atomic_uint_fast64_t latency_log2[BTRKIT_RESERVE_BUCKETS];
	char apart[PERCPU_APART];
};

/* An operation in the queue; the first one reclaims space. */
struct ticket_waiter {
	struct ticket_waiter *next;
	pthread_cond_t turn;
};

struct tickets {
	struct ticket_stripe stripes[PERCPU_SLOTS];
	struct ticket_credit common;   /* credit that is in no stripe */
	struct ticket_credit removals; /* only for operations that remove something */
	pthread_mutex_t lock;
	struct ticket_waiter *first, *last;
	pthread_cond_t entered; /* all granted operations have entered the gate */
	/*
	 * The following need @lock. This one is granted, including credit, and not known to have been inserted into the
	 * trees.
	 */
	struct delayed_amount held;
	struct delayed_amount outside; /* of that, granted to operations that are not in the gate yet */
	struct delayed_amount running; /* of that, being inserted into the trees now */
	struct ticket_exclusive exclusive;
	struct delayed_amount credit; /* maximum credit granted at a time */
	struct ticket_promise promise;
	bool may_commit;
	atomic_bool device_full; /* no space for data, and neither smaller steps nor a commit help */
	struct btrkit_reserve_stats stats; /* except for what stripes count */
};

/* In ticket_credit.c: */
int tickets_create(struct tickets **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct tickets *tickets_destroy(struct tickets *t);
/* What reservations have to know of delayed items. */
struct delayed_watch tickets_watch(struct tickets *t);

/* In ticket.c: */
/* Reserves space and enters the gate. @return 0; -ENOSPC; <0; as failure_check() */
int ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In ticket_credit.c: */
/* Gives back what was granted and will not be used. The caller is still in the gate. */
void ticket_spare(struct btrkit_txn *txn, const struct delayed_amount *spare, bool removes);

/* In ticket.c: */
/*
 * Commits because an operation has found no space for data, if that is allowed and may free some. Not by a thread
 * inside the gate.
 * @return 0; -ENOSPC: not committed; <0
 */
int ticket_commit(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Commits because somebody wants that, and continues. Not by a thread inside the gate. */
int ticket_commit_now(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Closes the gate for a thread that needs exclusive use: see sync.h. What it does may change what a reservation
 * is worth, so operations that have one and are not in the gate enter it first.
 */
void ticket_close(struct btrkit_txn *txn);

/* In ticket_exclusive.c: */
/*
 * Reserves space for a thread with exclusive use, while nothing is delayed. This may commit the transaction, which then
 * continues. What is granted for @need is released by running the delayed items, the rest by ticket_exclusive_end().
 */
int ticket_exclusive(struct btrkit_txn *txn, const struct ticket_need *need, const struct ticket_exclusive *exclusive,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
void ticket_exclusive_end(struct btrkit_txn *txn);

/* In ticket_credit.c: */
/* Takes back all credit, because a bound that it was granted by has changed. The next operation has to ask again. */
void tickets_recall(struct tickets *t);

/* A device has refused data for want of space, although the filesystem has some. The next transaction may try again. */
void tickets_set_device_full(struct tickets *t, bool full);
bool tickets_device_full(const struct tickets *t);

/* The following are shared by the files that implement this. */

struct delayed_amount ticket_amount_of(const struct ticket_need *need);
void ticket_give(struct ticket_credit *c, const struct delayed_amount *a);
/* Takes credit of the thread's stripe, or the common one. Only inside the gate. @return whether there was enough */
bool tickets_take(struct tickets *t, const struct ticket_need *need);
/* Makes the credit of all stripes available to everyone. Only by the first in the queue. */
void tickets_gather(struct tickets *t);
/* Counts a reservation that took @ns nanoseconds. */
void tickets_count_latency(struct tickets *t, uint64_t ns);

/* In ticket.c: */
void tickets_count_step(struct tickets *t, uint64_t *step);

#endif
