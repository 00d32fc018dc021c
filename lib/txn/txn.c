// SPDX-License-Identifier: LGPL-2.1-or-later
/* Life cycle of a transaction: start, abort, commit. */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/qgroup.h"
#include "lib/space/free_space_tree.h"
#include "lib/txn/clock.h"
#include "lib/txn/commit.h"
#include "lib/txn/data.h"
#include "lib/txn/delayed.h"
#include "lib/txn/ticket.h"
#include "lib/txn/refs.h"

/* Size of blocks in memory from which on full leaves are written before the commit. */
#define EARLY_BYTES (32u << 20)

/*
 * Without a free space tree, only the extent tree says what is free. If one of its items is missing, existing data
 * would be overwritten. The checksums are the only other evidence of that data.
 */
static int judge_place(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	int ret;

	if (free_space_tree_is_valid(txn->fs->super.compat_ro))
		return 0;
	ret = csums_exist(txn, r, err);
	if (ret != 1)
		return ret;
	err_corrupt(err, NULL, "free space at %" PRIu64 " has checksums: its extent item may be missing", r->start);
	err_at_tree(err, OID_CSUM_TREE);
	err_at_logical(err, r->start);
	return -EUCLEAN;
}

/* Callbacks of the overlay. */

static int alloc_block(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		       struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;
	const uint32_t nodesize = txn->fs->super.nodesize;
	struct extent_change add = {
		.num_bytes = nodesize,
		.level = (uint8_t)level,
		.ref = { .type = KEY_TREE_BLOCK_REF, .root = owner },
		.add = 1,
	};
	struct range r;
	int ret;

	ret = space_alloc(txn->space, owner == OID_CHUNK_TREE ? BG_SYSTEM : BG_METADATA, nodesize, nodesize, nodesize,
			  &r, err);
	/* In mixed block groups, a tree block could overwrite data, too. */
	if (!ret && txn->fs->super.incompat & INCOMPAT_MIXED_GROUPS)
		ret = judge_place(txn, &r, err);
	if (!ret)
		ret = refs_new_extent(txn->refs, &r, false, level, first, err);
	add.bytenr = r.start;
	if (!ret)
		ret = refs_change(txn->refs, &add, err);
	if (!ret)
		*bytenr = r.start;
	return ret;
}

static int lookup_block(void *ctx, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
			struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_lookup(txn->refs, bytenr, level, refs, flags, err);
}

static int change_ref(void *ctx, const struct extent_change *change, struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_change(txn->refs, change, err);
}

static int set_full_backref(void *ctx, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_set_full_backref(txn->refs, bytenr, level, err);
}

static const struct overlay_ops overlay_ops = {
	.alloc = alloc_block,
	.lookup = lookup_block,
	.change = change_ref,
	.set_full_backref = set_full_backref,
};

static void destroy_writer(struct writer *w)
{
	btrkit_txn_abort(w->txn);
	space_destroy(w->space);
	failure_destroy(&w->failure);
	free(w);
}

/* Refuse further writes, with the first error of a failed commit. */
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
	r = w->level ? 0 : commit_level_supers(fs, err);
	if (r)
		return r;
	w->level = true;
	*ret = w;
	return 0;
}

/* Determine whether quotas are enabled, at the start: operations need to know before they wait for a commit. */
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

/* Create the state of a new generation, which drop() frees. On failure nothing of it remains. */
static int begin(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	int ret;

	/* Items may have the superblock's generation plus one, which must still exist after the commit. */
	if (fs->super.generation >= UINT64_MAX - 1)
		return err_corrupt(err, "generation", "superblock has the highest possible generation");
	txn->super = fs->super.disk;
	txn->generation = fs->super.generation + 1;
	txn->free_space_tree = free_space_tree_is_valid(fs->super.compat_ro);
	ret = refs_create(txn, &txn->refs, err);
	if (!ret)
		ret = overlay_create(fs, txn->generation, &overlay_ops, txn, txn->failure, &txn->overlay, err);
	if (!ret)
		ret = space_begin(txn->space, txn->overlay, err);
	if (ret) {
		txn->overlay = overlay_abort(txn->overlay);
		txn->refs = refs_destroy(txn->refs);
	}
	return ret;
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
		r = begin(txn, err);
	if (r) {
		free_txn(txn);
		return r;
	}
	w->txn = txn;
	*ret = txn;
	return 0;
}

