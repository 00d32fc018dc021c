// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <time.h>

#include "tests/unit/items_files.h"
#include "tests/unit/items_space.h"
#include "tests/unit/items_trees.h"

static const struct {
	const struct sample *samples;
	size_t count;
} tables[] = {
	{ file_samples, ARRAY_SIZE(file_samples) },
	{ tree_samples, ARRAY_SIZE(tree_samples) },
	{ space_samples, ARRAY_SIZE(space_samples) },
};

/* Sample number @i of all tables; NULL after the last. */
static const struct sample *sample_at(size_t i)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
		if (i < tables[t].count)
			return &tables[t].samples[i];
		i -= tables[t].count;
	}
	return NULL;
}

static struct item_ctx ctx_of(const struct sample *s)
{
	return (struct item_ctx){
		.sectorsize = 4096, .nodesize = 16384, .csum_size = 4, .incompat = INCOMPAT | s->incompat,
		.generation = GENERATION, .owner = 5,
	};
}

/* A copy that ends at the end of its allocation, so that sanitizers catch reads past it. The caller frees item.data. */
static struct item item_of(const struct btrkit_key *key, const void *data, size_t size, size_t room)
{
	uint8_t *copy = calloc(1, room ? room : 1);

	assert_non_null(copy);
	memcpy(copy, data, size < room ? size : room);
	return (struct item){ *key, copy, (uint32_t)room };
}

static struct {
	char text[1 << 20];
	size_t len;
} out;

static int collect(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	if (len >= sizeof(out.text) - out.len)
		return -ENOSPC;
	memcpy(out.text + out.len, data, len);
	out.len += len;
	out.text[out.len] = '\0';
	return 0;
}

static const char *render(const struct item_ctx *ctx, const struct item *item, enum emit_form form, unsigned flags)
{
	const struct item_type *type = item_type_find(&item->key);
	struct emit e;

	out.len = 0;
	out.text[0] = '\0';
	assert_int_equal(emit_init(&e, form, collect, NULL), 0);
	emit_object(&e, NULL);
	type->render(&e, ctx, item, flags);
	assert_int_equal(e.depth, form == EMIT_JSON);
	emit_object_end(&e);
	assert_int_equal(emit_finish(&e), 0);
	return out.text;
}

static void every_row_has_a_good_item(void **state)
{
	size_t count;
	const struct item_type *const *rows = item_types(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct sample *s;
		size_t n = 0;

		while ((s = sample_at(n)) && item_type_find(&s->key) != rows[i])
			n++;
		if (!s)
			fail_msg("%s has no good item in this test", rows[i]->name);
	}
}

static void rows_are_in_order_and_found(void **state)
{
	size_t count;
	const struct item_type *const *rows = item_types(&count);

	(void)state;
	assert_ptr_equal(item_type_find(&KEY(OID_FREE_SPACE, 0, 0)), rows[0]);
	assert_null(item_type_find(&KEY(257, 0, 0)));
	assert_null(item_type_find(&KEY(257, 2, 0)));
	for (size_t i = 1; i < count; i++) {
		assert_true(rows[i]->type > rows[i - 1]->type);
		assert_ptr_equal(item_type_find(&KEY(1, rows[i]->type, 0)), rows[i]);
		assert_non_null(rows[i]->validate);
		assert_non_null(rows[i]->render);
	}
}

static void good_items_are_valid(void **state)
{
	const struct sample *s;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct item_ctx ctx = ctx_of(s);
		struct item item = item_of(&s->key, s->data, s->size, s->size);

		if (item_validate(&ctx, &item, &err))
			fail_msg("sample %zu, type %u: %s: %s", i, s->key.type, err.field, err.message);
		free((void *)item.data);
	}
}

static void change(const struct bad *b, struct item_ctx *ctx, struct item *item)
{
	const le64 value = le64_put(b->value);

	switch (b->what) {
	case BAD_BYTES:
		assert_true(b->at + b->width <= item->size);
		memcpy((uint8_t *)item->data + b->at, &value, b->width);
		break;
	case BAD_OBJECTID:
		item->key.objectid = b->value;
		break;
	case BAD_OFFSET:
		item->key.offset = b->value;
		break;
	case BAD_INCOMPAT:
		ctx->incompat = b->value;
		break;
	default:
		break;
	}
}

static void bad_items_are_refused_by_field(void **state)
{
	const struct sample *s;
	size_t refused = 0;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		for (const struct bad *b = s->bad; b && b->what != BAD_END; b++) {
			size_t size = b->what == BAD_SIZE ? b->value : s->size;
			struct item item = item_of(&s->key, s->data, s->size, size);
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			struct item_ctx ctx = ctx_of(s);
			int ret;

			change(b, &ctx, &item);
			ret = item_validate(&ctx, &item, &err);
			if (ret != -EUCLEAN || strcmp(err.field, b->field))
				fail_msg("sample %zu, type %u, bad %zu (%s): %d, %s: %s", i, s->key.type,
					 (size_t)(b - s->bad), b->field, ret, err.field, err.message);
			render(&ctx, &item, EMIT_TEXT, RENDER_CSUM_ITEMS);
			render(&ctx, &item, EMIT_JSON, RENDER_CSUM_ITEMS);
			free((void *)item.data);
			refused++;
		}
	}
	assert_true(refused > 150);
}

