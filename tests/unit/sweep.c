// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of lib/sweep: above all the reader of log trees, around what is unreadable or invalid. */
#include "tests/unit/unit.h"

#include "lib/format/items/files/dir_log.h"
#include "lib/sweep/leaves.h"
#include "lib/sweep/drop.h"
#include "lib/sweep/entries.h"
#include "lib/sweep/log.h"
#include "lib/sweep/lost.h"
#include "tests/unit/synthetic.h"

#define INODES 100u
#define FIRST 300u /* inode */
#define PER_INODE 5u
#define DATA (SYN_LOGICAL + (8ull << 20))

/* A log of subvolume 5 with many files: three levels of blocks. */
struct logged {
	struct synthetic s;
	struct syn_item items[PER_INODE * INODES + 1];
	size_t n;
	struct disk_inode_item inode;
	struct disk_file_extent extent;
	uint8_t ref[sizeof(struct disk_inode_ref) + 1], attribute[sizeof(struct disk_dir_item) + 3];
	struct disk_dir_log range;
	uint8_t csums[8];
	struct disk_root_item root;
	struct syn_item top; /* the item of the log root tree */
	uint64_t log_root;
};

static void put(struct logged *l, uint64_t objectid, uint8_t type, uint64_t offset, const void *data, size_t size)
{
	l->items[l->n++] = (struct syn_item){ KEY(objectid, type, offset), data, (uint32_t)size };
}

static void fill(struct logged *l)
{
	struct disk_inode_ref *ref = (struct disk_inode_ref *)l->ref;
	struct disk_dir_item *a = (struct disk_dir_item *)l->attribute;

	l->inode = (struct disk_inode_item){ .nlink = le32_put(1), .mode = le32_put(0100644) };
	l->extent = (struct disk_file_extent){
		.ram_bytes = le64_put(8192),
		.type = FILE_EXTENT_REG,
		.disk_bytenr = le64_put(DATA),
		.disk_num_bytes = le64_put(8192),
		.num_bytes = le64_put(8192),
	};
	*ref = (struct disk_inode_ref){ le64_put(9), le16_put(1) };
	l->ref[sizeof(*ref)] = 'f';
	*a = (struct disk_dir_item){ .data_len = le16_put(2), .name_len = le16_put(1), .type = FT_XATTR };
	memcpy(a + 1, "avv", 3);
	l->range.end = le64_put(70);
	for (uint64_t i = FIRST; i < FIRST + INODES; i++) {
		put(l, i, KEY_INODE_ITEM, 0, &l->inode, sizeof(l->inode));
		put(l, i, KEY_INODE_REF, 256, l->ref, sizeof(l->ref));
		put(l, i, KEY_XATTR_ITEM, dir_name_hash("a", 1), l->attribute, sizeof(l->attribute));
		put(l, i, KEY_DIR_LOG_INDEX, 7, &l->range, sizeof(l->range));
		put(l, i, KEY_EXTENT_DATA, 0, &l->extent, sizeof(l->extent));
	}
	/* Keys are unsigned, so this one is the last. */
	put(l, OID_EXTENT_CSUM, KEY_EXTENT_CSUM, DATA, l->csums, sizeof(l->csums));
}

/* Writes the log, and a log root tree that refers to it; neither is in the root tree. */
static void open_logged(struct logged *l, struct btrkit_fs **fs)
{
	syn_begin(&l->s);
	syn_put_fs_tree(&l->s, NULL, 0);
	syn_put_tree(&l->s, OID_TREE_LOG, l->items, l->n);
	l->root = l->s.more_roots[0];
	l->top = (struct syn_item){ KEY(OID_TREE_LOG, KEY_ROOT_ITEM, 5), &l->root, sizeof(l->root) };
	syn_put_tree(&l->s, OID_TREE_LOG, &l->top, 1);
	l->log_root = le64_get(l->s.more_roots[1].bytenr);
	l->s.num_more = l->s.num_more_roots = 0;
	syn_finish(&l->s, 0, NULL, 0);
	assert_int_equal(syn_open(&l->s, NULL, fs, NULL), 0);
	(*fs)->super.log_root = l->log_root;
	(*fs)->super.log_root_level = 0;
	/* Log trees have the next generation. */
	(*fs)->super.generation = SYN_GENERATION - 1;
}

