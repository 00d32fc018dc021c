// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <btrkit/error.h>

#include "config.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_LZO
#include <lzo/lzo1x.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "lib/base/compression/codec.h"
#include "lib/base/le.h"
#include "tests/random.h"

#define SECTOR 4096u
#define DATA_MAX (128u * 1024)
#define STREAM_MAX (2 * DATA_MAX)

enum { ZLIB = 1, LZO, ZSTD };

static uint8_t data[DATA_MAX], stream[STREAM_MAX], seen[DATA_MAX];

/* @random of every 16 bytes are noise, which sets how well the data can be compressed. */
static void make_data(uint64_t seed, unsigned random)
{
	for (size_t i = 0; i < sizeof(data); i++) {
		random_step(&seed);
		data[i] = i % 16 < random ? (uint8_t)(seed >> 56) : (uint8_t)(i / 64);
	}
}

static int decompress(uint8_t type, size_t in_len, size_t out_len)
{
	memset(seen, 0xee, sizeof(seen));
	return codec_decompress(type, stream, in_len, seen, out_len, SECTOR, NULL);
}

static int decompress_inline(uint8_t type, size_t in_len, size_t out_len)
{
	memset(seen, 0xee, sizeof(seen));
	return codec_decompress_inline(type, stream, in_len, seen, out_len, SECTOR, NULL);
}

static size_t rounded(size_t len)
{
	return (len + SECTOR - 1) / SECTOR * SECTOR;
}

/*
 * What every codec must do with a good stream of @len bytes for the first @n bytes of data, including padding after the
 * stream: return the data, fill the rest with zeros (or fail, if inline), stop at the end of the output; and fail if
 * the stream is truncated, unless all data came before the cut.
 */
static void good_stream(uint8_t type, size_t len, size_t n)
{
	memset(stream + len, 0, rounded(len) - len);
	assert_int_equal(decompress(type, rounded(len), n), 0);
	assert_memory_equal(seen, data, n);
	if (n + 100 <= DATA_MAX) {
		assert_int_equal(decompress(type, rounded(len), n + 100), 0);
		assert_memory_equal(seen, data, n);
		for (size_t i = n; i < n + 100; i++)
			assert_int_equal(seen[i], 0);
	}
	assert_int_equal(decompress_inline(type, len, n), 0);
	assert_memory_equal(seen, data, n);
	assert_int_equal(decompress_inline(type, len, n + 1), -EUCLEAN);
	assert_int_equal(decompress(type, rounded(len), n / 2), 0);
	assert_memory_equal(seen, data, n / 2);
	assert_int_equal(seen[n / 2], 0xee);
	for (size_t cut = 0; cut < len; cut += 1 + len / 97)
		if (decompress(type, cut, n) != -EUCLEAN && memcmp(seen, data, n))
			fail_msg("%zu of %zu bytes were taken", cut, len);
}

/*
 * Damaged copies of a good stream: decompression may succeed, since nothing is known about the data, but must stay in
 * bounds.
 */
static void bad_streams(uint8_t type, size_t len, size_t n)
{
	uint8_t *copy = malloc(len), *out = malloc(n);

	assert_non_null(copy);
	assert_non_null(out);
	srand(1);
	for (unsigned i = 0; i < 3000; i++) {
		int ret;

		memcpy(copy, stream, len);
		for (unsigned j = 0; j <= i % 4; j++)
			copy[(size_t)rand() % len] = (uint8_t)rand();
		ret = codec_decompress(type, copy, len, out, n, SECTOR, NULL);
		assert_true(ret == 0 || ret == -EUCLEAN);
	}
	for (size_t i = 0; i < len; i++)
		copy[i] = (uint8_t)(0x9b * i + 0x17);
	assert_int_equal(codec_decompress(type, copy, len, out, n, SECTOR, NULL), -EUCLEAN);
	free(copy);
	free(out);
}

