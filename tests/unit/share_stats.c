// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How much work a listing does, with exact counts, on a file of 21,420 extents in 421 leaves; a leaf of the extent tree
 * holds as many extents as one of the file.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <btrkit/fiemap.h>

#include "lib/format/ids.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/backref/share.h"
#include "tests/unit/synthetic.h"

#define INODE 257u
#define LENGTH 4096u
#define DATA_BYTENR (1ull << 30) /* in no chunk: only trees are read */
#define SNAPSHOT 5u
#define BEFORE 4u
#define OTHER_ROOT 300u

#define EXTENTS 21420u
#define FIRST_LEAF 48u	 /* extents next to the inode item in the first leaf of the file */
#define OTHER_LEAVES 51u /* extents in the other leaves */
#define LEAVES (1 + (EXTENTS - FIRST_LEAF + OTHER_LEAVES - 1) / OTHER_LEAVES)
#define LEVELS 5u /* of the tree of the file, with five children per node */
#define BLOCKS (LEAVES + 85 + 17 + 4 + 1)

/* Data that must stay valid until the trees are written. */
static struct disk_inode_item inode_item;
static struct disk_file_extent file_extents[EXTENTS];
static struct syn_item file_items[EXTENTS + 1], tree_items[EXTENTS + 3];

struct data_item {
	struct disk_extent_item head;
	uint8_t type;
	struct disk_extent_data_ref ref;
};
DISK_ASSERT_SIZE(data_item, 24 + 1 + 28);

static struct data_item data_items[EXTENTS];

/* The item of a tree block to which the tree of the file refers, and another one. */
struct block_item {
	struct disk_extent_item head;
	uint8_t refs[2][9];
};
DISK_ASSERT_SIZE(block_item, 24 + 2 * 9);

static struct block_item item_of_leaf, item_of_root;

/* The data extent at each position of the file, by its number in address order; each has one item. */
typedef unsigned (*order_fn)(unsigned i);

static unsigned as_written(unsigned i)
{
	return i;
}

static unsigned scattered(unsigned i)
{
	return i * 7919u % EXTENTS;
}

/* In most leaves of the file one step back. */
static unsigned in_runs(unsigned i)
{
	return i * 389u % EXTENTS;
}

/* Makes a file in which each extent is referred to by @each file extents in a row. */
static void make_file(order_fn order, unsigned each)
{
	inode_item = (struct disk_inode_item){ .generation = le64_put(BEFORE), .transid = le64_put(BEFORE) };
	inode_item.size = le64_put(EXTENTS * LENGTH);
	inode_item.nlink = le32_put(1);
	inode_item.mode = le32_put(S_IFREG | 0644);
	file_items[0] = (struct syn_item){ KEY(INODE, KEY_INODE_ITEM, 0), &inode_item, sizeof(inode_item) };
	for (unsigned i = 0; i < EXTENTS; i++) {
		const unsigned extent = order(i / each), piece = i % each;

		file_extents[i] = (struct disk_file_extent){
			.generation = le64_put(BEFORE),
			.ram_bytes = le64_put(each * LENGTH),
			.type = FILE_EXTENT_REG,
			.disk_bytenr = le64_put(DATA_BYTENR + 2ull * extent * each * LENGTH),
			.disk_num_bytes = le64_put(each * LENGTH),
			.offset = le64_put(piece * LENGTH),
			.num_bytes = le64_put(LENGTH),
		};
		file_items[1 + i] = (struct syn_item){ KEY(INODE, KEY_EXTENT_DATA, (uint64_t)i * LENGTH),
						       &file_extents[i], sizeof(file_extents[i]) };
	}
}

