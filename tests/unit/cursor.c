// SPDX-License-Identifier: LGPL-2.1-or-later
/* Forward cursors: where their seeks end, how many leaves they enter, what they read, and what they read ahead. */
#include "tests/unit/unit.h"

#include "lib/format/ids.h"
#include "lib/tree/cursor.h"
#include "tests/unit/synthetic.h"

#define ITEMS 1400u
#define SIZE 900u /* four items to a leaf, five leaves to a node */
#define PER_LEAF 4u
#define LEAVES (ITEMS / PER_LEAF)

static struct syn_item items[ITEMS];
static uint8_t payload[SIZE];

/* A device that counts reads, and fails on demand. */
struct counting {
	struct btrkit_io io;
	struct btrkit_io *below;
	size_t reads, requests, requested;
	bool fails;
};

static struct counting counts;

static int count_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	counts.reads++;
	if (counts.fails)
		return -EIO;
	return btrkit_io_read(((struct counting *)io)->below, offset, buf, len, NULL);
}

static void count_request(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	(void)io;
	(void)offset;
	counts.requests++;
	counts.requested += len / SYN_NODESIZE;
}

static void close_below(struct btrkit_io *io)
{
	btrkit_io_close(((struct counting *)io)->below);
}

static const struct btrkit_io_ops counting_ops = {
	.read = count_read,
	.prefetch = count_request,
	.close = close_below,
};

static struct btrkit_fs *open_counting(struct cursor *c)
{
	struct tree_root root;
	struct btrkit_fs *fs = NULL;
	struct synthetic s;

	syn_create(&s, items, ITEMS);
	counts = (struct counting){ .below = s.io };
	counts.io = (struct btrkit_io){ .ops = &counting_ops, .size = s.io->size };
	s.io = &counts.io;
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	assert_int_equal(fs_find_root(fs, OID_FS_TREE, &root, NULL, NULL), 0);
	cursor_init(c, fs, &root);
	counts.reads = counts.requests = counts.requested = 0;
	return fs;
}

static void close_counting(struct btrkit_fs *fs, struct cursor *c)
{
	cursor_release(c);
	btrkit_fs_close(fs);
}

/* A seek must end at the first item whose key is not less than @key. */
static void expect_seek(struct cursor *c, const struct btrkit_key *key)
{
	unsigned i = 0;
	int ret = cursor_seek(c, key, NULL);

	while (i < ITEMS && key_cmp(&items[i].key, key) < 0)
		i++;
	assert_int_equal(ret, i == ITEMS);
	if (!ret)
		assert_int_equal(key_cmp(&c->item.key, &items[i].key), 0);
}

/* Steps of every length, mostly forward, to existing keys and to keys between them. */
static void seeks_go_on_from_anywhere(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (unsigned reach = 1; reach <= ITEMS; reach *= 3) {
		struct cursor c;
		struct btrkit_fs *fs = open_counting(&c);
		uint64_t at = 0;

		c.forward = true;
		c.once = reach & 2;
		for (unsigned n = 0; n < 1500; n++) {
			random = random * 1664525 + 1013904223;
			at += (random >> 8) % (20 * reach);
			if (at > 10 * (ITEMS + 3) || !(random >> 8) % 50)
				at = (random >> 8) % (10 * ITEMS);
			expect_seek(&c, &KEY(300, 1, at));
			if (n % 3 == 0 && c.nodes[0] && c.slots[0] < c.nodes[0]->nritems)
				(void)!cursor_next(&c, NULL);
		}
		expect_seek(&c, &KEY(0, 0, 0));
		expect_seek(&c, &KEY(UINT64_MAX, 255, UINT64_MAX));
		close_counting(fs, &c);
	}
}

/* Items are looked up in order, as extents are, with keys slightly before them. */
static void walk_enters_each_leaf_once(void **state)
{
	struct cursor c;
	struct btrkit_fs *fs = open_counting(&c);

	(void)state;
	c.forward = true;
	for (unsigned i = 0; i < ITEMS; i++) {
		struct btrkit_key key = items[i].key;

		key.offset -= !!key.offset;
		assert_int_equal(cursor_seek(&c, &key, NULL), 0);
		assert_int_equal(key_cmp(&c.item.key, &items[i].key), 0);
		if (i % 2)
			assert_int_equal(cursor_next(&c, NULL), i + 1 == ITEMS);
	}
	assert_int_equal(c.leaves, LEAVES);
	close_counting(fs, &c);
}

