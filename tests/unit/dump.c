// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a dump reads, and how it reports what it cannot read, on a synthetic filesystem. */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <stdatomic.h>

#include <btrkit/dump.h>

#include "lib/format/ids.h"
#include "lib/format/super.h"
#include "lib/dump/dump_tree_pick.h"
#include "tests/unit/synthetic.h"

#define ITEMS 6000u
#define TYPE 77 /* not in the registry, so that only the tree code validates such items */

static struct syn_item items[ITEMS];
static uint8_t payload[100];

/* A device that counts the reads of blocks of tree 5 by level. */
struct counting {
	struct btrkit_io io;
	struct btrkit_io *below;
	atomic_uint read[LEVELS_MAX];
};

static int count_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct counting *c = (struct counting *)io;
	const int ret = c->below->ops->read(c->below, offset, buf, len);

	for (size_t at = 0; !ret && len % SYN_NODESIZE == 0 && at < len; at += SYN_NODESIZE) {
		const struct disk_header *h = (const struct disk_header *)((const uint8_t *)buf + at);

		if (le64_get(h->owner) == OID_FS_TREE && h->level < LEVELS_MAX)
			atomic_fetch_add(&c->read[h->level], 1);
	}
	return ret;
}

static void count_close(struct btrkit_io *io)
{
	struct counting *c = (struct counting *)io;

	btrkit_io_close(c->below);
	free(c);
}

static const struct btrkit_io_ops counting_ops = { .read = count_read, .close = count_close };

struct text {
	char *at;
	size_t len;
};

static int collect(void *ctx, const void *data, size_t len)
{
	struct text *t = ctx;

	t->at = realloc(t->at, t->len + len + 1);
	assert_non_null(t->at);
	memcpy(t->at + t->len, data, len);
	t->len += len;
	t->at[t->len] = '\0';
	return 0;
}

struct rig {
	struct synthetic s;
	struct counting *counting;
	struct btrkit_fs *fs;
	struct text text;
};

static void make(struct rig *r)
{
	*r = (struct rig){ 0 };
	for (unsigned i = 0; i < ITEMS; i++)
		items[i] = (struct syn_item){ KEY(300, TYPE, 10 * i), payload, sizeof(payload) };
	syn_create(&r->s, items, ITEMS);
}

static void open_rig(struct rig *r)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	r->counting = calloc(1, sizeof(*r->counting));
	assert_non_null(r->counting);
	r->counting->io = (struct btrkit_io){ &counting_ops, r->s.io->size, "counting" };
	r->counting->below = r->s.io;
	r->s.io = &r->counting->io;
	if (syn_open(&r->s, NULL, &r->fs, &err))
		fail_msg("%s", err.message);
}

/* @return what the dump returned; r->text then has its output */
static int dump(struct rig *r, const struct btrkit_dump_select *select, unsigned flags, struct btrkit_error *err)
{
	const uint64_t tree = OID_FS_TREE;
	struct btrkit_dump_options o = BTRKIT_DUMP_OPTIONS_INIT;

	for (unsigned level = 0; level < LEVELS_MAX; level++)
		r->counting->read[level] = 0;
	free(r->text.at);
	r->text = (struct text){ 0 };
	o.trees = &tree;
	o.num_trees = 1;
	o.flags = flags;
	o.select = select;
	return btrkit_dump_tree(r->fs, &o, collect, &r->text, err);
}

static void destroy(struct rig *r)
{
	btrkit_fs_close(r->fs);
	free(r->text.at);
}

