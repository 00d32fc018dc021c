// SPDX-License-Identifier: LGPL-2.1-or-later
/* Life cycle of a transaction: start, abort, commit. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/clock.h"
#include "lib/commit/commit.h"
#include "lib/commit/data.h"
#include "lib/commit/sync_supers.h"
#include "lib/delayed/delayed.h"
#include "lib/format/items/qgroup.h"
#include "lib/reserve/ticket.h"

/* Size of blocks in memory from which on full leaves are written before the commit. */
#define EARLY_BYTES (32u << 20)

static void destroy_writer(struct writer *w)
{
	btrkit_txn_abort(w->txn);
	space_destroy(w->space);
	failure_destroy(&w->failure);
	free(w);
}

/* Refuses further writes, with the first error of a failed commit. */
static int refuse(struct writer *w, struct btrkit_error *err)
{
	static const char before[] = "an earlier transaction failed: ";
	const int room = (int)(sizeof(err->message) - sizeof(before));
	struct btrkit_error why = BTRKIT_ERROR_INIT;

	if (failure_check(&w->failure, &why) && err) {
		*err = why;
		err->code = BTRKIT_SYSTEM;
		err->err = -EROFS;
		snprintf(err->message, sizeof(err->message), "%s%.*s", before, room, why.message);
	}
	return -EROFS;
}

static int get_writer(struct btrkit_fs *fs, struct writer **ret, struct btrkit_error *err)
{
	struct writer *w = fs->writer;
	int r;

	if (!fs->writable)
		return err_system(err, EROFS, "the filesystem was not opened for writing");
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return err_nomem(err);
		w->fs = fs;
		r = space_create(fs, &w->space, err);
		if (r) {
			free(w);
			return r;
		}
		failure_init(&w->failure);
		fs->writer = w;
		fs->writer_destroy = destroy_writer;
	}
	if (failure_of_commit(&w->failure, NULL))
		return refuse(w, err);
	if (w->txn)
		return err_set(err, BTRKIT_BUSY, "a transaction is open already");
	r = w->level ? 0 : commit_sync_supers(fs, err);
	if (r)
		return r;
	w->level = true;
	*ret = w;
	return 0;
}

/* Determines whether quotas are enabled, at the start: operations need to know before they wait for a commit. */
static int read_quotas(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	struct qgroup_status status;
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = fs_try_root(fs, OID_QUOTA_TREE, &root, NULL, err);
	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, fs, &root);
	ret = cursor_find(&c, &KEY(0, KEY_QGROUP_STATUS, 0), err);
	if (!ret)
		ret = cursor_blame(&c, qgroup_status_decode(&c.item, &status, err), err);
	cursor_release(&c);
	if (!ret && status.flags & QGROUP_STATUS_ON) {
		txn->simple_quota = status.flags & QGROUP_STATUS_SIMPLE_MODE;
		txn->quotas = !txn->simple_quota;
	}
	return ret < 0 ? ret : 0;
}

static void free_txn(struct btrkit_txn *txn)
{
	delayed_destroy(txn->delayed);
	tickets_destroy(txn->tickets);
	sync_destroy(&txn->sync);
	free(txn);
}

static int start_txn(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err)
{
	struct writer *w = NULL;
	struct btrkit_txn *txn;
	int r;

	r = get_writer(fs, &w, err);
	if (r)
		return r;
	txn = calloc(1, sizeof(*txn));
	if (!txn)
		return err_nomem(err);
	txn->fs = fs;
	txn->writer = w;
	txn->failure = &w->failure;
	txn->space = w->space;
	txn->early_bytes = EARLY_BYTES;
	sync_init(&txn->sync);
	r = tickets_create(&txn->tickets, err);
	if (!r) {
		const struct delayed_watch watch = tickets_watch(txn->tickets);

		r = delayed_create(txn, &watch, &txn->delayed, err);
	}
	if (!r)
		r = read_quotas(txn, err);
	if (!r)
		r = txn_begin(txn, err);
	if (r) {
		free_txn(txn);
		return r;
	}
	w->txn = txn;
	fs->unwritten = txn_read_unwritten;
	*ret = txn;
	return 0;
}

int btrkit_txn_start(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, start_txn(fs, ret, &own));
}

static void end(struct btrkit_txn *txn)
{
	txn->fs->unwritten = NULL;
	txn->writer->txn = NULL;
	txn_drop(txn);
	failure_forget(txn->failure);
	free_txn(txn);
}

struct btrkit_txn *btrkit_txn_abort(struct btrkit_txn *txn)
{
	if (txn)
		end(txn);
	return NULL;
}

int btrkit_txn_failure(struct btrkit_txn *txn, struct btrkit_error *err)
{
	return failure_check(txn->failure, err);
}

int btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err)
{
	const uint64_t start = now_ns();
	enum btrkit_commit_state reached;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int ret;

	sync_begin_exclusive(&txn->sync);
	ret = commit_txn(txn, start, delayed_run_exclusive(txn->delayed, &own), &reached, &own);
	sync_end_exclusive(&txn->sync);
	end(txn);
	if (state)
		*state = reached;
	return err_pass(err, &own, ret);
}

int btrkit_txn_commit_and_continue(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err)
{
	const int ret = ticket_commit_now(txn, err);

	/* If the commit has not failed, what failed is the beginning of what comes next. */
	if (state && !failure_of_commit(txn->failure, state))
		*state = BTRKIT_COMMIT_NEW;
	return ret;
}

void btrkit_fs_get_write_stats(const struct btrkit_fs *fs, struct btrkit_write_stats *stats)
{
	static const struct btrkit_write_stats none;

	*stats = fs->writer ? fs->writer->stats : none;
}