/* Makes the item of a block to which @num_owners trees refer, one or two. */
static struct syn_item make_block_item(struct block_item *b, uint64_t bytenr, unsigned level, unsigned num_owners)
{
	assert_in_range(num_owners, 1, 2);
	b->head = (struct disk_extent_item){ le64_put(num_owners), le64_put(BEFORE),
					     le64_put(EXTENT_FLAG_TREE_BLOCK) };
	for (unsigned i = 0; i < 2 && i < num_owners; i++) {
		const le64 root = le64_put(i ? OTHER_ROOT : OID_FS_TREE);

		b->refs[i][0] = KEY_TREE_BLOCK_REF;
		memcpy(b->refs[i] + 1, &root, sizeof(root));
	}
	return (struct syn_item){ KEY(bytenr, KEY_METADATA_ITEM, level), b,
				  (uint32_t)(sizeof(b->head) + num_owners * sizeof(b->refs[0])) };
}

struct listing {
	order_fn order;
	unsigned each;
	uint64_t last_snapshot;
	unsigned num_owners;  /* of the root node; 0: it has no item */
	unsigned shared_leaf; /* number of the leaf to which another tree refers, if not 0 */
};

/* Makes the items of blocks and of the data. The leaves of the file are stored from @leaves on. */
static size_t make_extent_tree(const struct synthetic *s, const struct listing *what, uint64_t leaves)
{
	const order_fn order = what->order;
	const unsigned each = what->each;
	size_t n = 0;

	if (what->shared_leaf)
		tree_items[n++] = make_block_item(&item_of_leaf, leaves + what->shared_leaf * SYN_NODESIZE, 0, 2);
	if (what->num_owners)
		tree_items[n++] = make_block_item(&item_of_root, s->fs_root, LEVELS - 1, what->num_owners);
	for (unsigned i = 0; i < EXTENTS / each; i++) {
		const unsigned extent = order(i);

		data_items[extent] = (struct data_item){
			.head = { le64_put(each), le64_put(BEFORE), le64_put(EXTENT_FLAG_DATA) },
			.type = KEY_EXTENT_DATA_REF,
			.ref = { le64_put(OID_FS_TREE), le64_put(INODE), le64_put((uint64_t)i * each * LENGTH),
				 le32_put(each) },
		};
		tree_items[n + extent] = (struct syn_item){
			KEY(DATA_BYTENR + 2ull * extent * each * LENGTH, KEY_EXTENT_ITEM, (uint64_t)each * LENGTH),
			&data_items[extent], sizeof(data_items[0])
		};
	}
	return n + EXTENTS / each;
}

static int take_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	(void)file;
	return 0;
}

static int count_shared(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(unsigned *)ctx += rows[i].flags & BTRKIT_EXTENT_SHARED ? 1 : 0;
	return 0;
}

/* Lists all files. @return the number of shared rows */
static unsigned list(const struct listing *what, struct btrkit_fiemap_stats *stats)
{
	unsigned shared = 0;
	const struct btrkit_fiemap_sink sink = { take_file, count_shared, &shared, NULL };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;
	struct synthetic s;
	uint64_t leaves;
	size_t n;

	make_file(what->order, what->each);
	syn_begin(&s);
	leaves = s.next;
	syn_put_fs_tree(&s, file_items, EXTENTS + 1);
	assert_int_equal(s.fs_level, LEVELS - 1);
	n = make_extent_tree(&s, what, leaves);
	syn_finish(&s, what->last_snapshot, tree_items, n);
	*stats = (struct btrkit_fiemap_stats){ 0 };
	if (syn_open(&s, NULL, &fs, &err) || btrkit_fiemap_all(fs, &sink, stats, &err))
		fail_msg("%s", err.message);
	btrkit_fs_close(fs);
	assert_int_equal(stats->files, 1);
	assert_int_equal(stats->leaves, LEAVES);
	assert_int_equal(stats->checked + stats->saved_by_leaf + stats->saved_by_batch, EXTENTS);
	return shared;
}

/* A subvolume that never had a snapshot: no tree block is checked, and the extent tree is passed once. */
static void extents_are_looked_at_one_leaf_after_the_other(void **state)
{
	const struct listing what = { as_written, 1, 0, 0, 0 };
	struct btrkit_fiemap_stats stats;

	(void)state;
	assert_int_equal(list(&what, &stats), 0);
	assert_int_equal(stats.checked, EXTENTS);
	assert_int_equal(stats.extent_leaves, EXTENTS / OTHER_LEAVES);
	assert_int_equal(stats.blocks_checked + stats.saved_by_path, 0);
	assert_int_equal(stats.spread_checked + stats.saved_by_repeat, 0);
}

