// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opening, reading with a second copy, the cache and cursors, on a synthetic filesystem. */
#include "tests/unit/unit.h"

#include <pthread.h>

#include <btrkit/subvolume.h>

#include "lib/format/ids.h"
#include "lib/format/super.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"
#include "tests/unit/synthetic.h"

#define ITEMS 3000u

static struct syn_item items[ITEMS];
static uint8_t payload[ITEMS];

/* Keys 10, 20, 30 ... of a type that is not in the registry, so that only the tree code validates the items. */
static void make_items(void)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		payload[i] = (uint8_t)(i * 7);
		items[i] = (struct syn_item){ KEY(300 + i / 50, 1, 10 * i), &payload[i], 1 };
	}
}

static struct btrkit_fs *open_new(struct synthetic *s, size_t cache_bytes)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;

	opts.cache_bytes = cache_bytes;
	syn_create(s, items, ITEMS);
	if (syn_open(s, &opts, &fs, &err))
		fail_msg("%s", err.message);
	return fs;
}

static void fs_cursor(struct btrkit_fs *fs, struct cursor *c)
{
	struct tree_root root;

	assert_int_equal(fs_find_root(fs, OID_FS_TREE, &root, NULL, NULL), 0);
	cursor_init(c, fs, &root);
}

static void expect_item(const struct cursor *c, unsigned i)
{
	assert_int_equal(key_cmp(&c->item.key, &items[i].key), 0);
	assert_int_equal(c->item.size, 1);
	assert_int_equal(*c->item.data, payload[i]);
}

static void scan_visits_every_item(void **state)
{
	struct btrkit_key first = KEY(0, 0, 0);
	struct synthetic s;
	struct btrkit_fs *fs = open_new(&s, 1);
	struct cursor c;
	unsigned n = 0;
	int ret;

	(void)state;
	assert_true(s.fs_level >= 2);
	fs_cursor(fs, &c);
	c.scan = true;
	for (ret = cursor_seek(&c, &first, NULL); !ret; ret = cursor_next(&c, NULL))
		expect_item(&c, n++);
	assert_int_equal(ret, 1);
	assert_int_equal(n, ITEMS);
	cursor_release(&c);
	btrkit_fs_close(fs);
}

/* Every existing key, and the keys next to it. */
static void seeks_land_where_an_array_says(void **state)
{
	struct synthetic s;
	struct btrkit_fs *fs = open_new(&s, 0);
	struct cursor c;

	(void)state;
	fs_cursor(fs, &c);
	for (unsigned k = 0; k < 3 * ITEMS; k++) {
		unsigned i = (k * 7919u) % ITEMS; /* in no order, so that the cursor jumps */
		struct btrkit_key below = items[i].key, above = items[i].key;

		below.offset -= !!below.offset;
		above.offset++;
		assert_int_equal(cursor_find(&c, &items[i].key, NULL), 0);
		expect_item(&c, i);
		assert_int_equal(cursor_seek(&c, &below, NULL), 0);
		expect_item(&c, i);
		assert_int_equal(cursor_seek_back(&c, &above, NULL), 0);
		expect_item(&c, i);
		assert_int_equal(cursor_find(&c, &above, NULL), 1);
		assert_int_equal(cursor_seek(&c, &above, NULL), i + 1 == ITEMS);
		if (i + 1 < ITEMS)
			expect_item(&c, i + 1);
		assert_int_equal(cursor_seek_back(&c, &below, NULL), i == 0 && below.offset != 0);
		if (i)
			expect_item(&c, i - 1);
	}
	assert_int_equal(cursor_seek_back(&c, &KEY(0, 0, 0), NULL), 1);
	assert_int_equal(cursor_seek(&c, &KEY(UINT64_MAX, 255, UINT64_MAX), NULL), 1);
	cursor_release(&c);
	btrkit_fs_close(fs);
}