/* What was said. */
struct heard {
	struct btrkit_fs *fs;
	unsigned begun, ended, trees, items, invalid, unreadable, inodes, names, attributes, ranges, extents, csums;
	struct btrkit_key last;
	bool skip;
	uint64_t lose;	/* address of the block that cannot be read */
	unsigned level; /* of the highest block read */
};

static int get(void *ctx, const struct node_ref *ref, struct node **ret, struct btrkit_error *err)
{
	struct heard *h = ctx;

	h->level = ref->level > h->level ? ref->level : h->level;
	if (ref->bytenr == h->lose) {
		h->unreadable++;
		return 0;
	}
	return node_get(h->fs, ref, ret, err);
}

static void put_node(void *ctx, struct node *n)
{
	node_put(((struct heard *)ctx)->fs, n);
}

static int begin(void *ctx, const struct tree_root *root, bool top, bool *read, struct btrkit_error *err)
{
	struct heard *h = ctx;

	(void)err;
	assert_true(*read);
	assert_int_equal(root->key_offset, top ? 0 : 5);
	*read = top || !h->skip;
	h->begun++;
	h->last = KEY(0, 0, 0);
	return 0;
}

static int end(void *ctx, const struct tree_root *root, bool top, struct btrkit_error *err)
{
	(void)root;
	(void)top;
	(void)err;
	((struct heard *)ctx)->ended++;
	return 0;
}

static int tree(void *ctx, const struct sweep_log_item *at, const struct root_item *root, bool *read,
		struct btrkit_error *err)
{
	(void)err;
	assert_true(*read);
	assert_int_equal(at->item->key.offset, 5);
	assert_int_equal(root->level, 2);
	((struct heard *)ctx)->trees++;
	return 0;
}

static int item(void *ctx, const struct sweep_log_item *at, bool top, bool *take, struct btrkit_error *err)
{
	struct heard *h = ctx;

	(void)err;
	assert_true(*take);
	assert_true(key_cmp(&h->last, &at->item->key) < 0);
	h->last = at->item->key;
	h->items += !top;
	return 0;
}

static int invalid(void *ctx, const struct sweep_log_item *at, int ret, const struct btrkit_error *what,
		   struct btrkit_error *err)
{
	(void)err;
	assert_int_equal(ret, -EUCLEAN);
	assert_int_equal(what->tree, OID_TREE_LOG);
	assert_int_equal(what->logical, at->leaf->bytenr);
	assert_int_equal(what->slot, at->slot);
	((struct heard *)ctx)->invalid++;
	return 0;
}

static int inode(void *ctx, const struct sweep_log_item *at, const struct inode_item *i, struct btrkit_error *err)
{
	(void)at;
	(void)err;
	assert_int_equal(i->mode, 0100644);
	((struct heard *)ctx)->inodes++;
	return 0;
}

static int name(void *ctx, const struct sweep_log_item *at, const struct inode_ref *ref, struct btrkit_error *err)
{
	(void)at;
	(void)err;
	assert_int_equal(ref->parent, 256);
	assert_int_equal(ref->index, 9);
	assert_int_equal(ref->name[0], 'f');
	((struct heard *)ctx)->names++;
	return 0;
}

static int attribute(void *ctx, const struct sweep_log_item *at, const struct dir_entry *e, struct btrkit_error *err)
{
	(void)at;
	(void)err;
	assert_int_equal(e->name[0], 'a');
	assert_int_equal(e->data_len, 2);
	((struct heard *)ctx)->attributes++;
	return 0;
}

static int range(void *ctx, const struct sweep_log_item *at, uint64_t first, uint64_t last, struct btrkit_error *err)
{
	(void)at;
	(void)err;
	assert_int_equal(first, 7);
	assert_int_equal(last, 70);
	((struct heard *)ctx)->ranges++;
	return 0;
}