static void items_read_as_in_dump_tree(void **state)
{
	const struct sample *s;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		struct item_ctx ctx = ctx_of(s);
		struct item item = { s->key, s->data, s->size };

		if (s->text)
			assert_string_equal(render(&ctx, &item, EMIT_TEXT, 0), s->text);
		if (s->json) {
			char line[2048];

			snprintf(line, sizeof(line), "{%s}\n", s->json);
			assert_string_equal(render(&ctx, &item, EMIT_JSON, 0), line);
		}
	}
}

static void checksums_are_shown_when_asked_for(void **state)
{
	const struct sample good = { .size = 0 };
	struct item_ctx ctx = ctx_of(&good);
	struct item item = { { OID_EXTENT_CSUM, KEY_EXTENT_CSUM, 4096 }, (const uint8_t *)"abcdefghijklmnopqrst", 20 };

	(void)state;
	assert_string_equal(render(&ctx, &item, EMIT_TEXT, RENDER_CSUM_ITEMS),
			    "\t\trange start 4096 end 24576 length 20480\n"
			    "\t\t[4096] 0x61626364 [8192] 0x65666768 [12288] 0x696a6b6c [16384] 0x6d6e6f70\n"
			    "\t\t[20480] 0x71727374\n");
	assert_string_equal(render(&ctx, &item, EMIT_JSON, RENDER_CSUM_ITEMS),
			    "{\"start\":4096,\"end\":24576,\"length\":20480,\"csums\":[\"61626364\",\"65666768\","
			    "\"696a6b6c\",\"6d6e6f70\",\"71727374\"]}\n");
	ctx.csum_size = 8;
	item.size = 16;
	assert_string_equal(render(&ctx, &item, EMIT_TEXT, RENDER_CSUM_ITEMS),
			    "\t\trange start 4096 end 12288 length 8192\n"
			    "\t\t[4096] 0x6162636465666768 [8192] 0x696a6b6c6d6e6f70\n");
}

/* btrfs-progs 6.19 prints no encryption, and has another text for owners. Nothing else differs. */
static void the_text_of_6_19_is_known(void **state)
{
	static const struct {
		struct item item;
		const char *now, *before;
	} rows[] = {
		{ { { 257, KEY_EXTENT_DATA, 4096 }, (const uint8_t *)&extent_regular, sizeof(extent_regular) },
		  " 3 (zstd)\n\t\textent encryption 0\n", " 3 (zstd)\n" },
		{ { { 257, KEY_EXTENT_DATA, 0 }, (const uint8_t *)&extent_inline, sizeof(extent_inline) },
		  " 0 (none) encryption 0\n", " 0 (none)\n" },
		{ { { 257, KEY_EXTENT_DATA, 0 }, (const uint8_t *)&extent_prealloc, sizeof(extent_prealloc) },
		  " offset 0 nr 4096\n", " offset 0 nr 4096\n" },
		{ { { 4096, KEY_EXTENT_ITEM, 4096 }, (const uint8_t *)&data_extent, sizeof(data_extent) },
		  "\n\t\t(172 0x100) extent owner root 256\n", "\n\t(172 0x100) textent owner root 256\n" },
	};
	const struct sample good = { .size = 0 };
	const struct item_ctx ctx = ctx_of(&good);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char now[1024];
		const char *before, *at;

		snprintf(now, sizeof(now), "%s", render(&ctx, &rows[i].item, EMIT_TEXT, 0));
		before = render(&ctx, &rows[i].item, EMIT_TEXT, RENDER_COMPAT_6_19);
		at = strstr(now, rows[i].now);
		assert_non_null(at);
		assert_memory_equal(now, before, (size_t)(at - now));
		assert_memory_equal(before + (at - now), rows[i].before, strlen(rows[i].before));
		assert_string_equal(before + (at - now) + strlen(rows[i].before), at + strlen(rows[i].now));
	}
}

/* With hidden names, nothing that a user named or wrote may be shown. */
static void hidden_names_are_hidden(void **state)
{
	static const char *const secrets[] = { "uno", "a\\ b", "xy", "default", "selinux", "v\\", "sn 1", "any",
						"765c00", "61626364", "68656c6c6f" };
	const struct sample *s;
	size_t hidden = 0;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		struct item_ctx ctx = ctx_of(s);
		struct item item = { s->key, s->data, s->size };

		for (int form = EMIT_TEXT; form <= EMIT_JSON; form++) {
			const char *text = render(&ctx, &item, form, RENDER_HIDE_NAMES);

			for (size_t n = 0; n < ARRAY_SIZE(secrets); n++)
				if (strstr(text, secrets[n]))
					fail_msg("sample %zu shows %s: %s", i, secrets[n], text);
			hidden += strstr(text, "HIDDEN") != NULL;
		}
	}
	/* The text form never shows inline data or verity data, so less is hidden there. */
	assert_int_equal(hidden, 2 * 8 + 4);
}