/* Trees with a root item, and those that the superblock names. */
static void trees_are_found_by_their_number(void **state)
{
	struct synthetic s;
	struct btrkit_fs *fs = open_new(&s, 1 << 20);
	struct root_item item;
	struct tree_root root;

	(void)state;
	assert_int_equal(fs_find_tree(fs, OID_FS_TREE, &root, &item, NULL), 0);
	assert_true(root.id == OID_FS_TREE && root.bytenr == item.bytenr && item.bytenr != 0);
	assert_int_equal(fs_find_tree(fs, OID_ROOT_TREE, &root, &item, NULL), 0);
	assert_true(root.id == OID_ROOT_TREE && root.bytenr == fs->root_tree.bytenr && !item.bytenr);
	assert_int_equal(fs_find_tree(fs, OID_CHUNK_TREE, &root, NULL, NULL), 0);
	assert_true(root.id == OID_CHUNK_TREE && root.bytenr == fs->chunk_tree.bytenr);
	assert_int_equal(fs_find_tree(fs, 999, &root, NULL, NULL), -ENOENT);
	btrkit_fs_close(fs);
}

static int scan(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct btrkit_key first = KEY(0, 0, 0);
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = fs_find_root(fs, OID_FS_TREE, &root, NULL, err);
	if (ret)
		return ret;
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &first, err); !ret; ret = cursor_next(&c, err))
		;
	cursor_release(&c);
	return ret;
}

static int open_and_scan(struct synthetic *s, struct btrkit_error *err)
{
	struct btrkit_fs *fs = NULL;
	int ret = syn_open(s, NULL, &fs, err);

	if (!ret)
		ret = scan(fs, err);
	btrkit_fs_close(fs);
	return ret;
}

/* A way to damage a block, and the field that the error must name. @resign renews the checksum. */
struct damage {
	const char *field;
	int resign;
	int level; /* of the block to damage */
	void (*apply)(uint8_t *block);
};

#define HEADER(block) ((struct disk_header *)(block))
#define LEAF_ITEMS(block) ((struct disk_item *)((block) + sizeof(struct disk_header)))
#define NODE_PTRS(block) ((struct disk_key_ptr *)((block) + sizeof(struct disk_header)))

static void flip_bit(uint8_t *b)
{
	b[2000] ^= 4;
}

static void zero_fill(uint8_t *b)
{
	memset(b, 0, SYN_NODESIZE);
}

static void other_fsid(uint8_t *b)
{
	HEADER(b)->fsid[3]++;
}

static void other_address(uint8_t *b)
{
	HEADER(b)->bytenr = le64_put(le64_get(HEADER(b)->bytenr) + SYN_NODESIZE);
}

static void high_level(uint8_t *b)
{
	HEADER(b)->level = 8;
}

static void other_level(uint8_t *b)
{
	HEADER(b)->level++;
}

static void old_generation(uint8_t *b)
{
	HEADER(b)->generation = le64_put(SYN_GENERATION - 1);
}

static void other_owner(uint8_t *b)
{
	HEADER(b)->owner = le64_put(OID_CSUM_TREE);
}

static void too_many_items(uint8_t *b)
{
	HEADER(b)->nritems = le32_put(1000);
}

static void no_items(uint8_t *b)
{
	HEADER(b)->nritems = le32_put(0);
}

static void disorder(uint8_t *b)
{
	LEAF_ITEMS(b)[3].key = LEAF_ITEMS(b)[2].key;
}

static void item_past_end(uint8_t *b)
{
	LEAF_ITEMS(b)[0].size = le32_put(le32_get(LEAF_ITEMS(b)[0].size) + 1);
}

static void item_gap(uint8_t *b)
{
	LEAF_ITEMS(b)[5].offset = le32_put(le32_get(LEAF_ITEMS(b)[5].offset) - 8);
}

static void item_over_headers(uint8_t *b)
{
	uint32_t n = le32_get(HEADER(b)->nritems);
	uint32_t end = le32_get(LEAF_ITEMS(b)[n - 2].offset), size = end - (n - 1) * (uint32_t)sizeof(struct disk_item);

	LEAF_ITEMS(b)[n - 1].offset = le32_put(end - size);
	LEAF_ITEMS(b)[n - 1].size = le32_put(size);
}

