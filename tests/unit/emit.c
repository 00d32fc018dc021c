// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "lib/base/emit.h"

/* Collects the output; fails from call number fail_at on. */
struct sink {
	char text[1 << 20];
	size_t len;
	unsigned calls, fail_at;
};

static int collect(void *ctx, const void *data, size_t len)
{
	struct sink *s = ctx;

	if (s->calls++ >= s->fail_at)
		return -ENOSPC;
	assert_true(s->len + len < sizeof(s->text));
	memcpy(s->text + s->len, data, len);
	s->len += len;
	return 0;
}

static struct sink sink;

static void begin(struct emit *e, enum emit_form form)
{
	sink.len = 0;
	sink.calls = 0;
	sink.fail_at = UINT_MAX;
	assert_int_equal(emit_init(e, form, collect, &sink), 0);
}

static void expect(struct emit *e, const char *text)
{
	assert_int_equal(emit_finish(e), 0);
	sink.text[sink.len] = '\0';
	assert_string_equal(sink.text, text);
}

static void every_field(struct emit *e)
{
	static const uint8_t bytes[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
					   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

	emit_object(e, NULL);
	emit_u64(e, "u", "u ", UINT64_MAX);
	emit_s64(e, "s", " s ", INT64_MIN);
	emit_x64(e, "x", " x ", 0xdeadbeef00ull);
	emit_oct(e, "o", " o ", 0100644);
	emit_uuid(e, "id", " id ", bytes);
	emit_hex(e, "h", " h ", bytes + 14, 2);
	emit_str(e, "w", " w ", "word");
	emit_bool(e, "b", true);
	emit_textf(e, " %5.2f", 1.5);
	emit_array(e, "list");
	emit_u64(e, NULL, " ", 0);
	emit_u64(e, NULL, ",", 7);
	emit_u64(e, NULL, ",", 10);
	emit_u64(e, NULL, ",", 99);
	emit_u64(e, NULL, ",", 100);
	emit_object(e, NULL);
	emit_bool(e, "inner", false);
	emit_object_end(e);
	emit_array_end(e);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void text_has_words_and_values(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_TEXT);
	every_field(&e);
	expect(&e, "u 18446744073709551615 s -9223372036854775808 x 0xdeadbeef00 o 100644 "
		   "id 00112233-4455-6677-8899-aabbccddeeff h eeff w word  1.50 0,7,10,99,100\n");
}

static void json_has_keys_and_numbers(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	every_field(&e);
	expect(&e, "{\"u\":18446744073709551615,\"s\":-9223372036854775808,\"x\":956397711104,\"o\":33188,"
		   "\"id\":\"00112233-4455-6677-8899-aabbccddeeff\",\"h\":\"eeff\",\"w\":\"word\",\"b\":true,"
		   "\"list\":[0,7,10,99,100,{\"inner\":false}]}\n");
}

static void an_outermost_object_is_a_line(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	for (unsigned i = 0; i < 2; i++) {
		emit_object(&e, NULL);
		emit_u64(&e, "i", "", i);
		emit_object_end(&e);
	}
	expect(&e, "{\"i\":0}\n{\"i\":1}\n");
}

static void zero_in_every_base(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_TEXT);
	emit_u64(&e, "", "", 0);
	emit_s64(&e, "", " ", 0);
	emit_x64(&e, "", " ", 0);
	emit_oct(&e, "", " ", 0);
	expect(&e, "0 0 0x0 0");
}

static void json_names_can_be_recovered(void **state)
{
	static const struct {
		const char *name, *json;
	} rows[] = {
		{ "plain", "plain" },
		{ "a\"b\\c", "a\\\"b\\\\c" },
		{ "\n\x1f\x7f", "\\u000a\\u001f\\u007f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xff\xfe", "\\udcff\\udcfe" },
		{ "\xc3", "\\udcc3" },			 /* truncated */
		{ "\xe2\x82z", "\\udce2\\udc82z" },	 /* in the middle of a character */
		{ "\xc0\xaf", "\\udcc0\\udcaf" },	 /* two bytes for a character that needs one */
		{ "\xe0\x80\xaf", "\\udce0\\udc80\\udcaf" },
		{ "\xed\xa0\x80", "\\udced\\udca0\\udc80" }, /* a surrogate */
		{ "\xf4\x90\x80\x80", "\\udcf4\\udc90\\udc80\\udc80" }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", "\\udcf5\\udc80\\udc80\\udc80" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char want[128];
		struct emit e;

		begin(&e, EMIT_JSON);
		emit_object(&e, NULL);
		emit_name(&e, "n", "", rows[i].name, strlen(rows[i].name));
		emit_object_end(&e);
		snprintf(want, sizeof(want), "{\"n\":\"%s\"}\n", rows[i].json);
		expect(&e, want);
	}
}

static void a_name_may_hold_a_zero(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	emit_object(&e, NULL);
	emit_name(&e, "n", "", "a\0b", 3);
	emit_object_end(&e);
	expect(&e, "{\"n\":\"a\\u0000b\"}\n");
	begin(&e, EMIT_TEXT);
	emit_name(&e, "n", "name: ", "\xff\n", 2);
	expect(&e, "name: \xff\n");
}