/* The first extent of a leaf of the file. */
static unsigned first_of(unsigned leaf)
{
	return leaf ? FIRST_LEAF + (leaf - 1) * OTHER_LEAVES : 0;
}

/*
 * Counts the leaves of the extent tree that are entered if the extents of the leaves of the file from @leaf to before
 * @end are looked up in order, beginning in the leaf *@here.
 */
static unsigned leaves_entered(order_fn order, unsigned leaf, unsigned end, unsigned *here)
{
	bool wanted[EXTENTS / OTHER_LEAVES] = { false };
	unsigned entered = 0;

	for (unsigned i = first_of(leaf); i < first_of(end) && i < EXTENTS; i++)
		wanted[order(i) / OTHER_LEAVES] = true;
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (!wanted[i] || i == *here)
			continue;
		entered++;
		*here = i;
	}
	return entered;
}

/* Like leaves_entered(), if the extents of @each leaves of the file at a time are looked up. */
static unsigned leaves_entered_by(order_fn order, unsigned each)
{
	unsigned entered = 0, here = UINT32_MAX;

	for (unsigned i = 0; i < LEAVES; i += each)
		entered += leaves_entered(order, i, i + each, &here);
	return entered;
}

/* The extents of many leaves of the file are looked up together. */
static void scattered_extents_are_looked_at_in_batches(void **state)
{
	const struct listing what = { scattered, 1, 0, 0, 0 };
	struct btrkit_fiemap_stats stats;

	(void)state;
	assert_int_equal(list(&what, &stats), 0);
	assert_int_equal(stats.checked, EXTENTS);
	assert_int_equal(stats.extent_leaves, leaves_entered_by(scattered, SHARE_LEAVES));
	/* One leaf of the file after the other, most leaves of the extent tree would be entered again and again. */
	assert_true(stats.extent_leaves < leaves_entered_by(scattered, 1) / 10);
}

/* Some extents before the previous ones, as there may be in any file, are no reason to look ahead. */
static void extents_in_runs_are_looked_at_one_leaf_after_the_other(void **state)
{
	const struct listing what = { in_runs, 1, 0, 0, 0 };
	struct btrkit_fiemap_stats stats;
	const unsigned entered = leaves_entered_by(in_runs, 1);

	(void)state;
	assert_int_equal(list(&what, &stats), 0);
	assert_int_equal(stats.checked, EXTENTS);
	/* Some more, because the search for the first extent of a leaf leads to the leaf before. */
	assert_in_range(stats.extent_leaves, entered, entered + EXTENTS / 10);
}

/* A batch ends at a leaf that is shared, and another one begins after it. */
static void batches_end_at_a_shared_leaf(void **state)
{
	const struct listing what = { scattered, 1, SNAPSHOT, 1, 70 };
	struct btrkit_fiemap_stats stats;

	(void)state;
	assert_int_equal(list(&what, &stats), OTHER_LEAVES);
	assert_int_equal(stats.saved_by_leaf, OTHER_LEAVES);
	assert_int_equal(stats.checked, EXTENTS - OTHER_LEAVES);
	/* Each block is checked once. For the shared leaf, the result is asked for twice. */
	assert_int_equal(stats.blocks_checked, BLOCKS);
	assert_int_equal(stats.saved_by_path, LEVELS * LEAVES - BLOCKS + LEVELS);
	assert_true(stats.extent_leaves < 5 * EXTENTS / OTHER_LEAVES);
}