static void other_first_key(uint8_t *b)
{
	LEAF_ITEMS(b)[0].key.objectid = le64_put(2);
}

static void child_disorder(uint8_t *b)
{
	NODE_PTRS(b)[1].key = NODE_PTRS(b)[0].key;
}

static void child_unaligned(uint8_t *b)
{
	NODE_PTRS(b)[1].blockptr = le64_put(le64_get(NODE_PTRS(b)[1].blockptr) + 1);
}

static void child_zero(uint8_t *b)
{
	NODE_PTRS(b)[1].blockptr = le64_put(0);
}

static void child_out_of_range(uint8_t *b)
{
	NODE_PTRS(b)[1].blockptr = le64_put(1ull << 60);
}

/* The first child becomes the block itself, so it has a level that its parent does not expect. */
static void child_cycle(uint8_t *b)
{
	NODE_PTRS(b)[0].blockptr = HEADER(b)->bytenr;
}

static void child_other_generation(uint8_t *b)
{
	NODE_PTRS(b)[0].generation = le64_put(SYN_GENERATION + 1);
}

static const struct damage damages[] = {
	{ "csum", 0, 0, flip_bit },
	{ "csum", 0, 0, zero_fill },
	{ "fsid", 1, 0, zero_fill },
	{ "fsid", 1, 0, other_fsid },
	{ "bytenr", 1, 0, other_address },
	{ "level", 1, 0, high_level },
	{ "level", 1, 0, other_level },
	{ "generation", 1, 0, old_generation },
	{ "owner", 1, 0, other_owner },
	{ "nritems", 1, 0, too_many_items },
	{ "nritems", 1, 0, no_items },
	{ "key", 1, 0, disorder },
	{ "offset", 1, 0, item_past_end },
	{ "offset", 1, 0, item_gap },
	{ "offset", 1, 0, item_over_headers },
	{ "key", 1, 0, other_first_key },
	{ "nritems", 1, 1, too_many_items },
	{ "nritems", 1, 1, no_items },
	{ "key", 1, 1, child_disorder },
	{ "blockptr", 1, 1, child_unaligned },
	{ "blockptr", 1, 1, child_zero },
	{ "", 1, 1, child_out_of_range },
	{ "level", 1, 1, child_cycle },
	{ "generation", 1, 1, child_other_generation },
};

/* The address of the first block of the subvolume at @level. */
static uint64_t block_at(struct synthetic *s, int level)
{
	uint64_t at = s->fs_root;
	uint8_t block[SYN_NODESIZE];

	for (;;) {
		syn_get(s, at, 0, block);
		if (HEADER(block)->level == level)
			return at;
		at = le64_get(NODE_PTRS(block)[0].blockptr);
	}
}

static void damage_copy(struct synthetic *s, const struct damage *d, uint64_t at, unsigned copy)
{
	uint8_t block[SYN_NODESIZE];

	syn_get(s, at, copy, block);
	d->apply(block);
	syn_put(s, at, copy, block, d->resign);
}

static void every_damage_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct synthetic s;
		uint64_t at;

		syn_create(&s, items, ITEMS);
		at = block_at(&s, d->level);
		damage_copy(&s, d, at, 0);
		damage_copy(&s, d, at, 1);
		if (open_and_scan(&s, &err) != -EUCLEAN)
			fail_msg("damage %zu (%s) was not found", i, d->field);
		if (strcmp(err.field, d->field))
			fail_msg("damage %zu: field %s, not %s: %s", i, err.field, d->field, err.message);
		assert_int_equal(err.code, BTRKIT_CORRUPT);
		assert_true(err.places & BTRKIT_AT_TREE);
		assert_int_equal(err.tree, OID_FS_TREE);
		assert_true(err.places & BTRKIT_AT_LOGICAL);
		syn_destroy(&s);
	}
}

