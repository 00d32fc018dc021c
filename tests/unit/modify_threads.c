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

/* What the threads do, and how much of that must succeed on a filesystem with space: about a quarter of what does. */
enum kind {
	LOOK_UP, CREATE, WRITE, TRUNCATE, PUNCH, CLONE, XATTR, UNLINK, RENAME, LINK,
	MAKE, SNAPSHOT, DELETE, READ_ONLY, CLEAN, KINDS
};
static const struct {
	const char *name;
	unsigned wanted;
	bool removes; /* may use the space that is kept for removals */
} kind_of[KINDS] = {
	[LOOK_UP] = { "look-ups", 1000, true },	   [CREATE] = { "creates", 180 },
	[WRITE] = { "writes", 420 },		   [TRUNCATE] = { "truncates", 100 },
	[PUNCH] = { "punches", 90 },		   [CLONE] = { "clones", 30 },
	[XATTR] = { "attributes", 100 },	   [UNLINK] = { "unlinks", 120, true },
	[RENAME] = { "renames", 110 },		   [LINK] = { "links", 40 },
	[MAKE] = { "subvolumes", 4 },		   [SNAPSHOT] = { "snapshots", 9 },
	[DELETE] = { "deletes", 12, true },	   [READ_ONLY] = { "flags", 25, true },
	[CLEAN] = { "cleanings", 18, true },
};
static atomic_uint done[KINDS], refused[KINDS], no_space[KINDS];

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
static int ended(struct worker *w, enum kind kind, int ret)
{
	char line[512];

	switch (ret) {
	case 0:
		done[kind]++;
		return 0;
	case -ENOSPC:
		no_space[kind]++;
		return ret;
	case -ENOENT:
	case -EEXIST:
	case -ENOTEMPTY:
	case -EROFS:
	case -EISDIR:
	case -ENOTDIR:
	case -EINVAL:
	case -EPERM:
		refused[kind]++;
		return ret;
	default:
		break;
	}
	fprintf(stderr, "thread %u: %s: %d: %s\n", w->number, kind_of[kind].name, ret,
		btrkit_error_format(&w->err, line, sizeof(line)));
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

	if (ended(w, LOOK_UP, btrkit_txn_lookup(txn, root, TOP, name, len, &found, &w->err)) || found.root != root)
		return 0;
	return found.inode;
}

static void put(struct worker *w, uint64_t root, uint64_t inode)
{
	static const uint8_t bytes[30000] = { 1, 2, 3 };
	const struct btrkit_write_options how = { .threads = 1 };
	const size_t len = pick(w, 3) ? 1 + pick(w, 900) : 1 + pick(w, sizeof(bytes));

	ended(w, WRITE, btrkit_txn_write(txn, root, inode, pick(w, 4) * 5000, bytes, len, &how, &w->err));
}

static void change_file(struct worker *w, uint64_t root, unsigned kind)
{
	const uint64_t inode = look_up(w, root), other_root = some(w);
	struct btrkit_clone what = { root, inode, 0, other_root, 0, 0, 0 };

	if (!inode)
		return;
	switch (kind) {
	case 0:
		ended(w, TRUNCATE, btrkit_txn_truncate(txn, root, inode, pick(w, 9000), &w->err));
		break;
	case 1:
		ended(w, PUNCH, btrkit_txn_punch(txn, root, inode, 1000, 9000, &w->err));
		break;
	case 2:
		what.to_inode = look_up(w, other_root);
		if (what.to_inode && (what.to_inode != inode || root != other_root))
			ended(w, CLONE, btrkit_txn_clone(txn, &what, &w->err));
		break;
	case 3:
		ended(w, XATTR, btrkit_txn_xattr_set(txn, root, inode, "user.a", "value", 5, 0, &w->err));
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
		if (!ended(w, CREATE, btrkit_txn_create(txn, root, TOP, name, len, NULL, &inode, &w->err)))
			put(w, root, inode);
		break;
	case 2:
		ended(w, UNLINK, btrkit_txn_unlink(txn, root, TOP, name, len, BTRKIT_UNLINK_FILE, &w->err));
		break;
	case 3:
		ended(w, RENAME, btrkit_txn_rename(txn, &a, &b, pick(w, 2) ? BTRKIT_RENAME_EXCHANGE : 0, &w->err));
		break;
	default:
		inode = look_up(w, root);
		if (inode)
			ended(w, LINK, btrkit_txn_link(txn, root, inode, &a, &w->err));
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
	enum kind kind;
	uint64_t made;
	int ret;

	if (id) {
		subvolumes[at] = 0;
		ended(w, DELETE, btrkit_txn_subvolume_delete(txn, id, &w->err));
		return;
	}
	kind = pick(w, 3) ? SNAPSHOT : MAKE;
	if (kind == SNAPSHOT)
		ret = btrkit_txn_subvolume_snapshot(txn, some(w), BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &made,
						    &w->err);
	else
		ret = btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &made, &w->err);
	if (!ended(w, kind, ret))
		subvolumes[at] = made;
}

