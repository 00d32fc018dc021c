// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads change files in subvolumes that others create, snapshot and delete at the same time, in transactions that are
 * committed when space is short and at the end: everything is consistent after each. Inodes that move into the tree or
 * out of it must be seen as existing, or as deleted, all the time. Data races are found under ThreadSanitizer.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <btrkit/subvolume_modify.h>

#include "lib/modify/op.h"
#include "tests/unit/hurry.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define WORKERS 8u
#define MANAGERS 2u
#define ROUNDS 3u
#define STEPS 500u
#define SUBVOLUMES 6u
#define NAMES 40u /* in each subvolume, shared by the threads */

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 130 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 30 }, .quotas = true },
};

static struct btrkit_txn *txn;
static atomic_uint_fast64_t subvolumes[SUBVOLUMES];
static atomic_uint done, refused, no_space;

struct worker {
	uint64_t seed;
	unsigned number, round;
	struct btrkit_error err;
};

static unsigned pick(struct worker *w, unsigned below)
{
	random_step(&w->seed);
	return (unsigned)((w->seed >> 33) % below);
}

/* Operations may fail because of what other threads did; but nothing may seem corrupt. */
static int ended(struct worker *w, int ret)
{
	char line[512];

	switch (ret) {
	case 0:
		done++;
		return 0;
	case -ENOSPC:
		no_space++;
		return ret;
	case -ENOENT:
	case -EEXIST:
	case -ENOTEMPTY:
	case -EROFS:
	case -EISDIR:
	case -ENOTDIR:
	case -EINVAL:
	case -EPERM:
		refused++;
		return ret;
	default:
		break;
	}
	fprintf(stderr, "thread %u: %d: %s\n", w->number, ret, btrkit_error_format(&w->err, line, sizeof(line)));
	abort();
}

static uint64_t some(struct worker *w)
{
	const uint64_t id = subvolumes[pick(w, SUBVOLUMES)];

	return id ? id : BTRKIT_TOP_LEVEL;
}

static size_t name_of(struct worker *w, char name[32])
{
	return (size_t)snprintf(name, 32, "name-%u", pick(w, NAMES));
}

/* The inode of a name, which may lose it right afterwards; 0: no such name. */
static uint64_t look_up(struct worker *w, uint64_t root)
{
	struct btrkit_found found;
	char name[32];
	const size_t len = name_of(w, name);

	if (ended(w, btrkit_txn_lookup(txn, root, TOP, name, len, &found, &w->err)) || found.root != root)
		return 0;
	return found.inode;
}

static void put(struct worker *w, uint64_t root, uint64_t inode)
{
	static const uint8_t bytes[30000] = { 1, 2, 3 };
	const struct btrkit_write_options how = { .threads = 1 };
	const size_t len = pick(w, 3) ? 1 + pick(w, 900) : 1 + pick(w, sizeof(bytes));

	ended(w, btrkit_txn_write(txn, root, inode, pick(w, 4) * 5000, bytes, len, &how, &w->err));
}

static void change_file(struct worker *w, uint64_t root, unsigned kind)
{
	const uint64_t inode = look_up(w, root), other_root = some(w);
	struct btrkit_clone what = { root, inode, 0, other_root, 0, 0, 0 };

	if (!inode)
		return;
	switch (kind) {
	case 0:
		ended(w, btrkit_txn_truncate(txn, root, inode, pick(w, 9000), &w->err));
		break;
	case 1:
		ended(w, btrkit_txn_punch(txn, root, inode, 1000, 9000, &w->err));
		break;
	case 2:
		what.to_inode = look_up(w, other_root);
		if (what.to_inode && (what.to_inode != inode || root != other_root))
			ended(w, btrkit_txn_clone(txn, &what, &w->err));
		break;
	case 3:
		ended(w, btrkit_txn_xattr_set(txn, root, inode, "user.a", "value", 5, 0, &w->err));
		break;
	default:
		put(w, root, inode);
	}
}

static void change_names(struct worker *w, uint64_t root, unsigned kind)
{
	char name[32], other[32];
	const size_t len = name_of(w, name), other_len = name_of(w, other);
	const struct btrkit_place a = { root, TOP, name, len }, b = { root, TOP, other, other_len };
	uint64_t inode;

	switch (kind) {
	case 0:
	case 1:
		if (!ended(w, btrkit_txn_create(txn, root, TOP, name, len, NULL, &inode, &w->err)))
			put(w, root, inode);
		break;
	case 2:
		ended(w, btrkit_txn_unlink(txn, root, TOP, name, len, BTRKIT_UNLINK_FILE, &w->err));
		break;
	case 3:
		ended(w, btrkit_txn_rename(txn, &a, &b, pick(w, 2) ? BTRKIT_RENAME_EXCHANGE : 0, &w->err));
		break;
	default:
		inode = look_up(w, root);
		if (inode)
			ended(w, btrkit_txn_link(txn, root, inode, &a, &w->err));
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < STEPS; i++) {
		const uint64_t root = some(w);

		if (pick(w, 2))
			change_names(w, root, pick(w, 5));
		else
			change_file(w, root, pick(w, 6));
	}
	return NULL;
}

/* Replaces one of the subvolumes in the table. */
static void manage_one(struct worker *w, unsigned serial)
{
	const unsigned at = w->number % MANAGERS + MANAGERS * pick(w, SUBVOLUMES / MANAGERS);
	const uint64_t id = subvolumes[at];
	char name[32];
	const size_t len = (size_t)snprintf(name, sizeof(name), "sub-%u-%u-%u", w->number, w->round, serial);
	uint64_t made;
	int ret;

	if (id) {
		subvolumes[at] = 0;
		ended(w, btrkit_txn_subvolume_delete(txn, id, &w->err));
		return;
	}
	if (pick(w, 3))
		ret = btrkit_txn_subvolume_snapshot(txn, some(w), BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &made,
						    &w->err);
	else
		ret = btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &made, &w->err);
	if (!ended(w, ret))
		subvolumes[at] = made;
}

