// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/digits.h"
#include "tests/random.h"

static void assert_digits(uint64_t v)
{
	char expected[DIGITS_WIDE_ROOM + 1], got[DIGITS_WIDE_ROOM + 1];
	int len = snprintf(expected, sizeof(expected), "%" PRIu64, v);
	char *end;

	memset(got, '#', sizeof(got));
	end = digits_put(got, v);
	assert_int_equal(end - got, len);
	assert_int_equal(digits_count(v), len);
	assert_memory_equal(got, expected, len);
	assert_int_equal(*end, '#');
	len = snprintf(expected, sizeof(expected), "0x%" PRIx64, v);
	memset(got, '#', sizeof(got));
	end = digits_put_hex(got, v);
	assert_int_equal(end - got, len);
	assert_memory_equal(got, expected, len);
	assert_int_equal(*end, '#');
	for (int width = 0; width <= (int)DIGITS_WIDTH_MAX + 1; width++) {
		const int columns = width < (int)DIGITS_WIDTH_MAX ? width : (int)DIGITS_WIDTH_MAX;

		len = snprintf(expected, sizeof(expected), "%*" PRIu64, columns, v);
		memset(got, '#', sizeof(got));
		end = digits_put_wide(got, v, (unsigned)width);
		assert_int_equal(end - got, len);
		assert_memory_equal(got, expected, len);
		assert_int_equal(got[DIGITS_WIDE_ROOM], '#');
	}
}

static void many_numbers(void **state)
{
	uint64_t v = 1;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		assert_digits(v >> i % 64);
		random_step(&v);
	}
}

static void numbers_of_every_length(void **state)
{
	uint64_t power = 1;

	(void)state;
	assert_digits(0);
	assert_digits(UINT64_MAX);
	for (int i = 0; i < DIGITS_ROOM; i++, power *= 10) {
		assert_digits(power - 1);
		assert_digits(power);
		assert_digits(power + 1);
		assert_digits(power / 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_length),
		cmocka_unit_test(many_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
