// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "lib/io/spool.h"

#define BYTES 300000u

static uint8_t data[BYTES], seen[BYTES];

/* The part in memory and the part in the file form one sequence. */
static void everything_comes_back(void **state)
{
	static const size_t memories[] = { 0, 1, 4096, 65536, 70000, 131072, BYTES, 2 * BYTES };

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		struct spool *s;

		assert_int_equal(spool_create(memories[m], &s, NULL), 0);
		for (size_t at = 0, n; at < BYTES; at += n) {
			n = 1 + at % 9973;
			n = n < BYTES - at ? n : BYTES - at;
			assert_int_equal(spool_append(s, data + at, n, NULL), 0);
			assert_int_equal(spool_size(s), at + n);
		}
		assert_int_equal(spool_read(s, 0, seen, BYTES, NULL), 0);
		assert_memory_equal(seen, data, BYTES);
		for (size_t at = 0; at + 5000 < BYTES; at += 4999) {
			assert_int_equal(spool_read(s, at, seen, 5000, NULL), 0);
			assert_memory_equal(seen, data + at, 5000);
		}
		assert_int_equal(spool_read(s, BYTES, seen, 0, NULL), 0);
		assert_int_equal(spool_read(s, BYTES, seen, 1, NULL), -ENXIO);
		assert_int_equal(spool_read(s, UINT64_MAX, seen, 1, NULL), -ENXIO);
		spool_destroy(s);
	}
}

static void a_place_for_the_file_is_needed(void **state)
{
	const char *before = getenv("TMPDIR");
	char *kept = before ? strdup(before) : NULL;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct spool *s;

	(void)state;
	setenv("TMPDIR", "/proc/nowhere", 1);
	assert_int_equal(spool_create(10, &s, NULL), 0);
	assert_int_equal(spool_append(s, data, 10, &err), 0);
	assert_int_equal(spool_append(s, data, 1, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/proc/nowhere"));
	assert_int_equal(spool_size(s), 10);
	spool_destroy(s);
	if (kept)
		setenv("TMPDIR", kept, 1);
	else
		unsetenv("TMPDIR");
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(a_place_for_the_file_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