static int extent(void *ctx, const struct sweep_log_item *at, const struct file_extent *fe, struct btrkit_error *err)
{
	(void)at;
	(void)err;
	assert_int_equal(fe->disk_bytenr, DATA);
	((struct heard *)ctx)->extents++;
	return 0;
}

static int csums(void *ctx, const struct sweep_log_item *at, uint64_t start, uint64_t length, const uint8_t *bytes,
		 struct btrkit_error *err)
{
	(void)err;
	assert_int_equal(start, DATA);
	assert_int_equal(length, 8192);
	assert_ptr_equal(bytes, at->item->data);
	((struct heard *)ctx)->csums++;
	return 0;
}

static struct sweep_log_events all_events(struct heard *h)
{
	return (struct sweep_log_events){
		.begin = begin,
		.end = end,
		.tree = tree,
		.item = item,
		.invalid = invalid,
		.inode = inode,
		.name = name,
		.range = range,
		.attribute = attribute,
		.extent = extent,
		.csums = csums,
		.ctx = h,
	};
}

static void hear(struct heard *h, const struct sweep_log_events *to)
{
	const struct sweep_blocks from = { .get = get, .put = put_node, .ctx = h };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	assert_int_equal(sweep_logs(h->fs, &from, to, &err), 0);
	btrkit_fs_close(h->fs);
}

static void each_item_is_said_once_in_order(void **state)
{
	struct logged l = { 0 };
	struct heard h = { 0 };
	const struct sweep_log_events to = all_events(&h);

	(void)state;
	fill(&l);
	open_logged(&l, &h.fs);
	hear(&h, &to);
	assert_int_equal(h.level, 2);
	assert_int_equal(h.begun, 2);
	assert_int_equal(h.ended, 2);
	assert_int_equal(h.trees, 1);
	assert_int_equal(h.items, l.n);
	assert_int_equal(h.inodes, INODES);
	assert_int_equal(h.names, INODES);
	assert_int_equal(h.attributes, INODES);
	assert_int_equal(h.ranges, INODES);
	assert_int_equal(h.extents, INODES);
	assert_int_equal(h.csums, 1);
	assert_int_equal(h.invalid + h.unreadable, 0);
}

static void a_log_that_is_skipped_says_nothing(void **state)
{
	struct logged l = { 0 };
	struct heard h = { .skip = true };
	const struct sweep_log_events to = all_events(&h);

	(void)state;
	fill(&l);
	open_logged(&l, &h.fs);
	hear(&h, &to);
	assert_int_equal(h.begun, 2);
	assert_int_equal(h.ended, 1);
	assert_int_equal(h.items, 0);
}

/* The first block of the log is a leaf; the last three are two nodes of level 1 and the root above them. */
static void what_lies_behind_an_unreadable_block_is_said(void **state)
{
	(void)state;
	for (unsigned node = 0; node < 3; node++) {
		struct logged l = { 0 };
		struct heard h = { 0 };
		const struct sweep_log_events to = all_events(&h);

		fill(&l);
		open_logged(&l, &h.fs);
		h.lose = node ? le64_get(l.root.bytenr) - node * SYN_NODESIZE : l.s.fs_root + SYN_NODESIZE;
		hear(&h, &to);
		assert_int_equal(h.unreadable, 1);
		assert_true(h.items && h.items < l.n);
		/* With the last node, the last item is lost. */
		assert_int_equal(h.csums, node != 1);
		assert_int_equal(h.ended, 2);
	}
}

static void only_wanted_items_must_be_valid(void **state)
{
	const uint8_t bad[sizeof(struct disk_file_extent)] = { [20] = 77 };
	struct logged l = { 0 };
	struct heard h = { 0 };
	struct sweep_log_events to = all_events(&h);

	(void)state;
	fill(&l);
	l.items[PER_INODE - 1].data = bad; /* a file extent */
	l.items[PER_INODE + 2].size = 3;   /* an attribute */
	open_logged(&l, &h.fs);
	to.item = NULL;
	to.attribute = NULL;
	hear(&h, &to);
	assert_int_equal(h.invalid, 1);
	assert_int_equal(h.extents, INODES - 1);
	assert_int_equal(h.attributes, 0);
}

