// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Space below each directory, in filesystems whose results can be computed by hand, with directories and subvolumes
 * without a parent or in cycles; and lack of memory. Whole filesystems are compared with Linux by the kernel tests.
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include <btrkit/usage_paths.h>

#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_ranges.h"
#include "tests/unit/memory.h"
#include "tests/unit/synthetic.h"

#define LENGTH 8192u
#define EXTENTS 110u
#define DATA (SYN_LOGICAL + (8ull << 20))
#define ITEMS_MAX 256u

/* With gaps: adjacent extents would become one range. */
static uint64_t address(size_t extent)
{
	return DATA + 2 * extent * LENGTH;
}

struct tree {
	struct syn_item items[ITEMS_MAX];
	uint8_t bytes[ITEMS_MAX][sizeof(struct disk_inode_item)];
	size_t n;
	uint64_t id;
};

static struct synthetic syn;
static struct tree trees[5], places, extent_tree;
/* The references to each extent. */
static struct extent_ref refs[EXTENTS][4];
static size_t num_refs[EXTENTS];

static void *add_item(struct tree *t, const struct btrkit_key *key, size_t size)
{
	assert_true(t->n < ITEMS_MAX && size <= sizeof(t->bytes[0]));
	memset(t->bytes[t->n], 0, sizeof(t->bytes[t->n]));
	t->items[t->n] = (struct syn_item){ *key, t->bytes[t->n], (uint32_t)size };
	return t->bytes[t->n++];
}

static void add_inode(struct tree *t, uint64_t inode, unsigned mode, uint32_t nlink)
{
	struct disk_inode_item *d = add_item(t, &KEY(inode, KEY_INODE_ITEM, 0), sizeof(*d));

	d->mode = le32_put(mode);
	d->nlink = le32_put(nlink);
}

static void add_name(struct tree *t, uint64_t inode, uint64_t parent, uint64_t index, const char *name)
{
	const size_t len = strlen(name);
	struct disk_inode_ref *d = add_item(t, &KEY(inode, KEY_INODE_REF, parent), sizeof(*d) + len);

	d->index = le64_put(index);
	d->name_len = le16_put((uint16_t)len);
	memcpy(d + 1, name, len);
}

static void add_dir(struct tree *t, uint64_t inode, uint64_t parent, uint64_t index, const char *name)
{
	add_inode(t, inode, S_IFDIR | 0755, 1);
	add_name(t, inode, parent, index, name);
}

static void add_data(struct tree *t, uint64_t inode, uint64_t offset, size_t extent)
{
	struct disk_file_extent *d = add_item(t, &KEY(inode, KEY_EXTENT_DATA, offset), sizeof(*d));

	*d = (struct disk_file_extent){
		.generation = le64_put(SYN_GENERATION),
		.ram_bytes = le64_put(LENGTH),
		.type = FILE_EXTENT_REG,
		.disk_bytenr = le64_put(address(extent)),
		.disk_num_bytes = le64_put(LENGTH),
		.num_bytes = le64_put(LENGTH),
	};
	refs[extent][num_refs[extent]++] = (struct extent_ref){
		.type = KEY_EXTENT_DATA_REF, .root = t->id, .objectid = inode, .offset = offset, .count = 1
	};
}

static void add_place(uint64_t id, uint64_t parent, uint64_t dirid, uint64_t index, const char *name)
{
	const size_t len = strlen(name);
	struct disk_root_ref *d = add_item(&places, &KEY(id, KEY_ROOT_BACKREF, parent), sizeof(*d) + len);

	d->dirid = le64_put(dirid);
	d->sequence = le64_put(index);
	d->name_len = le16_put((uint16_t)len);
	memcpy(d + 1, name, len);
}

static void begin_tree(struct tree *t, uint64_t id)
{
	*t = (struct tree){ .id = id };
	add_dir(t, 256, 256, 0, "..");
}