/* After a failed seek the cursor must not continue from its old position. */
static void after_a_failure_it_stands_nowhere(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cursor c;
	struct btrkit_fs *fs = open_counting(&c);

	(void)state;
	assert_int_equal(cursor_next(&c, &err), -EINVAL);
	for (unsigned forward = 0; forward < 2; forward++) {
		const unsigned far = forward ? ITEMS - 1 : ITEMS / 2;

		c.forward = forward;
		assert_int_equal(cursor_seek(&c, &items[1].key, NULL), 0);
		counts.fails = true;
		assert_int_equal(cursor_seek(&c, &items[far].key, NULL), -EIO);
		assert_int_equal(cursor_next(&c, &err), -EINVAL);
		assert_int_equal(err.code, BTRKIT_INVALID);
		assert_null(cursor_leaf(&c));
		/*
		 * Cached blocks can be read even now; from there the cursor moves to the next leaf only, and not past
		 * it.
		 */
		assert_int_equal(cursor_seek(&c, &items[PER_LEAF - 1].key, NULL), 0);
		assert_int_equal(cursor_next(&c, NULL), -EIO);
		counts.fails = false;
		assert_int_equal(cursor_next(&c, NULL), -EINVAL);
		assert_int_equal(cursor_seek_back(&c, &items[PER_LEAF - 1].key, NULL), 0);
		assert_int_equal(cursor_next(&c, NULL), 0);
		assert_int_equal(key_cmp(&c.item.key, &items[PER_LEAF].key), 0);
		close_counting(fs, &c);
		fs = open_counting(&c);
	}
	close_counting(fs, &c);
}