static void shared_root_settles_everything(void **state)
{
	const struct listing what = { scattered, 1, SNAPSHOT, 2, 0 };
	struct btrkit_fiemap_stats stats;

	(void)state;
	assert_int_equal(list(&what, &stats), EXTENTS);
	assert_int_equal(stats.saved_by_leaf, EXTENTS);
	assert_int_equal(stats.checked, 0);
	assert_int_equal(stats.blocks_checked, 1);
	assert_int_equal(stats.saved_by_path, LEVELS * LEAVES - 1);
	assert_int_equal(stats.extent_leaves, 1);
}

/* The subvolume once had a snapshot, and all its blocks have changed since then: each is checked once. */
static void path_is_looked_at_once(void **state)
{
	const struct listing what = { as_written, 1, SNAPSHOT, 1, 0 };
	struct btrkit_fiemap_stats stats;

	(void)state;
	assert_int_equal(list(&what, &stats), 0);
	assert_int_equal(stats.checked, EXTENTS);
	assert_int_equal(stats.blocks_checked, BLOCKS);
	assert_int_equal(stats.saved_by_path, LEVELS * LEAVES - BLOCKS);
}

/* File extents that refer to parts of an extent in groups of five: one check for each group and leaf. */
static void pieces_are_looked_at_together(void **state)
{
	const struct listing what = { as_written, 5, 0, 0, 0 }, snapshot = { as_written, 5, SNAPSHOT, 1, 0 };
	struct btrkit_fiemap_stats stats;
	unsigned looks = 0;

	(void)state;
	for (unsigned i = 0; i < EXTENTS; i++)
		looks += i % 5 == 0 || (i >= FIRST_LEAF && (i - FIRST_LEAF) % OTHER_LEAVES == 0);
	assert_int_equal(list(&what, &stats), 0);
	assert_int_equal(stats.checked, looks);
	assert_int_equal(stats.saved_by_batch, EXTENTS - looks);
	assert_int_equal(stats.spread_checked + stats.saved_by_repeat, 0);
	/* With a snapshot it may matter which leaves refer to the extent, which is determined once per extent. */
	assert_int_equal(list(&snapshot, &stats), 0);
	assert_int_equal(stats.checked, looks);
	assert_int_equal(stats.spread_checked, EXTENTS / 5);
	assert_int_equal(stats.saved_by_repeat, EXTENTS - EXTENTS / 5);
}

/* A device of which a block cannot be read, nor its copy. */
struct holed {
	struct btrkit_io io;
	struct btrkit_io *below;
	uint64_t lost; /* logical address; 0: none */
	unsigned reads; /* of the block */
	unsigned all_reads;
};

static int holed_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct holed *h = (struct holed *)io;
	const uint64_t in_chunk = h->lost - SYN_LOGICAL;

	h->all_reads++;
	if (h->lost && (offset == SYN_COPY_1 + in_chunk || offset == SYN_COPY_2 + in_chunk)) {
		h->reads++;
		return -EIO;
	}
	return btrkit_io_read(h->below, offset, buf, len, NULL);
}

static void holed_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops holed_ops = { .read = holed_read, .close = holed_close };

static int count_problem(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	(void)ctx;
	assert_int_equal(file->inode, INODE);
	assert_int_equal(what->code, BTRKIT_IO);
	assert_int_equal(what->tree, OID_EXTENT_TREE);
	return 0;
}

/* What is lost of the extent tree. */
enum lost {
	LOST_NOTHING,
	LOST_LEAF, /* see below */
	LOST_END,  /* a leaf behind all others, whose first key is almost the greatest */
	LOST_ROOT,
};

/* The leaf begins with the second item of this extent. The first one already says that it is shared. */
#define LAST_BEFORE (5 * OTHER_LEAVES - 1)

/* Adds an item before tree_items[@at]. @return the number of items */
static size_t add_item(size_t n, size_t at, struct syn_item item)
{
	assert_true(n < ARRAY_SIZE(tree_items));
	memmove(&tree_items[at + 1], &tree_items[at], (n - at) * sizeof(tree_items[0]));
	tree_items[at] = item;
	return n + 1;
}