int btrkit_txn_start(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, start_txn(fs, ret, &own));
}

/* Drop all changes: the filesystem is what is on the devices. */
static void drop(struct btrkit_txn *txn)
{
	if (txn->overlay) {
		txn->overlay = overlay_abort(txn->overlay);
		space_aborted(txn->space);
	}
	txn_data_free(txn);
	csums_free(&txn->csums);
	txn->refs = refs_destroy(txn->refs);
}

static void end(struct btrkit_txn *txn)
{
	txn->writer->txn = NULL;
	drop(txn);
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

int txn_tree(struct btrkit_txn *txn, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	return overlay_tree(txn->overlay, id, ret, err);
}

int txn_change_data_ref(struct btrkit_txn *txn, const struct extent_change *change, struct btrkit_error *err)
{
	return failure_note_any(txn->failure, refs_change(txn->refs, change, err), err);
}

/* Space for data was allocated. If this fails, the transaction does. */
static int new_data(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	int ret = judge_place(txn, r, err);

	if (!ret)
		ret = refs_new_extent(txn->refs, r, true, 0, NULL, err);
	return failure_note_any(txn->failure, ret, err);
}

int txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	struct range r;
	int res;

	res = space_alloc(txn->space, BG_DATA, min, max, txn->fs->super.sectorsize, &r, err);
	if (!res)
		res = new_data(txn, &r, err);
	if (!res)
		*ret = r;
	return res;
}

int txn_alloc_data_exact(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	const struct space_group *g = space_group_of(txn->space, r->start);
	int ret;

	if (g && !(g->item.flags & BG_DATA)) {
		ret = err_corrupt(err, NULL, "range of %" PRIu64 " bytes for data is in a block group for metadata",
				  r->length);
		err_at_logical(err, r->start);
		return ret;
	}
	ret = space_alloc_exact(txn->space, r, err);
	return ret ? ret : new_data(txn, r, err);
}

uint64_t txn_bytes(const struct btrkit_txn *txn)
{
	return overlay_in_memory(txn->overlay) * (sizeof(struct node) + txn->fs->super.nodesize) + txn->data_bytes;
}

static bool changed_anything(const struct btrkit_txn *txn)
{
	return txn->overlay->num_nodes || refs_pending(txn->refs) || txn->csums.n ||
	       memcmp(&txn->super, &txn->fs->super.disk, sizeof(txn->super));
}

/* Call the verify callback. Trees that it reads come from the devices. */
static int verify(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	int ret;

	if (!txn->verify)
		return 0;
	fs->overlay = NULL;
	ret = txn->verify(txn->verify_ctx, txn, err);
	fs->overlay = txn->overlay;
	return ret;
}

/* Write everything, up to the last flush. @state: state of the filesystem, also after a failure */
static int write_all(struct btrkit_txn *txn, struct commit_supers **supers, enum btrkit_commit_state *state,
		     struct btrkit_error *err)
{
	int ret = commit_settle(txn, err);

	if (!ret)
		ret = commit_supers_make(txn, supers, err);
	if (!ret)
		ret = commit_supers_reserve(*supers, err);
	if (!ret)
		ret = commit_supers_check(txn->fs, err);
	if (!ret)
		ret = commit_write_blocks(txn, err);
	if (!ret)
		ret = verify(txn, err);
	if (ret)
		return ret;
	*state = BTRKIT_COMMIT_UNKNOWN;
	ret = commit_supers_write(txn, *supers, 0, err);
	if (!ret)
		ret = commit_flush(txn, err);
	if (ret)
		return ret;
	*state = BTRKIT_COMMIT_NEW;
	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		ret = commit_supers_write(txn, *supers, mirror, err);
	return ret ? ret : commit_flush(txn, err);
}

static void tell_state(enum btrkit_commit_state state, struct btrkit_error *err)
{
	static const char *const words[] = {
		[BTRKIT_COMMIT_OLD] = "; the filesystem is unchanged",
		[BTRKIT_COMMIT_NEW] = "; the filesystem was changed, but not all superblock mirrors were updated",
		[BTRKIT_COMMIT_UNKNOWN] = "; it is unknown whether the filesystem was changed",
	};
	const size_t room = sizeof(err->message) - strlen(words[state]) - 1;

	if (!err)
		return;
	if (strlen(err->message) > room)
		err->message[room] = '\0';
	strcat(err->message, words[state]);
}