static size_t reads_of_a_scan(struct cursor *c)
{
	const size_t before = counts.reads;
	int ret;

	for (ret = cursor_seek(c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(c, NULL))
		;
	assert_int_equal(ret, 1);
	return counts.reads - before;
}

/* A scan that reads each leaf once keeps only few leaves in the cache; leaves that were used twice stay. */
static void leaves_that_are_passed_make_room(void **state)
{
	struct cursor c, other;
	struct btrkit_fs *fs = open_counting(&c);
	size_t all, again;

	(void)state;
	c.once = true;
	cursor_init(&other, fs, &c.root);
	all = reads_of_a_scan(&c);
	assert_true(all > LEAVES);
	/* The cache keeps 16 shards of 16 such leaves, the last leaf and the nodes. */
	again = reads_of_a_scan(&c);
	assert_in_range(again, LEAVES - 16 * 16 - 1, LEAVES);
	assert_int_equal(cursor_seek(&other, &items[8].key, NULL), 0);
	cursor_release(&other);
	assert_int_equal(cursor_seek(&c, &items[8].key, NULL), 0);
	assert_int_equal(cursor_seek(&c, &items[ITEMS - 1].key, NULL), 0);
	again = reads_of_a_scan(&c);
	assert_true(again < LEAVES);
	counts.reads = 0;
	assert_int_equal(cursor_seek(&other, &items[8].key, NULL), 0);
	assert_int_equal(counts.reads, 0);
	cursor_release(&other);
	/* Without that flag, leaves stay while there is room. */
	c.once = false;
	reads_of_a_scan(&c);
	assert_int_equal(reads_of_a_scan(&c), 0);
	close_counting(fs, &c);
}

/* A scan requests each leaf once: none past its end if it has one, and none that is cached already. */
static void scan_requests_what_it_will_read(void **state)
{
	struct cursor c;
	struct btrkit_fs *fs = open_counting(&c);
	int ret;

	(void)state;
	c.scan = true;
	c.until = items[27].key; /* the last item of the seventh leaf */
	for (ret = cursor_seek(&c, &items[5].key, NULL); !ret; ret = cursor_next(&c, NULL))
		if (!key_cmp(&c.item.key, &c.until))
			break;
	assert_int_equal(ret, 0);
	assert_int_equal(counts.requested, 6); /* the second leaf and all after it */
	cursor_release(&c);
	c.until = KEY(0, 0, 0);
	reads_of_a_scan(&c);
	assert_int_equal(counts.requested, LEAVES);
	cursor_release(&c);
	reads_of_a_scan(&c);
	assert_int_equal(counts.requested, LEAVES);
	close_counting(fs, &c);
}

/* Leaves that are read in sequence are read ahead without being announced; jumps do not cause any read-ahead. */
static void walk_requests_what_comes(void **state)
{
	struct cursor c;
	struct btrkit_fs *fs = open_counting(&c);

	(void)state;
	c.forward = true;
	for (unsigned i = 0; i < ITEMS; i += 3 * PER_LEAF)
		assert_int_equal(cursor_seek(&c, &items[i].key, NULL), 0);
	assert_int_equal(counts.requested, 0);
	close_counting(fs, &c);
	fs = open_counting(&c);
	c.forward = true;
	reads_of_a_scan(&c);
	/*
	 * Of the five leaves of each node all but the first, and two fewer in the first node, until a sequence is
	 * detected.
	 */
	assert_int_equal(counts.requested, LEAVES / 5 * 4 - 2);
	close_counting(fs, &c);
}

static int count_lost(void *ctx, int ret, const struct btrkit_error *what)
{
	assert_int_equal(ret, -EUCLEAN);
	assert_string_equal(what->field, "key");
	++*(unsigned *)ctx;
	return 0;
}

/* Two pointers lead to the same leaf: reaching it by the wrong one is an error, and must not return its items again. */
static void leaf_with_two_pointers_is_refused(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t block[SYN_NODESIZE];
	const struct disk_header *h = (const struct disk_header *)block;
	struct disk_key_ptr *ptrs = (struct disk_key_ptr *)(block + sizeof(*h));
	struct tree_root root;
	struct btrkit_fs *fs;
	struct synthetic s;
	struct cursor c;
	uint64_t at;
	struct btrkit_key from = KEY(0, 0, 0);
	unsigned n, lost = 0;
	int ret;

	(void)state;
	syn_create(&s, items, ITEMS);
	for (at = s.fs_root;; at = le64_get(ptrs[0].blockptr)) {
		syn_get(&s, at, 0, block);
		if (h->level == 1)
			break;
	}
	ptrs[2].blockptr = ptrs[1].blockptr;
	syn_put(&s, at, 0, block, 1);
	syn_put(&s, at, 1, block, 1);
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	assert_int_equal(fs_find_root(fs, OID_FS_TREE, &root, NULL, NULL), 0);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err), n = 0; !ret; ret = cursor_next(&c, &err))
		n++;
	assert_int_equal(ret, -EUCLEAN);
	assert_int_equal(n, 2 * PER_LEAF);
	assert_int_equal(err.logical, le64_get(ptrs[1].blockptr));
	ret = cursor_next_around(&c, &from, true, count_lost, &lost, &err);
	for (n = 0; !ret; ret = cursor_next_around(&c, &from, false, count_lost, &lost, &err))
		n++;
	assert_int_equal(ret, 1);
	assert_int_equal(lost, 1);
	assert_int_equal(n, ITEMS - PER_LEAF);
	cursor_release(&c);
	btrkit_fs_close(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeks_go_on_from_anywhere),	   cmocka_unit_test(walk_enters_each_leaf_once),
		cmocka_unit_test(after_a_failure_it_stands_nowhere),
		cmocka_unit_test(leaves_that_are_passed_make_room), cmocka_unit_test(scan_requests_what_it_will_read),
		cmocka_unit_test(walk_requests_what_comes),	   cmocka_unit_test(leaf_with_two_pointers_is_refused),
	};

	for (unsigned i = 0; i < ITEMS; i++)
		items[i] = (struct syn_item){ KEY(300, 1, 10 * i), payload, SIZE };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