/*
 * Files with the extents that they refer to:
 *
 *	/a/b/f		0		280 and 281 are each other's parents, 282 has none
 *	/a/b/g, /z/g	1		310 is in 280: 3; 311 has no name: 4
 *	/z/h		2
 *	/a/b/s/x	2 5 5		283 was removed while it was open
 *					258 and 259 contain each other:
 *	/a/b/s/t/y	5 6		<258>/c/<259>/k		7 8, and <258>/l	8
 */
static void make_trees(void)
{
	struct tree *t = &trees[0];

	memset(num_refs, 0, sizeof(num_refs));
	places = (struct tree){ 0 };
	begin_tree(t, 5);
	add_dir(t, 257, 256, 2, "a");
	add_dir(t, 258, 257, 2, "b");
	add_dir(t, 270, 256, 3, "z");
	add_dir(t, 280, 281, 2, "round");
	add_dir(t, 281, 280, 2, "about");
	add_dir(t, 282, 999, 2, "nowhere");
	add_inode(t, 283, S_IFDIR | 0755, 0);
	add_inode(t, 300, S_IFREG, 1);
	add_name(t, 300, 258, 5, "f");
	add_data(t, 300, 0, 0);
	add_inode(t, 301, S_IFREG, 2);
	add_name(t, 301, 258, 9, "g");
	add_name(t, 301, 270, 2, "g");
	add_data(t, 301, 0, 1);
	add_inode(t, 302, S_IFREG, 1);
	add_name(t, 302, 270, 3, "h");
	add_data(t, 302, 0, 2);
	add_inode(t, 310, S_IFREG, 1);
	add_name(t, 310, 280, 3, "lost");
	add_data(t, 310, 0, 3);
	add_inode(t, 311, S_IFREG, 0);
	add_data(t, 311, 0, 4);
	t = &trees[1];
	begin_tree(t, 256);
	add_place(256, 5, 258, 7, "s\xff");
	add_inode(t, 257, S_IFREG, 1);
	add_name(t, 257, 256, 2, "x");
	add_data(t, 257, 0, 2);
	add_data(t, 257, LENGTH, 5);
	add_data(t, 257, 3 * LENGTH, 5);
	t = &trees[2];
	begin_tree(t, 257);
	add_place(257, 256, 256, 3, "t");
	add_inode(t, 257, S_IFREG, 1);
	add_name(t, 257, 256, 2, "y");
	add_data(t, 257, 0, 5);
	add_data(t, 257, LENGTH, 6);
	t = &trees[3];
	begin_tree(t, 258);
	add_place(258, 259, 256, 2, "in 259");
	add_dir(t, 257, 256, 2, "c");
	add_inode(t, 258, S_IFREG, 1);
	add_name(t, 258, 256, 3, "l");
	add_data(t, 258, 0, 8);
	t = &trees[4];
	begin_tree(t, 259);
	add_place(259, 258, 257, 2, "in 258");
	add_inode(t, 257, S_IFREG, 1);
	add_name(t, 257, 256, 3, "k");
	add_data(t, 257, 0, 7);
	add_data(t, 257, LENGTH, 8);
}

static int compare_refs(const void *a, const void *b)
{
	return -memcmp(a, b, sizeof(struct extent_ref));
}

static void describe_data(size_t i)
{
	struct disk_extent_item *d;
	uint8_t *at;
	const size_t size = extent_inline_ref_size(KEY_EXTENT_DATA_REF);

	qsort(refs[i], num_refs[i], sizeof(refs[i][0]), compare_refs);
	d = add_item(&extent_tree, &KEY(address(i), KEY_EXTENT_ITEM, LENGTH), sizeof(*d) + num_refs[i] * size);
	*d = (struct disk_extent_item){ le64_put(num_refs[i]), le64_put(SYN_GENERATION), le64_put(EXTENT_FLAG_DATA) };
	at = (uint8_t *)(d + 1);
	for (size_t ref = 0; ref < num_refs[i]; ref++, at += size)
		extent_inline_ref_put(&refs[i][ref], at);
}