/* Unused in a build without any codec. */
__attribute__((unused))
static void every_size(uint8_t type, size_t (*compress_data)(size_t n))
{
	static const size_t sizes[] = { 1, 100, SECTOR - 1, SECTOR, SECTOR + 1, 40000, DATA_MAX };

	for (unsigned random = 0; random <= 16; random += 4)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t len;

			make_data(i, random);
			len = compress_data(sizes[i]);
			good_stream(type, len, sizes[i]);
		}
	make_data(7, 8);
	bad_streams(type, compress_data(10000), 10000);
}

#ifdef HAVE_ZLIB
static size_t zlib_compress(size_t n)
{
	uLongf len = STREAM_MAX;

	assert_int_equal(compress2(stream, &len, data, n, 3), Z_OK);
	return len;
}

static void zlib_streams(void **state)
{
	(void)state;
	every_size(ZLIB, zlib_compress);
}

static void zlibs_own_checksum_is_not_checked(void **state)
{
	size_t len;

	(void)state;
	make_data(1, 4);
	len = zlib_compress(5000);
	stream[len - 1] ^= 1;
	assert_int_equal(decompress(ZLIB, len, 6000), 0);
	assert_memory_equal(seen, data, 5000);
}
#endif

#ifdef HAVE_LZO
/* Appends one segment at @at. @return where the next one begins */
static size_t lzo_put_segment(size_t at, const uint8_t *from, size_t n)
{
	static uint8_t work[LZO1X_1_MEM_COMPRESS];
	lzo_uint size = STREAM_MAX - at - 4;
	le32 length;

	assert_int_equal(lzo1x_1_compress(from, n, stream + at + 4, &size, work), LZO_E_OK);
	length = le32_put((uint32_t)size);
	memcpy(stream + at, &length, sizeof(length));
	return at + 4 + size;
}

static void lzo_put_total(size_t total)
{
	le32 length = le32_put((uint32_t)total);

	memcpy(stream, &length, sizeof(length));
}

static size_t lzo_compress(size_t n)
{
	size_t at = 4, left;

	for (size_t i = 0; i < n; i += SECTOR) {
		left = SECTOR - at % SECTOR;
		if (left < 4) {
			memset(stream + at, 0, left);
			at += left;
		}
		at = lzo_put_segment(at, data + i, n - i < SECTOR ? n - i : SECTOR);
	}
	lzo_put_total(at);
	return at;
}

static void lzo_streams(void **state)
{
	(void)state;
	every_size(LZO, lzo_compress);
}

/*
 * Makes a stream whose first segment leaves @left bytes of its sector, with one more segment after it.
 * @return its length; 0 if no such size was found
 */
static size_t lzo_stream_that_leaves(unsigned left, size_t *n)
{
	for (*n = SECTOR - 64; *n < SECTOR; (*n)++) {
		size_t at = lzo_put_segment(4, data, *n);

		if (at != SECTOR - left)
			continue;
		memset(stream + at, 0xff, left);
		at = lzo_put_segment(left < 4 ? SECTOR : at, data + *n, SECTOR);
		*n += SECTOR;
		lzo_put_total(at);
		return at;
	}
	return 0;
}

static void lzo_lengths_do_not_cross_sectors(void **state)
{
	(void)state;
	for (unsigned left = 0; left < 8; left++) {
		size_t len = 0, n;

		for (uint64_t seed = 0; !len && seed < 50; seed++) {
			make_data(seed, 16);
			len = lzo_stream_that_leaves(left, &n);
		}
		assert_true(len > 0);
		assert_int_equal(decompress(LZO, len, n), 0);
		assert_memory_equal(seen, data, n);
	}
}

