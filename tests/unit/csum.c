// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "lib/base/csum.h"

#define THREADS 4u
/* The race is rare: without the wait in the library, it was seen within 2,000 processes at the latest. */
#ifdef __SANITIZE_ADDRESS__
#define PROCESSES 300u
#else
#define PROCESSES 3000u
#endif

typedef uint32_t (*crc_fn)(uint32_t, const void *, size_t);

static const crc_fn both[] = { crc32c, crc32c_by_table };

/* The test vectors of RFC 3720, appendix B.4, and the usual check string. */
static void known_vectors(void **state)
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		assert_int_equal(~both[i](~0u, zeros, 32), 0x8a9136aa);
		assert_int_equal(~both[i](~0u, ones, 32), 0x62a8ab43);
		assert_int_equal(~both[i](~0u, up, 32), 0x46dd794e);
		assert_int_equal(~both[i](~0u, down, 32), 0x113fdb5c);
		assert_int_equal(~both[i](~0u, "123456789", 9), 0xe3069283);
		assert_int_equal(both[i](1234, "", 0), 1234);
	}
}

static void the_hash_of_a_name_is_not_inverted(void **state)
{
	(void)state;
	/* The DIR_ITEM "default" in the root tree directory of every filesystem has this hash as key offset. */
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		assert_int_equal(both[i](~1u, "default", 7), 2378154706u);
}

static void table_and_hardware_agree(void **state)
{
	static uint8_t bytes[5000];
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)x;
	}
	for (size_t start = 0; start < 9; start++)
		for (size_t len = 0; len < 300; len++)
			assert_int_equal(crc32c((uint32_t)x, bytes + start, len),
					 crc32c_by_table((uint32_t)x, bytes + start, len));
	assert_int_equal(crc32c(~0u, bytes, sizeof(bytes)), crc32c_by_table(~0u, bytes, sizeof(bytes)));
}

static void parts_may_be_chained(void **state)
{
	static const char text[] = "a whole and its parts";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		for (size_t cut = 0; cut < sizeof(text); cut++)
			assert_int_equal(both[i](both[i](~0u, text, cut), text + cut, sizeof(text) - cut),
					 both[i](~0u, text, sizeof(text)));
}

static void kinds_are_what_btrfs_knows(void **state)
{
	static const struct {
		const char *name;
		uint16_t size;
	} rows[] = { { "crc32c", 4 }, { "xxhash64", 8 }, { "sha256", 32 }, { "blake2b", 32 } };

	(void)state;
	for (uint16_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct csum_kind *kind = csum_kind_find(i);

		assert_non_null(kind);
		assert_int_equal(kind->type, i);
		assert_int_equal(kind->size, rows[i].size);
		assert_string_equal(kind->name, rows[i].name);
	}
	assert_null(csum_kind_find(ARRAY_SIZE(rows)));
	assert_null(csum_kind_find(UINT16_MAX));
}

static void crc32c_is_stored_inverted_low_end_first(void **state)
{
	static const uint8_t expected[4] = { 0x83, 0x92, 0x06, 0xe3 };
	uint8_t sum[CSUM_SIZE_MAX];

	(void)state;
	csum_kind_find(0)->compute("123456789", 9, sum);
	assert_memory_equal(sum, expected, sizeof(expected));
}

static pthread_barrier_t together;

struct one_of_many {
	uint16_t type;
	int64_t late; /* nanoseconds */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *sum_something(void *ctx)
{
	const struct one_of_many *one = ctx;
	const struct csum_kind *kind;
	uint8_t sum[CSUM_SIZE_MAX];
	int64_t begin;

	pthread_barrier_wait(&together);
	for (begin = now_ns(); now_ns() - begin < one->late;)
		;
	kind = csum_kind_find(one->type);
	if (kind->compute)
		kind->compute("123456789", 9, sum);
	return NULL;
}

static void sum_by_many(unsigned i)
{
	struct one_of_many ones[THREADS];
	pthread_t threads[THREADS];

	alarm(60);
	pthread_barrier_init(&together, NULL, THREADS);
	for (unsigned t = 0; t < THREADS; t++) {
		ones[t] = (struct one_of_many){ (uint16_t)(2 + i % 2), (int64_t)t * (i % 100) * 1000 };
		if (pthread_create(&threads[t], NULL, sum_something, &ones[t]))
			_exit(1);
	}
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	_exit(0);
}

/* Checksum libraries initialize themselves on first use, in any thread, while other threads may already call them. */
static void the_first_may_be_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			sum_by_many(i);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	/* This test must be first, before anything has initialized the libraries. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_may_be_many),
		cmocka_unit_test(known_vectors),
		cmocka_unit_test(the_hash_of_a_name_is_not_inverted),
		cmocka_unit_test(table_and_hardware_agree),
		cmocka_unit_test(parts_may_be_chained),
		cmocka_unit_test(kinds_are_what_btrfs_knows),
		cmocka_unit_test(crc32c_is_stored_inverted_low_end_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