static void describe_block(uint64_t bytenr)
{
	uint8_t block[SYN_NODESIZE], *at;
	const struct disk_header *h = (const struct disk_header *)block;
	struct disk_extent_item *d;

	syn_get(&syn, bytenr, 0, block);
	d = add_item(&extent_tree, &KEY(bytenr, KEY_METADATA_ITEM, h->level), sizeof(*d) + 9);
	*d = (struct disk_extent_item){ le64_put(1), le64_put(SYN_GENERATION), le64_put(EXTENT_FLAG_TREE_BLOCK) };
	at = (uint8_t *)(d + 1);
	*at = KEY_TREE_BLOCK_REF;
	memcpy(at + 1, &h->owner, sizeof(h->owner));
}

/* Writes the trees, and the extent tree for them. */
static void make(void)
{
	uint64_t first;

	extent_tree = (struct tree){ 0 };
	syn_begin(&syn);
	first = syn.next;
	syn_put_fs_tree(&syn, trees[0].items, trees[0].n);
	for (size_t i = 1; i < ARRAY_SIZE(trees) && trees[i].n; i++) {
		syn_put_tree(&syn, trees[i].id, trees[i].items, trees[i].n);
		for (size_t place = 0; place < places.n; place++)
			if (places.items[place].key.objectid == trees[i].id)
				syn_add_root_item(&syn, &places.items[place]);
	}
	for (uint64_t at = first; at < syn.next; at += SYN_NODESIZE)
		describe_block(at);
	for (size_t i = 0; i < EXTENTS; i++)
		if (num_refs[i])
			describe_data(i);
	syn_finish(&syn, 0, extent_tree.items, extent_tree.n);
}

static struct btrkit_fs *open_made(void)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;

	if (syn_open(&syn, NULL, &fs, &err))
		fail_msg("%s", err.message);
	return fs;
}

struct heard {
	unsigned n;
	char lines[16][256];
};

static int hear(void *ctx, const struct btrkit_error *what)
{
	struct heard *h = ctx;

	if (h && h->n < ARRAY_SIZE(h->lines))
		snprintf(h->lines[h->n], sizeof(h->lines[0]), "%llu: %s", (unsigned long long)what->tree,
			 what->message);
	if (h)
		h->n++;
	return 0;
}

/* @return the first failure */
static int load(struct btrkit_fs *fs, const struct btrkit_usage_paths_options *opts, struct heard *heard,
		struct btrkit_usage_paths **ret, struct btrkit_error *err)
{
	struct btrkit_usage_options how = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_usage_paths_options below = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct btrkit_usage *u = NULL;
	int r;

	if (opts)
		below = *opts;
	how.threads = below.threads;
	how.damage = hear;
	below.damage = hear;
	below.damage_ctx = heard;
	*ret = NULL;
	r = btrkit_usage_load(fs, &how, &u, err);
	if (!r)
		r = btrkit_usage_paths_load(fs, u, &below, ret, err);
	btrkit_usage_free(u);
	return r;
}

/* Sizes are in units of an extent. */
struct row {
	uint64_t subvolume, inode;
	size_t parent, end;
	uint32_t depth;
	const char *name;
	unsigned total, unshared, set_shared, frees;
};

#define NO_PARENT SIZE_MAX

static const struct row whole[] = {
	{ 5, 256, NO_PARENT, 6, 0, "", 8, 3, 2, 5 },   { 5, 257, 0, 5, 1, "a", 7, 3, 2, 3 },
	{ 5, 258, 1, 5, 2, "b", 7, 3, 2, 3 },	       { 256, 256, 2, 5, 0, "s\xff", 5, 1, 2, 2 },
	{ 257, 256, 3, 5, 0, "t", 2, 1, 1, 1 },	       { 5, 270, 0, 6, 1, "z", 1, 0, 1, 0 },
	{ 258, 256, NO_PARENT, 9, 0, "", 3, 1, 1, 2 }, { 258, 257, 6, 9, 1, "c", 2, 1, 1, 1 },
	{ 259, 256, 7, 9, 0, "in 258", 2, 1, 1, 1 },
};