/* If only one copy is damaged, the other one is used. This does not apply to damaged pointers in the parent. */
static void second_copy_is_used(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct synthetic s;
		int ret;

		if (d->apply == child_out_of_range || d->apply == child_cycle || d->apply == child_other_generation)
			continue;
		syn_create(&s, items, ITEMS);
		damage_copy(&s, d, block_at(&s, d->level), 0);
		ret = open_and_scan(&s, &err);
		if (ret != 1)
			fail_msg("damage %zu (%s): %s", i, d->field, err.message);
		syn_destroy(&s);
	}
}

static void first_copys_failure_is_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct synthetic s;
	uint64_t at;

	(void)state;
	syn_create(&s, items, ITEMS);
	at = block_at(&s, 0);
	damage_copy(&s, &damages[7], at, 0);
	damage_copy(&s, &damages[0], at, 1);
	assert_int_equal(open_and_scan(&s, &err), -EUCLEAN);
	assert_string_equal(err.field, "generation");
	assert_int_equal(err.logical, at);
	assert_int_equal(err.devid, 1);
	assert_int_equal(err.physical, at - SYN_LOGICAL + SYN_COPY_1);
	syn_destroy(&s);
}

/* From each read in turn, all fail. The only result may be an error, and nothing may leak. */
static void every_failing_read_is_told(void **state)
{
	uint64_t n;
	int ret = -EIO;

	(void)state;
	for (n = 0; ret != 1; n++) {
		struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_io *io;
		struct synthetic s;

		syn_create(&s, items, ITEMS);
		faults.fail_read_after = n;
		assert_int_equal(btrkit_io_fault(s.io, &faults, &io, NULL), 0);
		s.io = io;
		ret = open_and_scan(&s, &err);
		assert_true(ret == 1 || ret == -EIO);
		assert_int_equal(ret == -EIO, err.code == BTRKIT_IO);
		syn_destroy(&s);
	}
	/* At least every block of the subvolume was read, so that each read failed once. */
	assert_true(n > ITEMS / 150);
}

static void collect_note(void *ctx, const char *line)
{
	char *notes = ctx;

	strncat(notes, line, 500);
	strcat(notes, "\n");
}

static int open_noting(struct synthetic *s, unsigned flags, unsigned mirror, struct btrkit_fs_info *info, char *notes)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_fs *fs = NULL;
	int ret;

	notes[0] = '\0';
	opts.flags = flags;
	opts.super_mirror = mirror;
	opts.note = collect_note;
	opts.note_ctx = notes;
	ret = syn_open(s, &opts, &fs, NULL);
	if (!ret)
		btrkit_fs_get_info(fs, info);
	btrkit_fs_close(fs);
	return ret;
}

static void mirror_stands_in_for_a_bad_primary(void **state)
{
	struct btrkit_fs_info info;
	struct disk_super super;
	struct synthetic s;
	char notes[2000];

	(void)state;
	syn_create(&s, items, ITEMS);
	syn_get_super(&s, 0, &super);
	super.label[0] = 'x';
	syn_put_super(&s, 0, &super, 0);
	assert_int_equal(open_noting(&s, 0, 0, &info, notes), 0);
	assert_int_equal(info.super_mirror, 1);
	assert_non_null(strstr(notes, "mirror 1 is used"));
	assert_non_null(strstr(notes, "checksum mismatch"));
	syn_destroy(&s);
}

static void newer_mirror_is_told_and_not_used(void **state)
{
	struct btrkit_fs_info info;
	struct disk_super super;
	struct synthetic s;
	char notes[2000];

	(void)state;
	syn_create(&s, items, ITEMS);
	syn_get_super(&s, 1, &super);
	super.generation = le64_put(SYN_GENERATION + 5);
	syn_put_super(&s, 1, &super, 1);
	assert_int_equal(open_noting(&s, 0, 0, &info, notes), 0);
	assert_int_equal(info.super_mirror, 0);
	assert_int_equal(info.generation, SYN_GENERATION);
	assert_non_null(strstr(notes, "it is not used"));
	syn_destroy(&s);
}

