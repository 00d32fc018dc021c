// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes that a thread performs while more are gathered: all are written, in order, and failures are reported. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <btrkit/io.h>

#include "lib/mkfs/filled/lane.h"
#include "tests/unit/memory.h"

#define BUDGET 32768u
#define PIECES 200u
#define PIECE_MAX 1500u
#define SIZE ((uint64_t)PIECES * PIECE_MAX)

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

/* Number of threads that may still be created, and number of those created. */
static long threads_left = LONG_MAX;
static unsigned threads;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!threads_left)
		return EAGAIN;
	threads_left--;
	threads++;
	return __real_pthread_create(thread, attr, fn, arg);
}

/* A device that records which threads write, and whether writes overlap or are out of order. */
struct device {
	struct btrkit_io io;
	uint8_t bytes[SIZE];
	atomic_uint writing, writes;
	unsigned by_others; /* writes from threads other than the main thread of the test */
	unsigned fail_at;   /* number of the write that fails, counted from 1; 0: none */
	unsigned pause;	    /* duration of a write in microseconds */
	uint64_t end;	    /* end of the last write; addresses must increase */
	pthread_t caller;
	bool disordered;
};

static int device_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct device *d = (struct device *)io;
	const unsigned number = atomic_fetch_add(&d->writes, 1) + 1;

	d->disordered |= atomic_fetch_add(&d->writing, 1) || offset < d->end;
	d->by_others += !pthread_equal(pthread_self(), d->caller);
	usleep(d->pause);
	memcpy(d->bytes + offset, buf, len);
	d->end = offset + len;
	atomic_fetch_sub(&d->writing, 1);
	return number == d->fail_at ? -EIO : 0;
}

static const struct btrkit_io_ops device_ops = { .write = device_write };

static struct device *device(unsigned fail_at, unsigned pause)
{
	struct device *d = test_calloc(1, sizeof(*d));

	d->io.ops = &device_ops;
	d->io.size = SIZE;
	d->caller = pthread_self();
	d->fail_at = fail_at;
	d->pause = pause;
	return d;
}

/* The length of piece @i. Pieces begin at multiples of PIECE_MAX, so that none touches another. */
static size_t length(unsigned i)
{
	return 1 + i * 7919 % (PIECE_MAX - 1);
}

static int write_piece(struct mkfs_lane *l, unsigned i, struct btrkit_error *err)
{
	uint8_t bytes[PIECE_MAX];

	memset(bytes, 1 + (int)(i % 255), length(i));
	return mkfs_lane_write(l, (uint64_t)i * PIECE_MAX, bytes, length(i), err);
}

static int run(struct device *d, struct btrkit_error *err)
{
	struct mkfs_lane *l;
	int ret;

	threads = 0;
	ret = mkfs_lane_create(&d->io, BUDGET, &l, err);
	if (ret)
		return ret;
	for (unsigned i = 0; !ret && i < PIECES; i++)
		ret = write_piece(l, i, err);
	if (!ret)
		ret = mkfs_lane_finish(l, err);
	assert_null(mkfs_lane_destroy(l));
	return ret;
}

static void need_all(const struct device *d)
{
	for (unsigned i = 0; i < PIECES; i++)
		for (size_t k = 0; k < PIECE_MAX; k++)
			assert_int_equal(d->bytes[(size_t)i * PIECE_MAX + k], k < length(i) ? 1 + i % 255 : 0);
}

/* With threads, without threads, and when only some of the threads can be created. */
static void all_is_written_in_order(void **state)
{
	(void)state;
	for (long n = 0; n < 6; n++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct device *d = device(0, n == 5 ? 50 : 0);

		threads_left = n < 5 ? n : LONG_MAX;
		assert_int_equal(run(d, &err), 0);
		threads_left = LONG_MAX;
		need_all(d);
		assert_false(d->disordered);
		assert_int_equal(atomic_load(&d->writes), PIECES);
		assert_true(n < 5 ? threads == n : threads > 5);
		assert_int_equal(d->by_others > 0, threads > 0);
		/* The caller writes the last pieces itself, while it waits for them. */
		assert_true(d->by_others < PIECES);
		test_free(d);
	}
}

/* Whichever write fails, the caller gets its error at the next write that has to wait, or at the end. */
static void failures_reach_the_caller(void **state)
{
	(void)state;
	for (unsigned fail = 1; fail <= PIECES; fail++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct device *d = device(fail, 0);

		threads_left = fail % 3 ? LONG_MAX : 0;
		assert_int_equal(run(d, &err), -EIO);
		threads_left = LONG_MAX;
		assert_int_equal(err.err, -EIO);
		assert_true(*err.message);
		assert_false(d->disordered);
		test_free(d);
	}
}

/* Destroying waits for a write in progress, and drops what is queued. */
static void it_stops_when_it_is_destroyed(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct device *d = device(0, 2000);
	struct mkfs_lane *l;
	unsigned i = 0, writes;

	(void)state;
	threads = 0;
	assert_int_equal(mkfs_lane_create(&d->io, BUDGET, &l, &err), 0);
	while (!threads)
		assert_int_equal(write_piece(l, i++, &err), 0);
	assert_null(mkfs_lane_destroy(l));
	writes = atomic_load(&d->writes);
	assert_int_equal(atomic_load(&d->writing), 0);
	/* The last piece was the first that did not fit into the queue, so it was never written. */
	assert_int_equal(writes, i - 1);
	usleep(10000);
	assert_int_equal(atomic_load(&d->writes), writes);
	test_free(d);
	assert_null(mkfs_lane_destroy(NULL));
}

/* @return what run() returned; *num is the number of its allocations */
static int run_without(uint64_t at, bool on, uint64_t *num, unsigned *failed)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct device *d = device(0, 0);
	int ret;

	memory_count(at, on);
	ret = run(d, &err);
	*num = memory_end();
	if (ret)
		assert_int_equal(err.err, ret);
	else
		need_all(d);
	*failed += !!ret;
	test_free(d);
	return ret;
}

/* Each allocation fails, alone or with all after it: that is either reported, or does no harm. */
static void memory_runs_out(void **state)
{
	unsigned failed = 0;
	uint64_t n, made;

	(void)state;
	assert_int_equal(run_without(MEMORY_SUFFICES, false, &n, &failed), 0);
	for (uint64_t at = 0; at < 2 * n; at++) {
		const int ret = run_without(at / 2, at % 2, &made, &failed);

		assert_true(made > at / 2 && (!ret || ret == -ENOMEM));
	}
	assert_true(failed >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_written_in_order),
		cmocka_unit_test(failures_reach_the_caller),
		cmocka_unit_test(it_stops_when_it_is_destroyed),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