static const struct row tops[] = {
	{ 5, 256, NO_PARENT, 3, 0, "", 8, 3, 2, 5 },   { 256, 256, 0, 3, 0, "a/b/s\xff", 5, 1, 2, 2 },
	{ 257, 256, 1, 3, 0, "t", 2, 1, 1, 1 },	       { 258, 256, NO_PARENT, 5, 0, "", 3, 1, 1, 2 },
	{ 259, 256, 3, 5, 0, "c/in 258", 2, 1, 1, 1 },
};

static void check_paths(const struct btrkit_usage_paths *p, const struct row *rows, size_t n)
{
	assert_int_equal(btrkit_usage_paths_num(p), n);
	for (size_t i = 0; i < n; i++) {
		struct btrkit_usage_path d;
		size_t top;

		btrkit_usage_paths_get(p, i, &d);
		assert_int_equal(d.root, rows[i].subvolume);
		assert_int_equal(d.inode, rows[i].inode);
		assert_true(d.parent == rows[i].parent);
		assert_int_equal(d.end, rows[i].end);
		assert_int_equal(d.depth, rows[i].depth);
		assert_int_equal(d.name_len, strlen(rows[i].name));
		assert_memory_equal(d.name, rows[i].name, d.name_len);
		if (d.total != rows[i].total * LENGTH || d.unshared != rows[i].unshared * LENGTH ||
		    d.set_shared != rows[i].set_shared * LENGTH || d.frees != rows[i].frees * LENGTH)
			fail_msg("%zu: total %llu, unshared %llu, set shared %llu, frees %llu", i,
				 (unsigned long long)d.total / LENGTH, (unsigned long long)d.unshared / LENGTH,
				 (unsigned long long)d.set_shared / LENGTH, (unsigned long long)d.frees / LENGTH);
		assert_int_equal(btrkit_usage_paths_find(p, d.root, &top), 0);
		assert_true((top == i) == !d.depth);
	}
	assert_int_equal(btrkit_usage_paths_find(p, 260, NULL), -ENOENT);
}

static void each_directory(void **state)
{
	static const char *const told[] = {
		"1: subvolume 258 is not attached to a reachable directory",
		"5: directories that are not reachable from the root directory: 3",
		"5: files without a reachable directory: 1",
	};
	struct btrkit_usage_paths_options opts = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct btrkit_usage_paths *p;
	struct heard heard = { 0 };
	struct btrkit_fs *fs;

	(void)state;
	make_trees();
	make();
	fs = open_made();
	for (opts.threads = 1; opts.threads <= 4; opts.threads++) {
		opts.flags = 0;
		heard.n = 0;
		assert_int_equal(load(fs, &opts, &heard, &p, NULL), 0);
		check_paths(p, whole, ARRAY_SIZE(whole));
		btrkit_usage_paths_free(p);
		assert_int_equal(heard.n, ARRAY_SIZE(told));
		for (size_t i = 0; i < ARRAY_SIZE(told); i++)
			assert_string_equal(heard.lines[i], told[i]);
		opts.flags = BTRKIT_USAGE_PATHS_LIMITED;
		assert_int_equal(load(fs, &opts, &heard, &p, NULL), 0);
		check_paths(p, tops, ARRAY_SIZE(tops));
		btrkit_usage_paths_free(p);
		opts.depth = 2;
		assert_int_equal(load(fs, &opts, &heard, &p, NULL), 0);
		check_paths(p, whole, ARRAY_SIZE(whole));
		btrkit_usage_paths_free(p);
		opts.depth = 0;
	}
	btrkit_fs_close(fs);
}

/* Without a function for it, the first damage ends the pass; so does a function that fails. */
static int refuse(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)done;
	(void)total;
	return -EINTR;
}

