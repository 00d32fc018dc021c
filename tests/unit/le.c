// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "lib/base/le.h"
#include "lib/base/reader.h"

static void bytes_lie_low_end_first(void **state)
{
	static const uint8_t bytes[8] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };
	le16 v16;
	le32 v32;
	le64 v64;

	(void)state;
	memcpy(&v16, bytes, sizeof(v16));
	memcpy(&v32, bytes, sizeof(v32));
	memcpy(&v64, bytes, sizeof(v64));
	assert_int_equal(le16_get(v16), 0x7788);
	assert_int_equal(le32_get(v32), 0x55667788);
	assert_true(le64_get(v64) == 0x1122334455667788ull);
}

static void put_is_the_inverse_of_get(void **state)
{
	static const uint8_t bytes[8] = { 0xf8, 0x07, 0xf6, 0x05, 0xf4, 0x03, 0xf2, 0x01 };
	le16 v16 = le16_put(0x07f8);
	le32 v32 = le32_put(0x05f607f8);
	le64 v64 = le64_put(0x01f203f405f607f8ull);

	(void)state;
	assert_memory_equal(&v16, bytes, sizeof(v16));
	assert_memory_equal(&v32, bytes, sizeof(v32));
	assert_memory_equal(&v64, bytes, sizeof(v64));
}

static void wrappers_have_no_padding(void **state)
{
	struct {
		uint8_t one;
		le64 eight;
		le16 two;
		le32 four;
	} packed;

	(void)state;
	assert_int_equal(sizeof(packed), 15);
}

static void reader_hands_out_what_lies_inside(void **state)
{
	static const uint8_t bytes[10] = { 0 };
	struct reader r = reader_of(bytes, sizeof(bytes));

	(void)state;
	assert_ptr_equal(reader_take(&r, 4), bytes);
	assert_int_equal(reader_left(&r), 6);
	assert_ptr_equal(reader_peek(&r, 6), bytes + 4);
	assert_int_equal(reader_left(&r), 6);
	assert_ptr_equal(reader_take(&r, 6), bytes + 4);
	assert_int_equal(reader_left(&r), 0);
	assert_non_null(reader_take(&r, 0));
}

static void reader_does_not_step_past_the_end(void **state)
{
	static const uint8_t bytes[10] = { 0 };
	struct reader r = reader_of(bytes, sizeof(bytes));

	(void)state;
	assert_null(reader_take(&r, 11));
	assert_null(reader_peek(&r, 11));
	assert_null(reader_take(&r, SIZE_MAX));
	assert_int_equal(reader_left(&r), 10);
	assert_non_null(reader_take(&r, 3));
	assert_null(reader_take(&r, 8));
	assert_int_equal(reader_left(&r), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_lie_low_end_first),
		cmocka_unit_test(put_is_the_inverse_of_get),
		cmocka_unit_test(wrappers_have_no_padding),
		cmocka_unit_test(reader_hands_out_what_lies_inside),
		cmocka_unit_test(reader_does_not_step_past_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