static void escaped_names_in_text(void **state)
{
	static const char name[] = "a b\\\a\b\t\n\v\f\r\x1b\x01\x7f\xc3\xbc~";
	struct emit e;

	(void)state;
	begin(&e, EMIT_TEXT);
	emit_name_escaped(&e, "n", "[", name, sizeof(name) - 1, false);
	emit_name_escaped(&e, "n", "][", "a b", 3, true);
	emit_name_escaped(&e, "n", "][", "", 0, true);
	emit_text(&e, "]");
	expect(&e, "[a b\\\\\\a\\b\\t\\n\\v\\f\\r\\e\\001\\177\\303\\274~][a\\ b][]");
}

static void long_output_arrives_whole(void **state)
{
	static char big[700000];
	struct emit e;

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)('a' + i % 26);
	begin(&e, EMIT_TEXT);
	emit_bytes(&e, big, sizeof(big));
	for (unsigned i = 0; i < 10000; i++)
		emit_u64(&e, "", " ", 1000000000 + i);
	assert_int_equal(emit_finish(&e), 0);
	assert_int_equal(sink.len, sizeof(big) + 110000);
	assert_memory_equal(sink.text, big, sizeof(big));
	for (unsigned i = 0; i < 10000; i++) {
		char want[16];

		snprintf(want, sizeof(want), " %u", 1000000000 + i);
		assert_memory_equal(sink.text + sizeof(big) + 11 * i, want, 11);
	}
}

static void the_first_failure_sticks(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_TEXT);
	sink.fail_at = 1;
	emit_text(&e, "one");
	assert_int_equal(emit_flush(&e), 0);
	emit_text(&e, "two");
	assert_int_equal(emit_flush(&e), -ENOSPC);
	assert_int_equal(emit_failed(&e), -ENOSPC);
	sink.fail_at = UINT_MAX;
	emit_text(&e, "three");
	emit_u64(&e, "", "", 3);
	assert_null(emit_room(&e, 4096));
	assert_int_equal(emit_flush(&e), -ENOSPC);
	assert_int_equal(emit_finish(&e), -ENOSPC);
	assert_int_equal(sink.len, 3);
	assert_int_equal(sink.calls, 2);
}

static void what_is_abandoned_is_not_written(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	emit_header(&e, "list");
	emit_abandon(&e);
	assert_int_equal(sink.calls, 0);
	assert_null(e.buf);
}

/* Filters that keep some fields, and lines of which nothing remains. */
static void a_filter_keeps_what_it_names(void **state)
{
	static const struct emit_filter inner = { "inner", NULL, NULL }, two = { "two", NULL, NULL };
	static const struct emit_filter only_inner = { "list", &inner, NULL };
	static const struct emit_filter whole[] = { { "u", NULL, &whole[1] }, { "list", NULL, NULL } };
	static const struct emit_filter nested = { "b", &two, &whole[0] };
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	emit_header(&e, "x");
	emit_keep(&e, &only_inner);
	every_field(&e);
	emit_keep(&e, whole);
	every_field(&e);
	/* A value where the filter expects an object. */
	emit_keep(&e, &nested);
	every_field(&e);
	emit_keep(&e, &two);
	every_field(&e);
	emit_object(&e, NULL);
	emit_object(&e, "b");
	emit_u64(&e, "two", "", 2);
	emit_object_end(&e);
	emit_object_end(&e);
	expect(&e, "{\"__header\":{\"version\":1,\"command\":\"x\"}}\n{\"list\":[{\"inner\":false}]}\n"
		   "{\"u\":18446744073709551615,\"list\":[0,7,10,99,100,{\"inner\":false}]}\n"
		   "{\"u\":18446744073709551615,\"list\":[0,7,10,99,100,{\"inner\":false}]}\n");
}

static void too_many_levels_fail(void **state)
{
	struct emit e;

	(void)state;
	begin(&e, EMIT_JSON);
	emit_object(&e, NULL);
	for (unsigned i = 1; i < EMIT_DEPTH; i++)
		emit_array(&e, i == 1 ? "a" : NULL);
	assert_int_equal(emit_failed(&e), 0);
	emit_array(&e, NULL);
	assert_int_equal(emit_finish(&e), -EOVERFLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_words_and_values),
		cmocka_unit_test(json_has_keys_and_numbers),
		cmocka_unit_test(an_outermost_object_is_a_line),
		cmocka_unit_test(zero_in_every_base),
		cmocka_unit_test(json_names_can_be_recovered),
		cmocka_unit_test(a_name_may_hold_a_zero),
		cmocka_unit_test(escaped_names_in_text),
		cmocka_unit_test(long_output_arrives_whole),
		cmocka_unit_test(the_first_failure_sticks),
		cmocka_unit_test(what_is_abandoned_is_not_written),
		cmocka_unit_test(a_filter_keeps_what_it_names),
		cmocka_unit_test(too_many_levels_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
