// SPDX-License-Identifier: LGPL-2.1-or-later
#include "modify_between.h"

#include "lib/commit/txn.h"
#include "lib/delayed/delayed.h"
#include "lib/reserve/continue.h"
#include "lib/reserve/ticket.h"

static unsigned every, count;

void between_commit_every(unsigned n)
{
	every = n;
	count = 0;
}

static bool is_time(void)
{
	return every && !(++count % every);
}

int __real_ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err);
int __wrap_ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err);

int __wrap_ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	int ret = 0;

	if (is_time()) {
		tickets_recall(txn->tickets);
		ret = txn_commit_and_go_on(txn, err);
	}
	return ret ? ret : __real_ticket_enter(txn, need, err);
}

int __real_ticket_exclusive(struct btrkit_txn *txn, const struct ticket_need *need,
			    const struct ticket_exclusive *alone, struct btrkit_error *err);
int __wrap_ticket_exclusive(struct btrkit_txn *txn, const struct ticket_need *need,
			    const struct ticket_exclusive *alone, struct btrkit_error *err);

int __wrap_ticket_exclusive(struct btrkit_txn *txn, const struct ticket_need *need,
			    const struct ticket_exclusive *alone, struct btrkit_error *err)
{
	const int ret = is_time() ? txn_commit_exclusive(txn, err) : 0;

	return ret ? ret : __real_ticket_exclusive(txn, need, alone, err);
}