static void *manage(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < STEPS / 10; i++) {
		const uint64_t id = some(w);

		switch (pick(w, 6)) {
		case 0:
			if (!ended(w, btrkit_txn_subvolume_set_read_only(txn, id, true, false, &w->err)))
				ended(w, btrkit_txn_subvolume_set_read_only(txn, id, false, false, &w->err));
			break;
		case 1:
			ended(w, btrkit_txn_subvolumes_clean(txn, NULL, &w->err));
			break;
		case 2:
			ended(w, btrkit_txn_orphans_clean(txn, id, NULL, &w->err));
			break;
		default:
			manage_one(w, i);
		}
	}
	return NULL;
}

static void run_round(struct btrkit_fs *fs, unsigned round)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct worker workers[WORKERS + MANAGERS];
	pthread_t ids[WORKERS + MANAGERS];

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	btrkit_txn_set_may_commit(txn, true);
	if (round % 2)
		txn_hurry(txn);
	for (unsigned i = 0; i < WORKERS + MANAGERS; i++) {
		workers[i] = (struct worker){ .seed = 100 * round + i, .number = i, .round = round };
		assert_int_equal(pthread_create(&ids[i], NULL, i < WORKERS ? work : manage, &workers[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS + MANAGERS; i++)
		pthread_join(ids[i], NULL);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

/* Leaves little space, so that there are commits while the threads work. */
static void fill(struct btrkit_fs *fs)
{
	static const uint8_t bytes[64u << 10] = { 1 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode, at = 0;
	int ret;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "filler", 6, NULL, &inode, &err), &err);
	while (!(ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes, sizeof(bytes), NULL, &err)))
		at += sizeof(bytes);
	assert_int_equal(ret, -ENOSPC);
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, at - sizeof(bytes), &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

static void run(const struct rig_kind *kind, bool full)
{
	struct btrkit_write_stats stats;
	struct btrkit_fs *fs;
	struct rig r;

	for (unsigned i = 0; i < SUBVOLUMES; i++)
		subvolumes[i] = 0;
	done = refused = no_space = 0;
	rig_make(&r, kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	if (full)
		fill(fs);
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* There may have been a commit in between, so the blocks of this state may be overwritten now. */
		free(r.held[0]);
		r.held[0] = NULL;
		run_round(fs, round);
		rig_verify(&r);
	}
	btrkit_fs_get_write_stats(fs, &stats);
	print_message("%s: %u done, %u refused, %u without space, %llu commits\n", kind->name, (unsigned)done,
		      (unsigned)refused, (unsigned)no_space, (unsigned long long)stats.commits);
	/* How many find space depends on how the threads meet: between 5,000 and 10,000, seldom fewer than 4,000. */
	assert_true(done > refused / 8);
	assert_true(stats.commits > ROUNDS + full || !full);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

static void test_threads(void **state)
{
	(void)state;
	run(&kinds[0], false);
	run(&kinds[1], true);
}

#define MOVING 4000u
#define MOVES 6u

static uint64_t moving[MOVING];
static atomic_bool moved;

static void *move(void *arg)
{
	struct worker *w = arg;

	rig_check(btrkit_txn_flush(txn, &w->err), &w->err);
	atomic_store(&moved, true);
	return NULL;
}

/* @return 0; -ENOENT; whether the inode is delayed, is being inserted, or is in the tree */
static int look_for(uint64_t inode, struct btrkit_error *err)
{
	struct op_inode in;
	struct op op;

	rig_check(op_begin_reading(&op, txn, BTRKIT_TOP_LEVEL, err), err);
	delayed_lock(op.t, &inode, 1, &op.locks);
	return op_end(&op, op_inode_get(&op, inode, &in, err), err);
}

/* While delayed items are moved into the tree, the inodes must all exist, or all be gone, at any time. */
static unsigned watch(int wanted)
{
	struct worker w = { .number = 0 };
	unsigned looks = 0;
	pthread_t other;

	atomic_store(&moved, false);
	assert_int_equal(pthread_create(&other, NULL, move, &w), 0);
	for (; !atomic_load(&moved); looks++) {
		const int ret = look_for(moving[looks * 7 % MOVING], &w.err);

		if (ret != wanted)
			fail_msg("after %u searches inode %u is %s", looks, looks * 7 % MOVING, ret ? "gone" : "there");
	}
	pthread_join(other, NULL);
	return looks;
}

static void test_seen_meanwhile(void **state)
{
	/* Only few items fit into a leaf, so that this takes long. */
	static const uint8_t bytes[1500] = { 4, 5 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned looks = 0;
	struct btrkit_fs *fs;
	char name[32];
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[0]);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned k = 0; k < MOVES; k++) {
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		for (unsigned i = 0; i < MOVING; i++) {
			rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name,
						    (size_t)snprintf(name, 32, "m%u", i), NULL, &moving[i], &err),
				  &err);
			rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, moving[i], 0, bytes, sizeof(bytes), NULL,
						   &err),
				  &err);
		}
		looks += watch(0);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		for (unsigned i = 0; i < MOVING; i++)
			rig_check(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, name,
						    (size_t)snprintf(name, 32, "m%u", i), BTRKIT_UNLINK_FILE, &err),
				  &err);
		looks += watch(-ENOENT);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	}
	print_message("%u looks meanwhile\n", looks);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_seen_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
