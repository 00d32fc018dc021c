// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "lib/base/err.h"

static void codes_map_to_one_errno_each(void **state)
{
	static const struct {
		enum btrkit_code code;
		int err;
	} rows[] = {
		{ BTRKIT_OK, 0 },
		{ BTRKIT_NOT_BTRFS, -EMEDIUMTYPE },
		{ BTRKIT_UNSUPPORTED, -EOPNOTSUPP },
		{ BTRKIT_CORRUPT, -EUCLEAN },
		{ BTRKIT_TRUNCATED, -ENXIO },
		{ BTRKIT_NO_ATTRIBUTE, -ENODATA },
		{ BTRKIT_IO, -EIO },
		{ BTRKIT_NO_SPACE, -ENOSPC },
		{ BTRKIT_BUSY, -EBUSY },
		{ BTRKIT_INVALID, -EINVAL },
		{ BTRKIT_NOT_FOUND, -ENOENT },
		{ BTRKIT_NO_MEMORY, -ENOMEM },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct btrkit_error err;

		assert_int_equal(err_errno(rows[i].code), rows[i].err);
		assert_int_equal(err_set(&err, rows[i].code, "what"), rows[i].err);
		assert_int_equal(err.code, rows[i].code);
		assert_int_equal(err.err, rows[i].err);
		assert_int_equal(err_set(NULL, rows[i].code, "what"), rows[i].err);
	}
}

static void a_message_without_a_place_stands_alone(void **state)
{
	struct btrkit_error err;
	char text[256];

	(void)state;
	err_set(&err, BTRKIT_INVALID, "number %d is odd", 3);
	assert_string_equal(btrkit_error_format(&err, text, sizeof(text)), "number 3 is odd");
}

static void places_are_added_and_the_first_one_stays(void **state)
{
	const struct btrkit_key key = { 256, 1, 0 }, other = { 5, 6, 7 };
	struct btrkit_error err;
	char text[512];

	(void)state;
	assert_int_equal(err_corrupt(&err, "nlink", "it is %u", 0u), -EUCLEAN);
	err_at_item(&err, 4, &key);
	err_at_logical(&err, 30408704);
	err_at_tree(&err, 5);
	err_at_device(&err, 1, 38797312);
	err_at_item(&err, 9, &other);
	err_at_logical(&err, 1);
	err_at_tree(&err, 2);
	err_at_device(&err, 3, 4);
	assert_string_equal(btrkit_error_format(&err, text, sizeof(text)),
			    "it is 0, tree 5, block 30408704, device 1, physical 38797312, slot 4, key (256 1 0), "
			    "field nlink");
}

static void other_copies_come_last(void **state)
{
	struct btrkit_error err;
	char text[BTRKIT_ERROR_LINE];

	(void)state;
	assert_int_equal(err_corrupt(&err, "csum", "mismatch"), -EUCLEAN);
	assert_string_equal(err.copies, "");
	snprintf(err.copies, sizeof(err.copies), "copy 2 on device 2 at 7: mismatch");
	err_at_device(&err, 1, 5);
	assert_string_equal(btrkit_error_format(&err, text, sizeof(text)),
			    "mismatch, device 1, physical 5, field csum; copy 2 on device 2 at 7: mismatch");
	/* The longest possible line. */
	memset(err.copies, '\n', sizeof(err.copies) - 1);
	memset(err.message, '\n', sizeof(err.message) - 1);
	memset(err.field, 'f', sizeof(err.field) - 1);
	err.places = UINT32_MAX;
	err.devid = err.physical = err.logical = err.tree = err.key.objectid = err.key.offset = UINT64_MAX;
	err.slot = UINT32_MAX;
	err.key.type = UINT8_MAX;
	btrkit_error_format(&err, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text) - 1);
}

static void a_line_is_one_line(void **state)
{
	const char *const shown = "cannot open a\\012b\\033[2J\\302\\233\xc3\xa9\\177";
	struct btrkit_error err;
	char text[BTRKIT_ERROR_LINE];

	(void)state;
	err_set(&err, BTRKIT_INVALID, "cannot open %s", "a\nb\033[2J\xc2\x9b\xc3\xa9\177");
	assert_string_equal(btrkit_error_format(&err, text, sizeof(text)), shown);
	/* However small the buffer is, it has the beginning of the line. */
	for (size_t size = 1; size < strlen(shown) + 2; size++) {
		char *small = test_malloc(size);

		btrkit_error_format(&err, small, size);
		assert_true(strlen(small) < size);
		assert_memory_equal(small, shown, strlen(small));
		test_free(small);
	}
}

static void causes_belong_to_one_failure(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	(void)state;
	assert_int_equal(err_because(&err, BTRKIT_CAUSE_CSUM, err_corrupt(&err, "csum", "mismatch")), -EUCLEAN);
	assert_int_equal(err.cause, BTRKIT_CAUSE_CSUM);
	err_at_logical(&err, 5);
	err_name(&err, "name");
	assert_int_equal(err.cause, BTRKIT_CAUSE_CSUM);
	err_set(&err, BTRKIT_INVALID, "another failure");
	assert_int_equal(err.cause, BTRKIT_CAUSE_OTHER);
	assert_int_equal(err_because(NULL, BTRKIT_CAUSE_CSUM, -EIO), -EIO);
}

static void places_need_no_error_object(void **state)
{
	(void)state;
	assert_int_equal(err_corrupt(NULL, NULL, "what"), -EUCLEAN);
	assert_int_equal(err_nomem(NULL), -ENOMEM);
	err_at_item(NULL, 0, NULL);
	err_at_logical(NULL, 0);
	err_at_tree(NULL, 0);
	err_at_device(NULL, 0, 0);
}

static void the_systems_words_follow_ours(void **state)
{
	struct btrkit_error err;

	(void)state;
	assert_int_equal(err_system(&err, EACCES, "cannot open"), -EACCES);
	assert_string_equal(err.message, "cannot open: Permission denied");
	assert_int_equal(err.code, BTRKIT_SYSTEM);
	assert_int_equal(err_system(&err, -EIO, "cannot read"), -EIO);
	assert_int_equal(err.code, BTRKIT_IO);
	assert_int_equal(err_system(NULL, ENOENT, "cannot open"), -ENOENT);
}

static void a_long_message_is_cut_and_ends(void **state)
{
	struct btrkit_error err;
	char big[2000], small[10];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&err, BTRKIT_INVALID, "%s", big);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	err_system(&err, EIO, "%s", big);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	err_at_logical(&err, 1);
	btrkit_error_format(&err, small, sizeof(small));
	assert_string_equal(small, "xxxxxxxxx");
	assert_ptr_equal(btrkit_error_format(&err, small, 0), small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_map_to_one_errno_each),
		cmocka_unit_test(a_message_without_a_place_stands_alone),
		cmocka_unit_test(places_are_added_and_the_first_one_stays),
		cmocka_unit_test(other_copies_come_last),
		cmocka_unit_test(a_line_is_one_line),
		cmocka_unit_test(causes_belong_to_one_failure),
		cmocka_unit_test(places_need_no_error_object),
		cmocka_unit_test(the_systems_words_follow_ours),
		cmocka_unit_test(a_long_message_is_cut_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
