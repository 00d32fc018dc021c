// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <btrkit/error.h>

#include "lib/base/compression/codec.h"
#include "lib/base/compression/encode.h"
#include "tests/random.h"

#define SECTOR 4096u

enum { ZLIB = 1, LZO, ZSTD };

static uint8_t data[ENCODE_MAX], packed[2 * ENCODE_MAX], again[2 * ENCODE_MAX], seen[ENCODE_MAX];

/* @random of every 16 bytes are noise. */
static void make_data(uint64_t seed, unsigned random)
{
	for (size_t i = 0; i < sizeof(data); i++) {
		random_step(&seed);
		data[i] = i % 16 < random ? (uint8_t)(seed >> 56) : (uint8_t)(i / 64);
	}
}

static struct encoder *make(uint8_t type, int level)
{
	struct encoder *e;
	int ret = encoder_create(type, level, SECTOR, &e, NULL);

	if (ret == -EOPNOTSUPP)
		skip();
	assert_int_equal(ret, 0);
	return e;
}

/*
 * Whatever is compressed is decompressed to the same by the code that reads what Linux wrote, with or without padding
 * to whole sectors.
 */
static void comes_back(struct encoder *e, uint8_t type, size_t len)
{
	size_t got, rounded;

	assert_int_equal(encoder_run(e, data, len, packed, sizeof(packed), &got, NULL), 0);
	rounded = (got + SECTOR - 1) / SECTOR * SECTOR;
	memset(packed + got, 0, rounded - got);
	memset(seen, 0xee, sizeof(seen));
	assert_int_equal(codec_decompress(type, packed, rounded, seen, len, SECTOR, NULL), 0);
	assert_memory_equal(seen, data, len);
	assert_int_equal(codec_decompress(type, packed, got, seen, len, SECTOR, NULL), 0);
	assert_memory_equal(seen, data, len);
}

static void every_length(uint8_t type, int level)
{
	static const size_t lengths[] = { 1, 2, 100, 4095, 4096, 4097, 8192, 50000, 131071, 131072 };
	struct encoder *e = make(type, level);

	for (unsigned random = 0; random <= 16; random += 4) {
		make_data(random + 7, random);
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
			comes_back(e, type, lengths[i]);
	}
	encoder_destroy(e);
}

static void zlib_comes_back(void **state)
{
	(void)state;
	every_length(ZLIB, 0);
	every_length(ZLIB, 1);
	every_length(ZLIB, 9);
}

static void lzo_comes_back(void **state)
{
	(void)state;
	every_length(LZO, 0);
}

static void zstd_comes_back(void **state)
{
	(void)state;
	every_length(ZSTD, 0);
	every_length(ZSTD, 1);
	every_length(ZSTD, 15);
}

/* Output never goes past the end of the buffer, and a buffer that is too small is reported. */
static void room_is_kept(void **state)
{
	(void)state;
	for (uint8_t type = ZLIB; type <= ZSTD; type++) {
		struct encoder *e = make(type, 0);
		size_t got, less;

		make_data(type, 8);
		assert_int_equal(encoder_run(e, data, sizeof(data), packed, sizeof(packed), &got, NULL), 0);
		assert_true(got < sizeof(data));
		for (size_t size = 0; size < got; size += got / 50) {
			memset(again, 0xee, sizeof(again));
			assert_int_equal(encoder_run(e, data, sizeof(data), again, size, &less, NULL), 1);
			for (size_t i = size; i < size + 64; i++)
				assert_int_equal(again[i], 0xee);
		}
		encoder_destroy(e);
	}
}

/* An encoder keeps no state from earlier data. */
static void nothing_is_remembered(void **state)
{
	(void)state;
	for (uint8_t type = ZLIB; type <= ZSTD; type++) {
		struct encoder *used = make(type, 0), *fresh;
		size_t got, other;

		for (unsigned i = 0; i < 5; i++) {
			make_data(i, 3 * i);
			assert_int_equal(encoder_run(used, data, sizeof(data), packed, sizeof(packed), &got, NULL), 0);
			fresh = make(type, 0);
			assert_int_equal(encoder_run(fresh, data, sizeof(data), again, sizeof(again), &other, NULL), 0);
			assert_int_equal(got, other);
			assert_memory_equal(packed, again, got);
			encoder_destroy(fresh);
		}
		encoder_destroy(used);
	}
}

static void levels_are_checked(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct encoder *e;

	(void)state;
	encoder_destroy(make(ZLIB, 0));
	assert_int_equal(encoder_create(ZLIB, 10, SECTOR, &e, &err), -EINVAL);
	assert_string_equal(err.message, "zlib has no level 10");
	assert_int_equal(encoder_create(ZLIB, -1, SECTOR, &e, &err), -EINVAL);
	assert_int_equal(encoder_create(0, 0, SECTOR, &e, &err), -EOPNOTSUPP);
	assert_int_equal(encoder_create(4, 0, SECTOR, &e, &err), -EOPNOTSUPP);
	assert_non_null(encoder_library(ZLIB));
	assert_null(encoder_library(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zlib_comes_back),	 cmocka_unit_test(lzo_comes_back),
		cmocka_unit_test(zstd_comes_back),	 cmocka_unit_test(room_is_kept),
		cmocka_unit_test(nothing_is_remembered), cmocka_unit_test(levels_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