static size_t count(const struct rig *r, const char *word)
{
	size_t n = 0;

	for (const char *at = r->text.at; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

static void whole(void **state)
{
	struct rig r;

	(void)state;
	make(&r);
	open_rig(&r);
	assert_int_equal(r.s.fs_level, 4);
	for (unsigned dfs = 0; dfs < 2; dfs++) {
		assert_int_equal(dump(&r, NULL, dfs ? BTRKIT_DUMP_DFS : 0, NULL), 0);
		assert_int_equal(count(&r, "\titem "), ITEMS);
		/* Each leaf is read once, bypassing the cache. */
		assert_int_equal(r.counting->read[0], count(&r, "leaf ") / 2);
		assert_true(r.counting->read[0] > 150);
	}
	destroy(&r);
}

static void only_what_is_wanted_is_read(void **state)
{
	struct btrkit_dump_select s = BTRKIT_DUMP_SELECT_INIT;
	struct btrkit_dump_range range = { KEY(300, TYPE, 20000), KEY(300, TYPE, 20000) };
	uint8_t type = 1;
	struct rig r;

	(void)state;
	make(&r);
	open_rig(&r);
	for (unsigned dfs = 0; dfs < 2; dfs++) {
		const unsigned flags = dfs ? BTRKIT_DUMP_DFS : 0;

		s = (struct btrkit_dump_select)BTRKIT_DUMP_SELECT_INIT;
		s.ranges = &range;
		s.num_ranges = 1;
		assert_int_equal(dump(&r, &s, flags, NULL), 0);
		assert_int_equal(count(&r, "\titem "), 1);
		assert_int_equal(r.counting->read[0], 1);
		/* Nodes are cached. */
		assert_true(r.counting->read[1] + r.counting->read[2] + r.counting->read[3] <= 3);

		/* No leaf can have an item of this type, since the keys of all nodes are of another type. */
		s = (struct btrkit_dump_select)BTRKIT_DUMP_SELECT_INIT;
		s.types = &type;
		s.num_types = 1;
		assert_int_equal(dump(&r, &s, flags, NULL), 0);
		/* Only for the last leaf the end of its range is unknown. */
		assert_true(r.counting->read[0] <= 1);

		s = (struct btrkit_dump_select)BTRKIT_DUMP_SELECT_INIT;
		s.flags = BTRKIT_DUMP_BY_GENERATION;
		s.min_generation = SYN_GENERATION + 1;
		s.max_generation = UINT64_MAX;
		assert_int_equal(dump(&r, &s, flags, NULL), 0);
		assert_int_equal(r.counting->read[0] + r.counting->read[1] + r.counting->read[2], 0);
		assert_int_equal(count(&r, "tree key"), 0);

		s.flags = BTRKIT_DUMP_BY_LEVEL;
		s.min_level = 1;
		s.max_level = 1;
		assert_int_equal(dump(&r, &s, flags, NULL), 0);
		assert_int_equal(r.counting->read[0], 0);
		assert_int_equal(count(&r, "leaf "), 0);
		assert_true(count(&r, "level 1 items") >= 2);

		s.flags = BTRKIT_DUMP_BY_LEVEL | BTRKIT_DUMP_BY_BYTENR;
		s.min_level = 0;
		s.max_level = 0;
		/* Find the first leaf that exists. */
		s.min_bytenr = s.max_bytenr = SYN_LOGICAL;
		while (dump(&r, &s, flags, NULL) || !count(&r, "leaf "))
			s.min_bytenr = s.max_bytenr += SYN_NODESIZE;
		assert_int_equal(r.counting->read[0], 1);
	}
	destroy(&r);
}

/* The address of the child at @slot of a node. */
static uint64_t child_of(struct rig *r, uint64_t bytenr, uint32_t slot)
{
	uint8_t block[SYN_NODESIZE];
	const struct disk_key_ptr *p = (const struct disk_key_ptr *)(block + sizeof(struct disk_header));

	syn_get(&r->s, bytenr, 0, block);
	return le64_get(p[slot].blockptr);
}

/* The first block of @level. */
static uint64_t first_of(struct rig *r, unsigned level)
{
	uint64_t at = r->s.fs_root;

	for (unsigned i = r->s.fs_level; i > level; i--)
		at = child_of(r, at, 0);
	return at;
}

static void put_both(struct rig *r, uint64_t bytenr, uint8_t block[SYN_NODESIZE], int sign)
{
	syn_put(&r->s, bytenr, 0, block, sign);
	syn_put(&r->s, bytenr, 1, block, sign);
}

static void bad_blocks_are_told_in_place(void **state)
{
	uint8_t block[SYN_NODESIZE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[100];
	uint64_t leaf;
	size_t below;
	struct rig r;

	(void)state;
	make(&r);
	leaf = child_of(&r, first_of(&r, 1), 3);
	syn_get(&r.s, leaf, 0, block);
	below = le32_get(((struct disk_header *)block)->nritems);
	block[500] ^= 1;
	put_both(&r, leaf, block, 0);
	open_rig(&r);
	for (unsigned dfs = 0; dfs < 2; dfs++) {
		assert_int_equal(dump(&r, NULL, dfs ? BTRKIT_DUMP_DFS : 0, &err), -EUCLEAN);
		assert_int_equal(err.logical, leaf);
		assert_int_equal(err.tree, OID_FS_TREE);
		assert_int_equal(count(&r, "\titem "), ITEMS - below);
		assert_int_equal(count(&r, "damaged block"), 1);
		snprintf(line, sizeof(line), "\ndamaged block %" PRIu64 " level 0 generation 7 of tree 5: ", leaf);
		assert_int_equal(count(&r, line), 1);
		snprintf(line, sizeof(line), "\n\tcopy 2 on device 1 at %" PRIu64 ": ",
			 (uint64_t)(SYN_COPY_2 + leaf - SYN_LOGICAL));
		assert_int_equal(count(&r, line), 1);
	}
	destroy(&r);
}

static void one_bad_copy_is_none(void **state)
{
	uint8_t block[SYN_NODESIZE];
	struct rig r;

	(void)state;
	make(&r);
	for (uint32_t slot = 0; slot < 5; slot++) {
		const uint64_t leaf = child_of(&r, first_of(&r, 1), slot);

		syn_get(&r.s, leaf, 0, block);
		block[500] ^= 1;
		syn_put(&r.s, leaf, 0, block, 0);
	}
	open_rig(&r);
	assert_int_equal(dump(&r, NULL, 0, NULL), 0);
	assert_int_equal(count(&r, "\titem "), ITEMS);
	destroy(&r);
}

static void a_bad_node_is_told_once(void **state)
{
	uint8_t block[SYN_NODESIZE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_dump_select s = BTRKIT_DUMP_SELECT_INIT;
	uint64_t node;
	struct rig r;

	(void)state;
	make(&r);
	node = first_of(&r, 2);
	syn_get(&r.s, node, 0, block);
	block[500] ^= 1;
	put_both(&r, node, block, 0);
	open_rig(&r);
	for (unsigned dfs = 0; dfs < 2; dfs++) {
		assert_int_equal(dump(&r, NULL, dfs ? BTRKIT_DUMP_DFS : 0, &err), -EUCLEAN);
		assert_int_equal(err.logical, node);
		assert_int_equal(count(&r, "damaged block"), 1);
		assert_true(count(&r, "\titem ") > 0 && count(&r, "\titem ") < ITEMS);
		/* The same if nodes are not shown. */
		s.flags = BTRKIT_DUMP_BY_LEVEL;
		assert_int_equal(dump(&r, &s, dfs ? BTRKIT_DUMP_DFS : 0, &err), -EUCLEAN);
		assert_int_equal(count(&r, "damaged block"), 1);
	}
	destroy(&r);
}

/* The last pointers of a node lead to children of the next node: these would be shown repeatedly. */
static void no_block_comes_twice(void **state)
{
	uint8_t first[SYN_NODESIZE], second[SYN_NODESIZE];
	struct disk_key_ptr *to = (struct disk_key_ptr *)(first + sizeof(struct disk_header));
	const struct disk_key_ptr *from = (const struct disk_key_ptr *)(second + sizeof(struct disk_header));
	uint64_t a, b;
	struct rig r;

	(void)state;
	make(&r);
	a = first_of(&r, 1);
	b = child_of(&r, first_of(&r, 2), 1);
	syn_get(&r.s, a, 0, first);
	syn_get(&r.s, b, 0, second);
	memcpy(&to[3], from, 2 * sizeof(*to));
	put_both(&r, a, first, 1);
	open_rig(&r);
	for (unsigned dfs = 0; dfs < 2; dfs++) {
		assert_int_equal(dump(&r, NULL, dfs ? BTRKIT_DUMP_DFS : 0, NULL), -EUCLEAN);
		assert_int_equal(count(&r, "damaged pointer"), 1);
		assert_int_equal(r.counting->read[0], count(&r, "leaf ") / 2);
		/* The items below the overwritten pointers are missing. */
		assert_true(count(&r, "\titem ") < ITEMS && count(&r, "\titem ") >= ITEMS - 2 * 40);
	}
	destroy(&r);
}

/* The deletion of the file tree is in progress, and has reached the second pointer of its second node of level 1. */
static void begin_deletion(struct rig *r)
{
	uint8_t block[SYN_NODESIZE];
	struct disk_header *h = (struct disk_header *)block;
	struct disk_key progress;

	syn_get(&r->s, child_of(r, first_of(r, 2), 1), 0, block);
	progress = ((struct disk_key_ptr *)(h + 1))[1].key;
	syn_get(&r->s, r->s.root_root, 0, block);
	for (uint32_t i = 0; i < le32_get(h->nritems); i++) {
		const struct disk_item *item = (const struct disk_item *)(h + 1) + i;
		struct disk_root_item *root =
			(struct disk_root_item *)(block + sizeof(*h) + le32_get(item->offset));
		const struct btrkit_key key = key_get(&item->key);

		if (key.objectid != OID_FS_TREE || key.type != KEY_ROOT_ITEM)
			continue;
		root->refs = le32_put(0);
		root->drop_progress = progress;
		root->drop_level = 1;
	}
	put_both(r, r->s.root_root, block, 1);
}

/* Corrupt a block. @return the number of its items or pointers */
static uint32_t lose(struct rig *r, uint64_t bytenr)
{
	uint8_t block[SYN_NODESIZE];

	syn_get(&r->s, bytenr, 0, block);
	block[500] ^= 1;
	put_both(r, bytenr, block, 0);
	return le32_get(((struct disk_header *)block)->nritems);
}

static void what_is_dropped_may_be_gone(void **state)
{
	enum { NOTHING, DROPPED_LEAF, LEAF_BEFORE_PROGRESS, DROPPED_NODE, LEAF_BEHIND, CASES };

	(void)state;
	for (unsigned lost = NOTHING; lost < CASES; lost++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		size_t expected = ITEMS, damaged = 0;
		uint64_t first, second;
		struct rig r;

		make(&r);
		begin_deletion(&r);
		first = child_of(&r, first_of(&r, 2), 0);
		second = child_of(&r, first_of(&r, 2), 1);
		if (lost == DROPPED_LEAF) {
			expected -= lose(&r, child_of(&r, first, 3));
		} else if (lost == LEAF_BEFORE_PROGRESS) {
			expected -= lose(&r, child_of(&r, second, 0));
		} else if (lost == DROPPED_NODE) {
			uint8_t block[SYN_NODESIZE];
			const uint32_t leaves = lose(&r, first);

			for (uint32_t i = 0; i < leaves; i++) {
				syn_get(&r.s, child_of(&r, first, i), 0, block);
				expected -= le32_get(((struct disk_header *)block)->nritems);
			}
		} else if (lost == LEAF_BEHIND) {
			expected -= lose(&r, child_of(&r, second, 1));
			damaged = 1;
		}
		open_rig(&r);
		for (unsigned dfs = 0; dfs < 2; dfs++) {
			assert_int_equal(dump(&r, NULL, dfs ? BTRKIT_DUMP_DFS : 0, &err), damaged ? -EUCLEAN : 0);
			assert_int_equal(count(&r, "\titem "), expected);
			assert_int_equal(count(&r, "damaged"), damaged);
		}
		destroy(&r);
	}
}

static void ranges(void **state)
{
	static const char *const bad[] = { "", " ", "x", "1,2,3,4", "2..1", "1,INODE", "1,256", "1,1,x",
					   "99999999999999999999", "5..5..5", "1 2 3 4..", "-" };
	struct btrkit_dump_range r;
	uint8_t type;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(btrkit_dump_range_parse(bad[i], &r), -EINVAL);
	assert_int_equal(btrkit_dump_range_parse("256,INODE_ITEM,0..300", &r), 0);
	assert_int_equal(key_cmp(&r.min, &KEY(256, KEY_INODE_ITEM, 0)), 0);
	assert_int_equal(key_cmp(&r.max, &KEY(300, UINT8_MAX, UINT64_MAX)), 0);
	assert_int_equal(btrkit_dump_range_parse("256,,5", &r), 0);
	assert_int_equal(key_cmp(&r.min, &KEY(256, 0, 5)), 0);
	assert_int_equal(key_cmp(&r.max, &KEY(256, UINT8_MAX, 5)), 0);
	assert_int_equal(btrkit_dump_range_parse("..", &r), 0);
	assert_int_equal(key_cmp(&r.min, &KEY(0, 0, 0)), 0);
	assert_int_equal(btrkit_dump_range_parse("(EXTENT_CSUM extent_csum 4096)..-1", &r), 0);
	assert_int_equal(key_cmp(&r.min, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, 4096)), 0);
	assert_true(r.max.objectid == UINT64_MAX && r.max.type == UINT8_MAX && r.max.offset == UINT64_MAX);
	assert_int_equal(btrkit_item_type_parse("dir_ITEM", &type), 0);
	assert_int_equal(type, KEY_DIR_ITEM);
	assert_int_equal(btrkit_item_type_parse("UNKNOWN.77", &type), 0);
	assert_int_equal(type, 77);
	assert_int_equal(btrkit_item_type_parse("256", &type), -ENOENT);
	assert_int_equal(btrkit_item_type_parse("", &type), -ENOENT);
}

static void other_starts_are_for_reading(void **state)
{
	static const unsigned flags[] = { BTRKIT_OPEN_BACKUP, BTRKIT_OPEN_TREE_ROOT, BTRKIT_OPEN_CHUNK_ROOT,
					  BTRKIT_OPEN_PARTIAL };
	struct btrkit_open_options o = BTRKIT_OPEN_OPTIONS_INIT;
	struct synthetic s;
	struct btrkit_fs *fs;

	(void)state;
	syn_create(&s, NULL, 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		o.flags = BTRKIT_OPEN_WRITE | flags[i];
		assert_int_equal(btrkit_fs_open(&s.io, 1, &o, &fs, NULL), -EINVAL);
	}
	o.flags = BTRKIT_OPEN_DEGRADED << 1;
	assert_int_equal(btrkit_fs_open(&s.io, 1, &o, &fs, NULL), -EINVAL);
	o.flags = BTRKIT_OPEN_BACKUP;
	/* There is no backup root. */
	assert_int_equal(btrkit_fs_open(&s.io, 1, &o, &fs, NULL), -ENOENT);
	o.backup = 4;
	assert_int_equal(btrkit_fs_open(&s.io, 1, &o, &fs, NULL), -EINVAL);
	o.flags = BTRKIT_OPEN_TREE_ROOT | BTRKIT_OPEN_CHUNK_ROOT;
	o.tree_root = s.root_root;
	o.chunk_root = s.chunk_root;
	assert_int_equal(btrkit_fs_open(&s.io, 1, &o, &fs, NULL), 0);
	btrkit_fs_close(fs);
}

static void types_lie_between_keys(void **state)
{
	struct btrkit_dump_range all = { KEY(0, 0, 0), KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX) };
	struct dump_pick p = { .ranges = &all, .num_ranges = 1 };
	static const struct {
		struct btrkit_key min, end;
		bool ret;
	} of_type_1[] = {
		{ { 256, 0, 0 }, { 256, 108, 0 }, true },      { { 256, 1, 9 }, { 256, 2, 0 }, true },
		{ { 256, 2, 0 }, { 256, 108, 0 }, false },     { { 256, 2, 0 }, { 257, 1, 0 }, false },
		{ { 256, 2, 0 }, { 257, 1, 1 }, true },	       { { 256, 108, 0 }, { 257, 108, 0 }, true },
		{ { 256, 2, 0 }, { 257, 0, 0 }, false },       { { 256, 108, 0 }, { 258, 0, 0 }, true },
		{ { 256, 0, 0 }, { 256, 1, 0 }, false },
	};

	(void)state;
	p.types[0] = 1ull << 1;
	for (size_t i = 0; i < sizeof(of_type_1) / sizeof(of_type_1[0]); i++)
		assert_int_equal(dump_pick_overlaps(&p, &of_type_1[i].min, &of_type_1[i].end), of_type_1[i].ret);
	assert_true(dump_pick_overlaps(&p, &KEY(256, 108, 0), NULL));
}

static void options_are_checked(void **state)
{
	struct btrkit_dump_select s = BTRKIT_DUMP_SELECT_INIT;
	struct btrkit_dump_range wrong = { KEY(2, 0, 0), KEY(1, 0, 0) };
	struct rig r;

	(void)state;
	make(&r);
	open_rig(&r);
	s.flags = 1u << 30;
	assert_int_equal(dump(&r, &s, 0, NULL), -EINVAL);
	s.flags = BTRKIT_DUMP_WITH_EXTENTS;
	assert_int_equal(dump(&r, &s, 0, NULL), -EINVAL);
	s.flags = 0;
	s.path = "x";
	assert_int_equal(dump(&r, &s, 0, NULL), -EINVAL);
	s.path = NULL;
	assert_int_equal(dump(&r, &s, BTRKIT_DUMP_ROOTS, NULL), -EINVAL);
	s.ranges = &wrong;
	s.num_ranges = 1;
	assert_int_equal(dump(&r, &s, 0, NULL), -EINVAL);
	assert_int_equal(r.text.len, 0);
	destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(only_what_is_wanted_is_read),
		cmocka_unit_test(bad_blocks_are_told_in_place),
		cmocka_unit_test(one_bad_copy_is_none),
		cmocka_unit_test(a_bad_node_is_told_once),
		cmocka_unit_test(no_block_comes_twice),
		cmocka_unit_test(what_is_dropped_may_be_gone),
		cmocka_unit_test(ranges),
		cmocka_unit_test(other_starts_are_for_reading),
		cmocka_unit_test(types_lie_between_keys),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
