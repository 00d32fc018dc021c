// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One thread makes the transaction fail while it allocates space, at the moment when another one has found none and
 * decides how to go on, for which it asks whether the transaction has failed. Under ThreadSanitizer this finds a state
 * that is read and written without a lock. Functions of the library are replaced in order to bring both threads there
 * at once; the threads wait for each other with relaxed loads and stores, which order nothing else.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib/commit/refs.h"
#include "lib/modify/data.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define ROUNDS 8u
#define BYTES (64u << 10)

/* Long enough for a thread to arrive at a lock, even if the machine is busy. */
#define ARRIVE_US 20000u

static const struct rig_kind kind = { "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1,
				      { 130 } };

enum role { NO_ROLE, FINDS_NO_SPACE, FAILS };

static _Thread_local enum role role;
static _Thread_local bool is_first; /* the thread has not asked for space yet */
static atomic_uint arrived;	     /* threads that are about to ask for space */
static atomic_bool is_locked;	     /* the first one has the locks for that */

static unsigned get(const atomic_uint *of)
{
	return atomic_load_explicit(of, memory_order_relaxed);
}

int __real_data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err);
int __wrap_data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err);
int __real_txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret,
			  struct btrkit_error *err);
int __wrap_txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret,
			  struct btrkit_error *err);
int __wrap_txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err);
int __real_refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
			   const struct btrkit_key *first, struct btrkit_error *err);
int __wrap_refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
			   const struct btrkit_key *first, struct btrkit_error *err);

/* Both threads have reserved what they need, and nobody has a lock of the transaction. */
int __wrap_data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	int r;

	if (role && is_first) {
		atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
		while (get(&arrived) < 2)
			usleep(100);
	}
	while (role == FAILS && is_first && !atomic_load_explicit(&is_locked, memory_order_relaxed))
		usleep(100);
	/* What follows the first attempt must not run before the other thread has failed. */
	if (role == FINDS_NO_SPACE && !is_first)
		usleep(ARRIVE_US);
	r = __real_data_alloc(op, min, max, ret, err);
	is_first = false;
	return r;
}

/* The first thread returns when the second one waits for the locks. */
int __wrap_txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret,
			  struct btrkit_error *err)
{
	if (role != FINDS_NO_SPACE || !is_first)
		return __real_txn_alloc_data(txn, min, max, ret, err);
	if (!atomic_load_explicit(&is_locked, memory_order_relaxed)) {
		atomic_store_explicit(&is_locked, true, memory_order_relaxed);
		usleep(ARRIVE_US);
	}
	if (err)
		*err = (struct btrkit_error){ .code = BTRKIT_NO_SPACE, .err = -ENOSPC };
	return -ENOSPC;
}

int __wrap_txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err)
{
	(void)txn;
	if (err)
		*err = (struct btrkit_error){ .code = BTRKIT_NO_SPACE, .err = -ENOSPC };
	return -ENOSPC;
}

int __wrap_refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
			   const struct btrkit_key *first, struct btrkit_error *err)
{
	if (role != FAILS || !data)
		return __real_refs_new_extent(r, extent, data, level, first, err);
	if (err)
		*err = (struct btrkit_error){ .code = BTRKIT_NO_MEMORY, .err = -ENOMEM, .message = "planted" };
	return -ENOMEM;
}

struct worker {
	struct btrkit_txn *txn;
	enum role role;
	uint64_t inode;
	bool preallocates;
	int ret;
	struct btrkit_error err;
};

static void *work(void *arg)
{
	static const uint8_t bytes[BYTES] = { 1 };
	const struct btrkit_write_options how = { .threads = 1, .compression = BTRKIT_COMPRESSION_ZLIB };
	struct worker *w = arg;

	role = w->role;
	is_first = true;
	if (w->preallocates)
		w->ret = btrkit_txn_prealloc(w->txn, BTRKIT_TOP_LEVEL, w->inode, 0, BYTES, 0, &w->err);
	else
		w->ret = btrkit_txn_write(w->txn, BTRKIT_TOP_LEVEL, w->inode, 0, bytes, BYTES, &how, &w->err);
	return NULL;
}

static uint64_t make(struct btrkit_txn *txn, const char *name)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;

	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err), &err);
	return inode;
}

static void run_round(struct btrkit_fs *fs, bool preallocates)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct worker workers[2];
	struct btrkit_txn *txn;
	pthread_t ids[2];

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	workers[0] = (struct worker){ txn, FINDS_NO_SPACE, make(txn, "one"), preallocates, 0, BTRKIT_ERROR_INIT };
	workers[1] = (struct worker){ txn, FAILS, make(txn, "other"), false, 0, BTRKIT_ERROR_INIT };
	atomic_store(&arrived, 0);
	atomic_store(&is_locked, false);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
	assert_int_equal(workers[1].ret, -ENOMEM);
	assert_true(!workers[0].ret || workers[0].ret == -ENOSPC || workers[0].ret == -ENOMEM);
	assert_int_equal(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "later", 5, NULL, NULL, &err), -ENOMEM);
	assert_string_equal(err.message, "planted");
	btrkit_txn_abort(txn);
}

static void test_failure_seen_by_others(void **state)
{
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned round = 0; round < ROUNDS; round++)
		run_round(fs, round % 2);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failure_seen_by_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