static void lzo_lengths_are_checked(void **state)
{
	size_t len;
	le32 huge = le32_put(UINT32_MAX);

	(void)state;
	make_data(3, 2);
	len = lzo_compress(SECTOR);
	assert_int_equal(decompress(LZO, len, SECTOR), 0);
	lzo_put_total(len + 1);
	assert_int_equal(decompress(LZO, len, SECTOR), -EUCLEAN);
	lzo_put_total(3);
	assert_int_equal(decompress(LZO, len, SECTOR), -EUCLEAN);
	lzo_put_total(UINT32_MAX);
	assert_int_equal(decompress(LZO, len, SECTOR), -EUCLEAN);
	lzo_put_total(len);
	/* Padding may fill the last sector of the stream, but not a whole sector after it. */
	assert_int_equal(decompress(LZO, rounded(len), SECTOR), 0);
	assert_int_equal(decompress(LZO, rounded(len) + SECTOR, SECTOR), -EUCLEAN);
	memcpy(stream + 4, &huge, 4);
	assert_int_equal(decompress(LZO, len, SECTOR), -EUCLEAN);
	/* A segment of more than a sector. */
	len = lzo_put_segment(4, data, SECTOR + 1);
	lzo_put_total(len);
	assert_int_equal(decompress(LZO, len, 2 * SECTOR), -EUCLEAN);
}
#endif

#ifdef HAVE_ZSTD
static size_t zstd_compress_window(size_t n, int window_log)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	ZSTD_inBuffer from = { data, n, 0 };
	ZSTD_outBuffer to = { stream, STREAM_MAX, 0 };

	assert_non_null(ctx);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0);
	if (window_log)
		ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window_log);
	/* Flush the first half first: otherwise the compressor reduces the window to the size of the input. */
	from.size = n / 2;
	while (ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_flush))
		;
	from.size = n;
	while (ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_end))
		;
	ZSTD_freeCCtx(ctx);
	return to.pos;
}

static size_t zstd_compress(size_t n)
{
	return zstd_compress_window(n, 17);
}

static void zstd_streams(void **state)
{
	(void)state;
	every_size(ZSTD, zstd_compress);
}

static void a_zstd_window_that_linux_refuses_is_refused(void **state)
{
	(void)state;
	make_data(5, 4);
	assert_int_equal(decompress(ZSTD, zstd_compress_window(50000, 17), 50000), 0);
	assert_int_equal(decompress(ZSTD, zstd_compress_window(50000, 18), 50000), -EUCLEAN);
	assert_int_equal(decompress(ZSTD, zstd_compress_window(50000, 27), 50000), -EUCLEAN);
}
#endif

static void what_cannot_be_decompressed_is_refused_by_name(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	(void)state;
	assert_int_equal(codec_decompress(9, stream, 10, seen, 10, SECTOR, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "unknown compression 9");
	assert_int_equal(codec_decompress(0, stream, 10, seen, 10, SECTOR, NULL), -EOPNOTSUPP);
#ifndef HAVE_ZLIB
	assert_int_equal(codec_decompress(ZLIB, stream, 10, seen, 10, SECTOR, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "this build cannot decompress zlib");
#endif
#ifndef HAVE_LZO
	assert_int_equal(codec_decompress(LZO, stream, 10, seen, 10, SECTOR, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "this build cannot decompress lzo");
#endif
#ifndef HAVE_ZSTD
	assert_int_equal(codec_decompress(ZSTD, stream, 10, seen, 10, SECTOR, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "this build cannot decompress zstd");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef HAVE_ZLIB
		cmocka_unit_test(zlib_streams),
		cmocka_unit_test(zlibs_own_checksum_is_not_checked),
#endif
#ifdef HAVE_LZO
		cmocka_unit_test(lzo_streams),
		cmocka_unit_test(lzo_lengths_do_not_cross_sectors),
		cmocka_unit_test(lzo_lengths_are_checked),
#endif
#ifdef HAVE_ZSTD
		cmocka_unit_test(zstd_streams),
		cmocka_unit_test(a_zstd_window_that_linux_refuses_is_refused),
#endif
		cmocka_unit_test(what_cannot_be_decompressed_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