/* Waiting operations may be reading the sector and node sizes, so leave these, which never change, untouched. */
static void take_super(struct super *to, const struct super *from)
{
	const size_t sizes = offsetof(struct super, sectorsize), rest = offsetof(struct super, compat);

	memcpy(to, from, sizes);
	memcpy((uint8_t *)to + rest, (const uint8_t *)from + rest, sizeof(*to) - rest);
}

/* Make the handle use the state that is on the devices now. */
static void become_new(struct btrkit_txn *txn, const struct super *super)
{
	struct btrkit_fs *fs = txn->fs;
	struct btrkit_write_stats *stats = &txn->writer->stats;

	stats->commits++;
	stats->nodes_copied += txn->overlay->copied;
	stats->nodes_created += txn->overlay->created;
	take_super(&fs->super, super);
	fs->items = super_item_ctx(super);
	txn->overlay = overlay_commit(txn->overlay);
	space_committed(txn->space);
	drop(txn);
}

/*
 * Commit, after all delayed items have been run. @start: when that began; @ret: its result. Afterwards the transaction
 * has nothing left of what begin() creates, whatever is returned. @err must not be NULL, because the error is reported
 * again later.
 */
static int commit(struct btrkit_txn *txn, uint64_t start, int ret, enum btrkit_commit_state *state,
		  struct btrkit_error *err)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD;
	struct commit_supers *supers = NULL;
	/* If an earlier commit failed, its error already says what state it left. */
	const bool before = failure_of_commit(txn->failure, &reached);

	if (!ret)
		ret = failure_check(txn->failure, err);
	if (!ret && !changed_anything(txn)) {
		drop(txn);
		*state = BTRKIT_COMMIT_NEW;
		return 0;
	}
	if (!ret)
		ret = write_all(txn, &supers, &reached, err);
	if (supers && reached == BTRKIT_COMMIT_NEW)
		become_new(txn, commit_supers_decoded(supers));
	else
		drop(txn);
	commit_supers_free(supers);
	if (ret && !before)
		tell_state(reached, err);
	if (ret)
		failure_note_commit(txn->failure, ret, err, reached);
	txn->writer->stats.commit_ns += now_ns() - start;
	*state = reached;
	return ret;
}

int btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err)
{
	const uint64_t start = now_ns();
	enum btrkit_commit_state reached;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int ret;

	sync_begin_exclusive(&txn->sync);
	ret = commit(txn, start, delayed_run_alone(txn->delayed, &own), &reached, &own);
	sync_end_exclusive(&txn->sync);
	end(txn);
	if (state)
		*state = reached;
	return err_pass(err, &own, ret);
}

/* Continue as the next transaction. */
static int go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const int ret = begin(txn, err);

	tickets_set_device_full(txn->tickets, false);
	return ret ? ret : delayed_go_on(txn->delayed, err);
}

int txn_commit_alone(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t start = now_ns();
	enum btrkit_commit_state reached;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int ret;

	/* The error is reported again later. */
	err = err ? err : &own;
	/* Unused credit was granted for this transaction. */
	tickets_recall(txn->tickets);
	ret = delayed_run_alone(txn->delayed, err);
	/* Threads before the gate may open trees or reserve space, but not while one transaction replaces the other. */
	sync_lock_trees(&txn->sync);
	ret = commit(txn, start, ret, &reached, err);
	if (!ret)
		ret = failure_note_any(txn->failure, go_on(txn, err), err);
	sync_unlock_trees(&txn->sync);
	return ret;
}

int txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret;

	sync_begin_exclusive(&txn->sync);
	ret = txn_commit_alone(txn, err);
	sync_end_exclusive(&txn->sync);
	return ret;
}

void btrkit_fs_get_write_stats(const struct btrkit_fs *fs, struct btrkit_write_stats *stats)
{
	static const struct btrkit_write_stats none;

	*stats = fs->writer ? fs->writer->stats : none;
}