/* Makes and open the filesystem. */
static struct btrkit_fs *open_holed(struct holed *h, struct synthetic *s, order_fn order, enum lost lost)
{
	const struct listing what = { order, 1, 0, 0, 0 };
	static const struct disk_extent_data_ref other;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = &h->io;
	struct btrkit_fs *fs;
	size_t n;

	make_file(what.order, what.each);
	syn_begin(s);
	syn_put_fs_tree(s, file_items, EXTENTS + 1);
	n = make_extent_tree(s, &what, 0);
	h->lost = s->next + (lost == LOST_LEAF ? 5u : EXTENTS / OTHER_LEAVES) * SYN_NODESIZE;
	if (lost == LOST_LEAF) {
		const uint64_t bytenr = tree_items[LAST_BEFORE].key.objectid;

		data_items[LAST_BEFORE].ref.objectid = le64_put(INODE + 1);
		n = add_item(n, LAST_BEFORE + 1,
			     (struct syn_item){ KEY(bytenr, KEY_EXTENT_DATA_REF, 1), &other, sizeof(other) });
	} else if (lost == LOST_END) {
		n = add_item(n, n, (struct syn_item){ KEY(UINT64_MAX, KEY_METADATA_ITEM + 1, 0), &other, 1 });
	}
	syn_finish(s, 0, tree_items, n);
	if (lost == LOST_ROOT || lost == LOST_NOTHING)
		h->lost = lost == LOST_ROOT ? s->extent_root : 0;
	h->io.ops = &holed_ops;
	h->io.size = s->io->size;
	h->below = s->io;
	if (btrkit_fs_open(&io, 1, NULL, &fs, &err))
		fail_msg("%s", err.message);
	return fs;
}

/* What cannot be read is not tried again for each extent, which may take seconds. */
static void lost_blocks_are_tried_only_few_times(void **state)
{
	unsigned shared = 0;
	const struct btrkit_fiemap_sink sink = { take_file, count_shared, &shared, .problem = count_problem };

	(void)state;
	for (enum lost lost = LOST_LEAF; lost <= LOST_ROOT; lost++) {
		struct btrkit_fiemap_stats stats = { 0 };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct holed h = { .reads = 0 };
		struct btrkit_fs *fs;
		struct synthetic s;

		fs = open_holed(&h, &s, as_written, lost);
		assert_int_equal(btrkit_fiemap_all(fs, &sink, &stats, &err), 0);
		btrkit_fs_close(fs);
		/* Two copies, and again for the first extent behind it, and where the listing goes on behind it. */
		assert_in_range(h.reads, 2, 6);
		assert_true(stats.checked >= FIRST_LEAF);
		syn_destroy(&s);
	}
}

/* A subvolume whose extents are asked for one by one. */
struct asked {
	struct holed h;
	struct synthetic s;
	struct btrkit_fs *fs;
	struct share_ctx share;
	struct cursor c;
};

static void ask(struct asked *a, order_fn order, enum lost lost)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;

	a->h = (struct holed){ .reads = 0 };
	a->fs = open_holed(&a->h, &a->s, order, lost);
	assert_int_equal(fs_find_root(a->fs, OID_FS_TREE, &root, NULL, &err), 0);
	assert_int_equal(share_init(&a->share, a->fs, &root, 0, &err), 0);
	cursor_init(&a->c, a->fs, &root);
}

/* Goes to an item of the file. */
static void ask_at(struct asked *a, unsigned extent)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	assert_int_equal(cursor_find(&a->c, &KEY(INODE, KEY_EXTENT_DATA, extent * (uint64_t)LENGTH), &err), 0);
}

/* Enters the leaf that begins with the extent. */
static void ask_leaf(struct asked *a, unsigned extent, bool one_inode)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool shared = true;

	ask_at(a, extent);
	assert_int_equal(share_enter_leaf(&a->share, &a->c, one_inode, &shared, &err), 0);
	assert_false(shared);
}

static void asked_all(struct asked *a)
{
	cursor_release(&a->c);
	share_release(&a->share);
	btrkit_fs_close(a->fs);
	syn_destroy(&a->s);
}