static void ends_early(void **state)
{
	struct btrkit_usage_paths_options opts = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage_paths *p = NULL;
	struct btrkit_usage *u;
	struct btrkit_fs *fs;

	(void)state;
	make_trees();
	make();
	fs = open_made();
	assert_int_equal(btrkit_usage_load(fs, NULL, &u, NULL), 0);
	assert_int_equal(btrkit_usage_paths_load(fs, u, NULL, &p, &err), -EUCLEAN);
	assert_string_equal(err.message, "subvolume 258 is not attached to a reachable directory");
	opts.damage = hear;
	opts.progress = refuse;
	assert_int_equal(btrkit_usage_paths_load(fs, u, &opts, &p, &err), -EINTR);
	opts.flags = 1u << 7;
	assert_int_equal(btrkit_usage_paths_load(fs, u, &opts, &p, &err), -EINVAL);
	assert_null(p);
	btrkit_usage_paths_free(NULL);
	btrkit_usage_free(u);
	btrkit_fs_close(fs);
}

/* An unreadable leaf loses the files in it, and is reported once although it is read twice. */
static void unreadable_leaf(void **state)
{
	struct heard heard = { 0 };
	uint8_t block[SYN_NODESIZE];
	struct btrkit_usage_path d;
	struct btrkit_usage_paths *p;
	struct btrkit_fs *fs;
	uint64_t root;

	(void)state;
	make_trees();
	make();
	root = le64_get(syn.more_roots[1].bytenr);
	for (unsigned copy = 0; copy < 2; copy++) {
		syn_get(&syn, root, copy, block);
		block[200] ^= 1;
		syn_put(&syn, root, copy, block, 0);
	}
	fs = open_made();
	assert_int_equal(load(fs, NULL, &heard, &p, NULL), 0);
	assert_int_equal(heard.n, 4);
	assert_string_equal(heard.lines[0], "257: subvolume 257 has no root directory");
	assert_int_equal(btrkit_usage_paths_num(p), ARRAY_SIZE(whole) - 1);
	btrkit_usage_paths_get(p, 3, &d);
	assert_int_equal(d.root, 256);
	assert_int_equal(d.total, 3 * LENGTH);
	assert_int_equal(btrkit_usage_paths_find(p, 257, NULL), -ENOENT);
	btrkit_usage_paths_free(p);
	btrkit_fs_close(fs);
}

static int count_rounds(void *ctx, uint64_t done, uint64_t total)
{
	uint64_t *totals = ctx;

	(void)done;
	if (total != totals[0]) {
		totals[0] = total;
		totals[1]++;
	}
	return 0;
}

/* More references to shared data than fit into memory, by directories that are not adjacent. */
static void files_read_again(void **state)
{
	static const struct row rows[] = {
		{ 5, 256, NO_PARENT, 3, 0, "", 200, 0, 100, 100 },
		{ 5, 257, 0, 2, 1, "a", 100, 0, 100, 0 },
		{ 5, 258, 0, 3, 1, "b", 100, 0, 100, 0 },
	};
	struct btrkit_usage_paths_options opts = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	uint64_t totals[2] = { 0, 0 };
	struct btrkit_usage_paths *p;
	struct heard heard = { 0 };
	struct btrkit_fs *fs;
	struct tree *t = &trees[0];

	(void)state;
	memset(num_refs, 0, sizeof(num_refs));
	memset(trees, 0, sizeof(trees));
	begin_tree(t, 5);
	add_dir(t, 257, 256, 2, "a");
	add_dir(t, 258, 256, 3, "b");
	for (uint64_t inode = 300; inode < 302; inode++) {
		add_inode(t, inode, S_IFREG, 1);
		add_name(t, inode, inode - 43, 2, "f");
		for (size_t i = 0; i < 100; i++)
			add_data(t, inode, i * LENGTH, i);
	}
	make();
	fs = open_made();
	for (opts.range_memory = 0; opts.range_memory < 2; opts.range_memory++) {
		totals[1] = 0;
		opts.progress = count_rounds;
		opts.progress_ctx = totals;
		assert_int_equal(load(fs, &opts, &heard, &p, NULL), 0);
		check_paths(p, rows, ARRAY_SIZE(rows));
		btrkit_usage_paths_free(p);
		assert_true(opts.range_memory ? totals[1] > 2 : totals[1] <= 1);
	}
	assert_int_equal(heard.n, 0);
	btrkit_fs_close(fs);
}