static void lost_ranges_are_found(void **state)
{
	struct array lost = { 0 };

	(void)state;
	assert_false(sweep_lost_has(&lost, 0));
	assert_int_equal(sweep_lost_add(&lost, 50, 60, NULL), 0);
	assert_int_equal(sweep_lost_add(&lost, 10, 20, NULL), 0);
	assert_int_equal(sweep_lost_add(&lost, 70, UINT64_MAX, NULL), 0);
	sweep_lost_sort(&lost);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(sweep_lost_has(&lost, i), (i >= 10 && i <= 20) || (i >= 50 && i <= 60) || i >= 70);
	free(lost.at);
}

/* Nodes with the keys 10, 20 and 30, and a subvolume dropped up to a key in level 1. */
static void what_a_dropped_subvolume_has_left(void **state)
{
	static const struct {
		uint64_t key, level, first;
		bool cut;
	} rows[] = {
		{ 5, 1, 0, false }, { 20, 1, 1, false }, { 25, 1, 2, false }, { 35, 1, 3, false },
		{ 5, 2, 0, true },  { 20, 2, 1, true },	 { 25, 2, 1, true },  { 35, 2, 2, true },
	};
	struct disk_key_ptr ptrs[3];
	uint8_t block[SYN_NODESIZE] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ptrs[i] = (struct disk_key_ptr){ .key = key_put(&KEY(10 * i + 10, KEY_INODE_ITEM, 0)) };
	memcpy(block + sizeof(struct disk_header), ptrs, sizeof(ptrs));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct node n = { .data = block, .nritems = 3, .level = (uint8_t)rows[i].level };
		const struct sweep_drop d = { KEY(rows[i].key, KEY_INODE_ITEM, 0), 1, true };
		bool cut;

		assert_int_equal(sweep_drop_first(&d, &n, NULL), rows[i].first);
		assert_int_equal(sweep_drop_first(&d, &n, &cut), rows[i].first);
		assert_int_equal(cut, rows[i].cut);
		assert_true(sweep_drop_cuts_root(&d, n.level));
	}
	assert_false(sweep_drop_cuts_root(&(struct sweep_drop){ .level = 1 }, 2));
	assert_false(sweep_drop_cuts_root(&(struct sweep_drop){ .level = 2, .begun = true }, 1));
	assert_false(sweep_drop_cuts_root(&(struct sweep_drop){ .begun = true }, 0));
}

static void entries_are_merged_by_address(void **state)
{
	struct entry {
		uint64_t place, value;
	} all[20] = { 0 }, more[20];

	(void)state;
	/* Every subset of ten addresses is merged into the others; the low bits are flags. */
	for (unsigned set = 0; set < 1024; set++) {
		size_t n = 0, m = 0;

		for (unsigned i = 0; i < 10; i++) {
			const struct entry e = { (i + 1) * 4096 | (i * 37 & 4095), i };

			if (set >> i & 1)
				more[m++] = e;
			else
				all[n++] = e;
		}
		sweep_entries_merge(all, n, sizeof(*all), more, m);
		for (unsigned i = 0; i < 10; i++) {
			assert_int_equal(sweep_entry_address(all, sizeof(*all), i), (i + 1) * 4096);
			assert_int_equal(all[i].value, i);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item_is_said_once_in_order),
		cmocka_unit_test(a_log_that_is_skipped_says_nothing),
		cmocka_unit_test(what_lies_behind_an_unreadable_block_is_said),
		cmocka_unit_test(only_wanted_items_must_be_valid),
		cmocka_unit_test(lost_ranges_are_found),
		cmocka_unit_test(what_a_dropped_subvolume_has_left),
		cmocka_unit_test(entries_are_merged_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