static void *manage(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < STEPS / 10; i++) {
		const uint64_t id = some(w);

		switch (pick(w, 6)) {
		case 0:
			if (!ended(w, READ_ONLY, btrkit_txn_subvolume_set_read_only(txn, id, true, false, &w->err)))
				ended(w, READ_ONLY, btrkit_txn_subvolume_set_read_only(txn, id, false, false, &w->err));
			break;
		case 1:
			ended(w, CLEAN, btrkit_txn_subvolumes_clean(txn, NULL, &w->err));
			break;
		case 2:
			ended(w, CLEAN, btrkit_txn_orphans_clean(txn, id, NULL, &w->err));
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

/*
 * How much space is left. A transaction that writes until it finds none leaves more than twice of what the threads
 * need, since much was reserved for its own metadata; but there are commits while they work. If further ones follow,
 * only the reserve is left, which is for removals.
 */
enum left { MUCH, LITTLE, RESERVE };

static void fill(struct btrkit_fs *fs, enum left left)
{
	static const uint8_t bytes[64u << 10] = { 1 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode, at = 0, before;
	int ret;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "filler", 6, NULL, &inode, &err), &err);
	do {
		before = at;
		while (!(ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes, sizeof(bytes), NULL, &err)))
			at += sizeof(bytes);
		assert_int_equal(ret, -ENOSPC);
		rig_check(btrkit_txn_commit_and_continue(txn, NULL, &err), &err);
	} while (left == RESERVE && at > before);
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, at - sizeof(bytes), &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

/*
 * Removals always find space. Others may be refused some now and then, where others took what a commit had freed, and
 * any number of times if there is only the reserve. Then names and files are missing, too, so that most of the rest is
 * refused.
 */
static void check_counts(enum left left)
{
	unsigned sum = 0, sum_no_space = 0;

	for (unsigned i = 0; i < KINDS; i++) {
		print_message("  %s: %u done, %u refused, %u without space\n", kind_of[i].name, (unsigned)done[i],
			      (unsigned)refused[i], (unsigned)no_space[i]);
		assert_true(!kind_of[i].removes || !no_space[i]);
		assert_true(left == RESERVE || done[i] >= kind_of[i].wanted);
		sum += done[i];
		sum_no_space += no_space[i];
	}
	assert_true(left == RESERVE || sum_no_space < sum / 20);
}

static void run(const struct rig_kind *kind, enum left left)
{
	struct btrkit_write_stats before, after;
	struct btrkit_fs *fs;
	struct rig r;

	for (unsigned i = 0; i < SUBVOLUMES; i++)
		subvolumes[i] = 0;
	for (unsigned i = 0; i < KINDS; i++)
		done[i] = refused[i] = no_space[i] = 0;
	rig_make(&r, kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	if (left != MUCH) {
		/* This is committed several times. */
		free(r.held[0]);
		r.held[0] = NULL;
		fill(fs, left);
	}
	btrkit_fs_get_write_stats(fs, &before);
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* There may have been a commit in between, so the blocks of this state may be overwritten now. */
		free(r.held[0]);
		r.held[0] = NULL;
		run_round(fs, round);
		rig_verify(&r);
	}
	btrkit_fs_get_write_stats(fs, &after);
	after.commits -= before.commits;
	print_message("%s: %llu commits\n", kind->name, (unsigned long long)after.commits);
	check_counts(left);
	assert_true(left == MUCH || after.commits > ROUNDS);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

static void test_threads(void **state)
{
	(void)state;
	run(&kinds[0], MUCH);
	run(&kinds[1], LITTLE);
	run(&kinds[1], RESERVE);
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
