/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_TICKET_H
#define BTRKIT_TXN_TICKET_H

/*
 * Reservations: before an operation changes anything it reserves what the items that it changes may come to in tree
 * blocks, those of the commit besides. Most are served from a credit that was granted before, or that others have not
 * used. Who finds too little queues; the first in the queue reclaims space in rising order of cost: what waits goes
 * into the trees, so that it is known what it takes; delayed references are applied; a chunk is added; and last, if
 * that is allowed, the transaction is committed, once. Then the operation fails, and nothing was changed. The commit
 * comes first when it frees as much as there is, and what was made room for will soon be gone.
 *
 * As much as Linux keeps as its global reserve is left free for it by all operations but those that remove things.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <btrkit/transaction.h>

#include "lib/base/stripe.h"

struct btrkit_txn;

/* What an operation may change at the most. */
struct ticket_need {
	/*
	 * Of trees of files; of those that are sure to lie in one leaf, and those of a new inode, only one counts. Each
	 * may lie in a leaf of its own.
	 */
	unsigned items;
	uint32_t bytes; /* of those that come or grow, with their headers */
	bool removes;	/* it may use what is kept for Linux */
};

struct ticket_amount {
	int64_t items, bytes;
	int64_t leaves; /* in which the items lie that are in a tree, and as many as there are others */
};

/* What one who is alone may need besides, directly in the trees. */
struct ticket_alone {
	uint64_t blocks; /* of all trees but those that the commit changes */
	uint64_t refs;	 /* extents whose references change */
	uint64_t data;	 /* of these, data that may go */
};

/* What was made sure of last: that so many blocks can be had when so many had been taken. */
struct ticket_promise {
	uint64_t blocks, taken;
};

/* What is granted and waits for who takes it. */
struct ticket_credit {
	atomic_int_fast64_t items, bytes, leaves;
};

/* What threads have of the credit, and what they count: see stripe.h. */
struct ticket_stripe {
	struct ticket_credit credit;
	atomic_uint_fast64_t latency_log2[BTRKIT_RESERVE_BUCKETS];
	char apart[STRIPE_APART];
};

/* Somebody in the queue, or the one who reclaims. */
struct ticket_waiter {
	struct ticket_waiter *next;
	pthread_cond_t turn;
};

struct tickets {
	struct ticket_stripe stripes[STRIPES];
	struct ticket_credit common;   /* the credit that no stripe has */
	struct ticket_credit removals; /* for those only who remove something */
	pthread_mutex_t lock;
	struct ticket_waiter *first, *last;
	pthread_cond_t entered; /* nobody is outside any more */
	/* With the lock. What was granted, the credit too, and is not known to have gone into the trees. */
	struct ticket_amount held;
	struct ticket_amount outside; /* of that, granted to those who are not in the gate yet */
	struct ticket_amount running; /* of that, what is going into the trees now */
	struct ticket_alone alone;
	struct ticket_amount credit; /* that is granted at a time at the most */
	struct ticket_promise promise;
	bool may_commit;
	struct btrkit_reserve_stats stats; /* but for what stripes count; with the lock */
};

void tickets_init(struct tickets *t);
void tickets_destroy(struct tickets *t);

/* Goes through the gate with a reservation. @return 0; -ENOSPC; <0; as delayed_judge() */
int ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* By who is in the gate still: what it was granted and has not used, nor will. */
void ticket_spare(struct btrkit_txn *txn, const struct ticket_amount *spare, bool removes);

/*
 * Commits when an operation has found no space for data, if that is allowed and may free some. Not by who is in the
 * gate. @return 0; -ENOSPC: it was not; <0
 */
int ticket_commit(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Closes the gate for who wants to be alone: see delayed_close(). What he does may change what a reservation comes to,
 * so those who have one already, and are not in the gate, get there before.
 */
void ticket_close(struct btrkit_txn *txn);
/*
 * A reservation for who is alone, while nothing waits; the transaction may have been committed by it, and goes on. What
 * is granted of @need is released by running what waits, the rest by ticket_alone_end().
 */
int ticket_alone(struct btrkit_txn *txn, const struct ticket_need *need, const struct ticket_alone *alone,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
void ticket_alone_end(struct btrkit_txn *txn);

/* With the gate closed: all that operations have put there is taken to run, but what was granted for @kept. */
void tickets_run(struct tickets *t, const struct ticket_amount *kept);
/* It is in the trees. */
void tickets_ran(struct tickets *t);
/* A bound that the credit was granted by has changed: who comes next asks again. */
void tickets_recall(struct tickets *t);

/* Below: what the files of this share. */

struct ticket_amount ticket_amount_of(const struct ticket_need *need);
void ticket_add(struct ticket_amount *to, const struct ticket_amount *a);
void ticket_subtract(struct ticket_amount *from, const struct ticket_amount *a);
void ticket_give(struct ticket_credit *c, const struct ticket_amount *a);
/* Of what the thread has, or others have left. By who is in the gate. @return whether there was so much */
bool tickets_take(struct tickets *t, const struct ticket_need *need);
/* What all threads have left over is for whoever comes first. By who has the turn. */
void tickets_gather(struct tickets *t);
/* Of a reservation that is made. */
void tickets_count_latency(struct tickets *t, uint64_t ns);
void tickets_count_step(struct tickets *t, uint64_t *step);

#endif