static void mirror_is_used_when_asked_for(void **state)
{
	struct btrkit_fs_info info;
	struct synthetic s;
	char notes[2000];

	(void)state;
	syn_create(&s, items, ITEMS);
	assert_int_equal(open_noting(&s, BTRKIT_OPEN_SUPER_MIRROR, 1, &info, notes), 0);
	assert_int_equal(info.super_mirror, 1);
	assert_string_equal(notes, "");
	syn_destroy(&s);
	syn_create(&s, items, ITEMS);
	/* The device ends before copy 2. */
	assert_int_equal(open_noting(&s, BTRKIT_OPEN_SUPER_MIRROR, 2, &info, notes), -ENXIO);
	assert_int_equal(open_noting(&s, 1u << 30, 0, &info, notes), -EINVAL);
	assert_int_equal(open_noting(&s, BTRKIT_OPEN_SUPER_MIRROR, 3, &info, notes), -EINVAL);
	syn_destroy(&s);
}

#define THREADS 4

static void *search_thread(void *arg)
{
	struct btrkit_fs *fs = arg;
	struct tree_root root;
	struct cursor c;
	uintptr_t bad = 0;

	if (fs_find_root(fs, OID_FS_TREE, &root, NULL, NULL))
		return (void *)1;
	cursor_init(&c, fs, &root);
	for (unsigned k = 0; k < 5 * ITEMS; k++) {
		unsigned i = (k * 6007u) % ITEMS;

		if (cursor_find(&c, &items[i].key, NULL) || *c.item.data != payload[i])
			bad++;
	}
	cursor_release(&c);
	return (void *)bad;
}

/* A small cache, so that threads evict blocks that others read. */
static void threads_share_a_handle(void **state)
{
	struct synthetic s;
	struct btrkit_fs *fs = open_new(&s, 1);
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, search_thread, fs), 0);
	for (int i = 0; i < THREADS; i++) {
		void *bad;

		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_null(bad);
	}
	btrkit_fs_close(fs);
}

/* Turns tree 5 into subvolume 300, so that there are lower numbers and higher ones. */
static void subvolumes_end_with_the_highest(void **state)
{
	struct disk_item *item;
	struct btrkit_subvolume found;
	uint8_t block[SYN_NODESIZE];
	struct synthetic s;
	struct btrkit_fs *fs;

	(void)state;
	syn_create(&s, items, ITEMS);
	syn_get(&s, s.root_root, 0, block);
	item = (struct disk_item *)(block + sizeof(struct disk_header));
	while (le64_get(item->key.objectid) != OID_FS_TREE)
		item++;
	item->key.objectid = le64_put(300);
	syn_put(&s, s.root_root, 0, block, 1);
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	assert_int_equal(btrkit_subvolume_next(fs, 0, &found, NULL), 0);
	assert_int_equal(found.id, 300);
	assert_int_equal(btrkit_subvolume_next(fs, 299, &found, NULL), 0);
	assert_int_equal(btrkit_subvolume_next(fs, 300, &found, NULL), 1);
	assert_int_equal(btrkit_subvolume_next(fs, OID_LAST_FREE, &found, NULL), 1);
	assert_int_equal(btrkit_subvolume_next(fs, UINT64_MAX, &found, NULL), 1);
	btrkit_fs_close(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan_visits_every_item),
		cmocka_unit_test(seeks_land_where_an_array_says),
		cmocka_unit_test(every_damage_is_told),
		cmocka_unit_test(second_copy_is_used),
		cmocka_unit_test(first_copys_failure_is_told),
		cmocka_unit_test(every_failing_read_is_told),
		cmocka_unit_test(mirror_stands_in_for_a_bad_primary),
		cmocka_unit_test(newer_mirror_is_told_and_not_used),
		cmocka_unit_test(mirror_is_used_when_asked_for),
		cmocka_unit_test(threads_share_a_handle),
		cmocka_unit_test(trees_are_found_by_their_number),
		cmocka_unit_test(subvolumes_end_with_the_highest),
	};

	make_items();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
