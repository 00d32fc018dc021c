// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A thread reserved space while leaves were not shared, and another one makes a snapshot before that space is used.
 * With shared leaves more is needed, so the snapshot must wait: no space may be promised twice.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include <btrkit/subvolume_modify.h>

#include "lib/delayed/delayed.h"
#include "lib/format/items/files/inode.h"
#include "lib/reserve/bound.h"
#include "lib/reserve/reserve.h"
#include "lib/reserve/ticket.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define FILES 200u
#define SECTORS 6000u

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 400 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 400 } },
};

static struct btrkit_error err = BTRKIT_ERROR_INIT;
static struct btrkit_txn *txn;
static uint64_t inodes[FILES];

/* Extents of one sector each, in a different order than in their files, so that their references are far apart. */
static void make_files(struct btrkit_fs *fs)
{
	static uint8_t bytes[4096];
	uint32_t at = 0;
	char name[16];

	memset(bytes, 7, sizeof(bytes));
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	for (unsigned i = 0; i < FILES; i++) {
		const size_t len = (size_t)snprintf(name, sizeof(name), "%u", i);

		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &inodes[i], &err), &err);
	}
	for (unsigned i = 0; i < SECTORS; i++) {
		/* Coprime to their number, so that each is written once. */
		at = (at + 3701) % SECTORS;
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inodes[at % FILES], at / FILES * 8192ull, bytes,
					   sizeof(bytes), NULL, &err),
			  &err);
	}
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

static const struct ticket_need need = { .items = FILES };

/* Does what an operation does between its reservation and entering the gate. */
static void reserve(void)
{
	struct tickets *t = txn->tickets;
	const struct delayed_amount all = { need.items, need.bytes };
	struct delayed_amount none = { 0 };
	struct delayed_tree *tree;

	rig_check(delayed_tree(txn->delayed, BTRKIT_TOP_LEVEL, &tree, &err), &err);
	sync_enter(&txn->sync);
	sync_lock_trees(&txn->sync);
	pthread_mutex_lock(&t->lock);
	assert_int_equal(t->held.items, 0);
	rig_check(txn_reserve_items(txn, &all, &need, &none, TXN_CHUNKS, &err), &err);
	t->held = t->outside = all;
	pthread_mutex_unlock(&t->lock);
	sync_unlock_trees(&txn->sync);
	sync_leave(&txn->sync);
}

static void change(struct delayed_tree *tree, struct delayed_reader *reader, uint64_t inode)
{
	const struct btrkit_key key = KEY(inode, KEY_INODE_ITEM, 0);
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	struct disk_inode_item in;
	struct delayed_locks locks;
	struct item item;

	delayed_lock(tree, &inode, 1, &locks);
	rig_expect(delayed_find(tree, reader, &key, &item, &e), 0, &e);
	memcpy(&in, item.data, sizeof(in));
	in.mode = le32_put(S_IFREG | 0640);
	rig_expect(delayed_replace(tree, &key, &in, sizeof(in), &e), 0, &e);
	delayed_unlock(&locks);
}

static uint64_t taken_so_far(void)
{
	return txn->overlay->created + txn->overlay->copied;
}

/* The last promise, less what has been used, must still cover everything that is granted. */
static void check_promise(void)
{
	const struct ticket_promise promise = txn->tickets->promise;
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	uint64_t needed, left;
	struct bound b;

	sync_lock_trees(&txn->sync);
	rig_expect(bound_begin(txn, &b, &e), 0, &e);
	needed = bound_items(&b, &txn->tickets->held);
	left = promise.blocks + promise.taken - taken_so_far();
	sync_unlock_trees(&txn->sync);
	if (needed > left) {
		fprintf(stderr, "%" PRIu64 " blocks are left of what was promised, %" PRIu64 " may be needed\n", left,
			needed);
		exit(1);
	}
}

/* Enters the gate late, and use the reservation. */
static void *use(void *unused)
{
	const struct timespec while_others_go_on = { .tv_nsec = 100000000 };
	struct tickets *t = txn->tickets;
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	struct delayed_reader reader = { 0 };
	struct delayed_tree *tree;

	(void)unused;
	nanosleep(&while_others_go_on, NULL);
	sync_enter(&txn->sync);
	pthread_mutex_lock(&t->lock);
	t->outside = (struct delayed_amount){ 0 };
	pthread_cond_signal(&t->entered);
	pthread_mutex_unlock(&t->lock);
	rig_expect(delayed_tree(txn->delayed, BTRKIT_TOP_LEVEL, &tree, &e), 0, &e);
	check_promise();
	for (unsigned i = 0; i < FILES; i++)
		change(tree, &reader, inodes[i]);
	delayed_reader_release(&reader);
	sync_leave(&txn->sync);
	return NULL;
}

static void run(const struct rig_kind *kind)
{
	struct btrkit_write_stats before, after;
	struct ticket_promise promise;
	struct btrkit_fs *fs;
	pthread_t other;
	struct rig r;
	uint64_t taken;

	rig_make(&r, kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	make_files(fs);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	txn->tickets->credit = (struct delayed_amount){ 0 };
	btrkit_fs_get_write_stats(fs, &before);
	reserve();
	assert_int_equal(pthread_create(&other, NULL, use, NULL), 0);
	rig_check(btrkit_txn_subvolume_snapshot(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, TOP, "snap", 4, NULL, NULL,
						&err),
		  &err);
	pthread_join(other, NULL);
	/* This promise covers the snapshot and everything that is delayed by then. */
	promise = txn->tickets->promise;
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_get_write_stats(fs, &after);
	taken = after.nodes_created + after.nodes_copied - before.nodes_created - before.nodes_copied - promise.taken;
	print_message("%s: %" PRIu64 " blocks were promised, %" PRIu64 " are taken\n", kind->name, promise.blocks,
		      taken);
	assert_in_range(taken, 0, promise.blocks);
	rig_verify(&r);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

static void a_snapshot_while_somebody_has_reserved(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		run(&kinds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_snapshot_while_somebody_has_reserved) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