static void assert_verdict(int ret)
{
	assert_true(ret == 0 || ret == -EUCLEAN);
}

static void items_cut_short_are_shown_as_far_as_they_go(void **state)
{
	const struct sample *s;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		for (uint32_t size = 0; size < s->size; size++) {
			struct item item = item_of(&s->key, s->data, s->size, size);
			struct item_ctx ctx = ctx_of(s);
			const char *text = render(&ctx, &item, EMIT_TEXT, RENDER_CSUM_ITEMS);

			assert_true(!*text || text[strlen(text) - 1] == '\n');
			render(&ctx, &item, EMIT_JSON, 0);
			assert_verdict(item_validate(&ctx, &item, NULL));
			free((void *)item.data);
		}
	}
}

static void cut_items_name_what_does_not_fit(void **state)
{
	const struct sample good = { .size = 0 };
	const struct item_ctx ctx = ctx_of(&good);
	struct item ref = { { 257, KEY_INODE_REF, 256 }, (const uint8_t *)&inode_ref_two, sizeof(inode_ref_two) - 1 };
	struct item chunk = { { 256, KEY_CHUNK_ITEM, 0 }, (const uint8_t *)&chunk_dup, sizeof(chunk_dup) - 1 };
	struct item extent = { { 4096, KEY_EXTENT_ITEM, 4096 }, (const uint8_t *)&data_extent, 40 };
	struct item inode = { { 256, KEY_INODE_ITEM, 0 }, (const uint8_t *)&inode_dir, 100 };
	struct item count = { { 4096, KEY_SHARED_DATA_REF, 8192 }, (const uint8_t *)&data_ref, sizeof(data_ref) };

	(void)state;
	assert_string_equal(render(&ctx, &ref, EMIT_TEXT, 0),
			    "\t\tindex 2 namelen 3 name: uno\n\t\tindex 3 namelen 4 name: a\\ b\n"
			    "\t\t(item is damaged: name_len)\n");
	assert_string_equal(render(&ctx, &ref, EMIT_JSON, 0),
			    "{\"names\":[{\"index\":2,\"name_len\":3,\"name\":\"uno\"},"
			    "{\"index\":3,\"name_len\":4,\"name\":\"a b\"}],\"damaged\":\"name_len\"}\n");
	assert_non_null(strstr(render(&ctx, &chunk, EMIT_TEXT, 0), "stripe 0"));
	assert_null(strstr(out.text, "stripe 1"));
	assert_non_null(strstr(out.text, "\t\t(item is damaged: num_stripes)\n"));
	assert_string_equal(render(&ctx, &extent, EMIT_TEXT, 0),
			    "\t\trefs 6 gen 9 flags DATA\n\t\t(172 0x100) extent owner root 256\n"
			    "\t\t(item is damaged: inline_refs)\n");
	assert_string_equal(render(&ctx, &inode, EMIT_TEXT, 0), "\t\t(item is damaged: item_size)\n");
	/* An item that is too long is still shown as far as its type goes. */
	assert_string_equal(render(&ctx, &count, EMIT_TEXT, 0),
			    "\t\tshared data backref count 4294967287\n\t\t(item is damaged: item_size)\n");
}

/* Whatever the bytes are, validating and rendering must stay within them (the sanitizers check that) and terminate. */
static void random_damage_is_harmless(void **state)
{
	const struct sample *s;
	uint32_t seed = 12345;

	(void)state;
	for (size_t i = 0; (s = sample_at(i)); i++) {
		for (int round = 0; round < 200; round++) {
			struct item item = item_of(&s->key, s->data, s->size, s->size);
			struct item_ctx ctx = ctx_of(s);

			for (int n = 0; n < 3 && s->size; n++) {
				seed = seed * 1664525 + 1013904223;
				((uint8_t *)item.data)[(seed >> 8) % s->size] = seed & 1 ? 0xff : (uint8_t)(seed >> 24);
			}
			render(&ctx, &item, EMIT_TEXT, 0);
			render(&ctx, &item, EMIT_JSON, 0);
			assert_verdict(item_validate(&ctx, &item, NULL));
			free((void *)item.data);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_a_good_item),
		cmocka_unit_test(rows_are_in_order_and_found),
		cmocka_unit_test(good_items_are_valid),
		cmocka_unit_test(bad_items_are_refused_by_field),
		cmocka_unit_test(items_read_as_in_dump_tree),
		cmocka_unit_test(checksums_are_shown_when_asked_for),
		cmocka_unit_test(the_text_of_6_19_is_known),
		cmocka_unit_test(hidden_names_are_hidden),
		cmocka_unit_test(items_cut_short_are_shown_as_far_as_they_go),
		cmocka_unit_test(cut_items_name_what_does_not_fit),
		cmocka_unit_test(random_damage_is_harmless),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