static void memory_runs_out(void **state)
{
	struct btrkit_usage_paths_options opts = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct btrkit_usage_paths *p;
	struct btrkit_fs *fs;
	uint64_t needed = 0;

	(void)state;
	make_trees();
	make();
	fs = open_made();
	for (opts.threads = 1; opts.threads <= 2; opts.threads++) {
		for (unsigned limited = 0; limited < 2; limited++) {
			opts.flags = limited;
			memory_count(MEMORY_SUFFICES, false);
			assert_int_equal(load(fs, &opts, NULL, &p, NULL), 0);
			needed = memory_end();
			btrkit_usage_paths_free(p);
			for (uint64_t at = 0; at < 2 * needed; at++) {
				struct btrkit_error err = BTRKIT_ERROR_INIT;
				int ret;

				memory_count(at / 2, at % 2);
				ret = load(fs, &opts, NULL, &p, &err);
				memory_end();
				if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
					fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret,
						 err.message);
				if (!ret)
					check_paths(p, limited ? tops : whole,
						    limited ? ARRAY_SIZE(tops) : ARRAY_SIZE(whole));
				btrkit_usage_paths_free(p);
			}
		}
	}
	assert_true(needed > 80);
	btrkit_fs_close(fs);
}

/* Ranges that are clipped, merged and swept, with as little memory as possible, compared with one-by-one marking. */

#define NODES 40u
#define SECTORS 4000u
#define RANGES 20000u

static uint32_t random_number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void ranges_in_windows(void **state)
{
	static struct paths_range ranges[RANGES];
	static bool covered[NODES][SECTORS + 64];
	static struct paths_node nodes[NODES];
	struct btrkit_usage_paths p = { .nodes = nodes, .num_nodes = NODES };
	uint32_t seed = 1;

	(void)state;
	for (unsigned crowd = 0; crowd < 3; crowd++) {
		struct paths_ranges r;
		unsigned windows = 0;

		memset(covered, 0, sizeof(covered));
		for (uint32_t i = 0; i < NODES; i++)
			nodes[i] = (struct paths_node){ .parent = i ? random_number(&seed) % i : PATHS_NONE };
		for (size_t i = 0; i < RANGES; i++) {
			/* Starts anywhere, at a few places, and all at the same place with different lengths. */
			const uint32_t start = random_number(&seed) % (crowd == 2 ? 1 : crowd ? 9 : SECTORS);

			ranges[i].start = (uint64_t)start * 4096;
			ranges[i].sectors = random_number(&seed) % 64 + 1;
			ranges[i].node = random_number(&seed) % NODES;
			for (uint32_t n = ranges[i].node; n != PATHS_NONE; n = nodes[n].parent)
				memset(&covered[n][start], true, ranges[i].sectors);
		}
		assert_int_equal(paths_ranges_init(&r, 1, NODES, 4096, NULL), 0);
		assert_true(r.room < 200);
		do {
			paths_ranges_add(&r, ranges, RANGES);
			windows++;
			assert_true(windows < 2 * SECTORS);
		} while (paths_ranges_sum(&r, &p));
		paths_ranges_release(&r);
		assert_true(windows > (crowd ? 0 : 10));
		for (uint32_t i = 0; i < NODES; i++) {
			uint64_t sum = 0;

			for (size_t sector = 0; sector < sizeof(covered[i]); sector++)
				sum += covered[i][sector];
			assert_int_equal(nodes[i].set_shared, sum * 4096);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_directory),   cmocka_unit_test(ends_early),
		cmocka_unit_test(unreadable_leaf),  cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(files_read_again), cmocka_unit_test(ranges_in_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