/* Whether the item of an extent is lost, or is searched for where it is lost. */
static bool is_lost(enum lost lost, unsigned extent)
{
	if (lost == LOST_LEAF)
		return extent > LAST_BEFORE && extent <= LAST_BEFORE + OTHER_LEAVES;
	/* After the last extent, the search for more references leads to the end. */
	return lost == LOST_ROOT || extent == EXTENTS - 1;
}

/* Only those extents are lost, the first time and later. */
static void only_extents_of_lost_blocks_are_lost(void **state)
{
	(void)state;
	for (enum lost lost = LOST_LEAF; lost <= LOST_ROOT; lost++) {
		struct asked a;

		ask(&a, as_written, lost);
		for (unsigned i = 0; i < 2 * LEAVES; i++) {
			const unsigned first = first_of(i % LEAVES);

			ask_leaf(&a, first, false);
			for (unsigned k = 0; k < a.share.batch.num_items; k++) {
				const struct share_extent *e = &a.share.batch.extents[k];

				assert_int_equal(e->bytenr, DATA_BYTENR + 2ull * (first + k) * LENGTH);
				assert_int_equal(e->lost, is_lost(lost, first + k));
				assert_int_equal(e->refs.differ, lost == LOST_LEAF && first + k == LAST_BEFORE);
			}
		}
		asked_all(&a);
	}
}

/* A listing of one file ends at the first failure: the extents after it are looked up if the listing gets that far. */
static void one_file_looks_for_one_failure(void **state)
{
	const unsigned leaf = 6, first = first_of(leaf), behind = LAST_BEFORE + OTHER_LEAVES + 1;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct asked a;
	bool shared;

	(void)state;
	ask(&a, as_written, LOST_LEAF);
	for (unsigned i = first; i < first_of(leaf + 1); i++) {
		const struct file_extent fe = { .disk_bytenr = DATA_BYTENR + 2ull * i * LENGTH, .num_bytes = LENGTH };

		ask_at(&a, i);
		if (i == first) {
			ask_leaf(&a, i, true);
			assert_true(a.share.batch.extents[behind - first].lost);
		}
		shared = true;
		assert_int_equal(share_extent_shared(&a.share, &a.c, &fe, false, &shared, &err), i < behind ? -EIO : 0);
		assert_int_equal(shared, i < behind);
	}
	/* For the first extent, and for the one behind. */
	assert_int_equal(a.h.reads, 4);
	asked_all(&a);
}

/* Leaves of the extent tree that the next batch needs again are not read again. */
static void blocks_are_read_once(void **state)
{
	unsigned begun, batches = 0;
	struct asked a;

	(void)state;
	ask(&a, scattered, LOST_NOTHING);
	begun = a.h.all_reads;
	for (unsigned leaf = 0; leaf < LEAVES; leaf++) {
		ask_leaf(&a, first_of(leaf), true);
		batches += !a.share.batch.leaf;
	}
	assert_int_equal(batches, (LEAVES + SHARE_LEAVES - 1) / SHARE_LEAVES);
	/* Of both trees the leaves, and a fourth as many blocks above them. */
	assert_in_range(a.h.all_reads - begun, LEAVES, (LEAVES + EXTENTS / OTHER_LEAVES) * 4 / 3);
	asked_all(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extents_are_looked_at_one_leaf_after_the_other),
		cmocka_unit_test(scattered_extents_are_looked_at_in_batches),
		cmocka_unit_test(extents_in_runs_are_looked_at_one_leaf_after_the_other),
		cmocka_unit_test(batches_end_at_a_shared_leaf),
		cmocka_unit_test(shared_root_settles_everything),
		cmocka_unit_test(path_is_looked_at_once),
		cmocka_unit_test(lost_blocks_are_tried_only_few_times),
		cmocka_unit_test(only_extents_of_lost_blocks_are_lost),
		cmocka_unit_test(one_file_looks_for_one_failure),
		cmocka_unit_test(blocks_are_read_once),
		cmocka_unit_test(pieces_are_looked_at_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
