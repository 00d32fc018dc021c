// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The number of blocks that changes of leaves take, compared with the bound, in cases where half of the bound would not
 * suffice. One item is changed in each leaf, so that only that leaf is copied, also when it is merged with its
 * neighbour. The leaves are those of a snapshot whose other owner has dropped them: each extent gets a reference for
 * the tree, and loses the one for the old leaf.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>

#include "lib/delayed/delayed.h"
#include "lib/reserve/bound.h"
#include "lib/reserve/ticket.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define FILES 30u
#define EXTENTS 200u /* of a file: more than fit into a leaf of 4 KiB */

struct scene {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t inodes[FILES], snapshot;
};

static void begin(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_start(s->fs, &s->txn, &err), &err);
}

static void commit(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_commit(s->txn, NULL, &err), &err);
}

/* Makes files of single sectors with holes between them. */
static void make_files(struct scene *s)
{
	static const uint8_t sector[4096] = { 1 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	begin(s);
	for (unsigned i = 0; i < FILES; i++) {
		char name[16];
		const size_t len = (size_t)snprintf(name, sizeof(name), "f%u", i);

		rig_check(btrkit_txn_create(s->txn, BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &s->inodes[i], &err), &err);
		for (unsigned k = 0; k < EXTENTS; k++)
			rig_check(btrkit_txn_write(s->txn, BTRKIT_TOP_LEVEL, s->inodes[i], 8192ull * k, sector,
						   sizeof(sector), NULL, &err),
				  &err);
	}
	commit(s);
}

static void make_snapshot(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	begin(s);
	rig_check(btrkit_txn_subvolume_snapshot(s->txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL,
						&s->snapshot, &err),
		  &err);
	commit(s);
}

static void same_bytes(struct edit_tree *t, const struct btrkit_key *key)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint32_t size;
	uint8_t *data;

	rig_check(edit_bytes(t, key, &data, &size, &err), &err);
}

/* Copies each leaf by changing its first item. @return the number of leaves */
static uint64_t copy_leaves(struct scene *s, uint64_t root)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_key at = KEY(0, 0, 0);
	uint64_t n = 0, last = 0;
	struct edit_tree *t;
	int ret;

	sync_lock_trees(&s->txn->sync);
	rig_check(txn_tree(s->txn, root, &t, &err), &err);
	while (!(ret = cursor_seek(&t->c, &at, &err))) {
		const struct node *leaf = t->c.nodes[0];

		at = t->c.item.key;
		if (leaf->bytenr != last) {
			same_bytes(t, &at);
			last = t->c.nodes[0]->bytenr;
			n++;
		}
		at.offset++;
	}
	rig_check(ret < 0 ? ret : 0, &err);
	sync_unlock_trees(&s->txn->sync);
	return n;
}

static uint64_t queued(struct scene *s)
{
	struct btrkit_write_stats stats;

	btrkit_fs_get_write_stats(s->fs, &stats);
	return stats.refs_queued;
}

static uint64_t leaves_of(struct scene *s, uint64_t root)
{
	uint64_t n;

	begin(s);
	n = copy_leaves(s, root);
	btrkit_txn_abort(s->txn);
	return n;
}

/* After this the tree has delayed changes. */
static struct bound bound_with(struct scene *s, uint64_t root)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_found found;
	struct bound b;

	rig_check(btrkit_txn_lookup(s->txn, root, TOP, "f0", 2, &found, &err), &err);
	sync_lock_trees(&s->txn->sync);
	rig_check(bound_begin(s->txn, &b, &err), &err);
	sync_unlock_trees(&s->txn->sync);
	return b;
}

static void check_promise(const char *what, uint64_t items, uint64_t taken, uint64_t promised)
{
	print_message("%s: %" PRIu64 " items, %" PRIu64 ", at the most %" PRIu64 "\n", what, items, taken, promised);
	assert_true(taken <= promised);
	assert_true(taken > promised / 2);
}

static void open_scene(struct scene *s, struct rig *r, const struct rig_kind *kind)
{
	rig_make(r, kind);
	s->fs = rig_open(r, BTRKIT_OPEN_WRITE, 0);
	make_files(s);
}

static void close_scene(struct scene *s, struct rig *r)
{
	rig_verify(r);
	btrkit_fs_close(s->fs);
	rig_destroy(r);
}

static void run_shared(const struct rig_kind *kind)
{
	struct delayed_amount items = { 0 };
	struct scene s = { 0 };
	uint64_t before;
	struct bound b;
	struct rig r;

	open_scene(&s, &r, kind);
	make_snapshot(&s);
	begin(&s);
	copy_leaves(&s, BTRKIT_TOP_LEVEL);
	commit(&s);
	items.items = (int64_t)leaves_of(&s, s.snapshot);
	items.leaves = items.items;
	begin(&s);
	b = bound_with(&s, s.snapshot);
	before = queued(&s);
	assert_int_equal(copy_leaves(&s, s.snapshot), items.items);
	check_promise("changes of references", (uint64_t)items.items, queued(&s) - before, bound_refs(&b, &items));
	commit(&s);
	close_scene(&s, &r);
}

/* Removes extents from every leaf until removing one more would merge it with a neighbour. */
static void thin_out(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_key at = KEY(0, 0, 0);
	const uint32_t third = leaf_room(s->fs->geometry.nodesize) / 3;
	struct tree_root root;
	struct root_item item;
	struct cursor c;
	int ret;

	begin(s);
	rig_check(fs_find_root(s->fs, BTRKIT_TOP_LEVEL, &root, &item, &err), &err);
	cursor_init(&c, s->fs, &root);
	while (!(ret = cursor_seek(&c, &at, &err))) {
		const struct node *leaf = c.nodes[0];
		uint32_t used = 0;

		for (uint32_t i = 0; i < leaf->nritems; i++)
			used += (uint32_t)sizeof(struct disk_item) + leaf_item(leaf, i).size;
		for (uint32_t i = 0; i < leaf->nritems; i++) {
			const struct item x = leaf_item(leaf, i);
			const uint32_t bytes = (uint32_t)sizeof(struct disk_item) + x.size;

			if (x.key.type != KEY_EXTENT_DATA || used - bytes < third)
				continue;
			rig_check(btrkit_txn_punch(s->txn, BTRKIT_TOP_LEVEL, x.key.objectid, x.key.offset, 4096, &err),
				  &err);
			used -= bytes;
		}
		at = node_key(leaf, leaf->nritems - 1);
		at.offset++;
	}
	cursor_release(&c);
	rig_check(ret < 0 ? ret : 0, &err);
	commit(s);
}

/* Removes an extent from every second leaf. @return the number of these leaves */
static uint64_t join_leaves(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_key at = KEY(0, 0, 0), keys[1000];
	uint64_t n = 0, leaves = 0;
	struct edit_tree *t;
	int ret;

	sync_lock_trees(&s->txn->sync);
	rig_check(txn_tree(s->txn, BTRKIT_TOP_LEVEL, &t, &err), &err);
	while (!(ret = cursor_seek(&t->c, &at, &err))) {
		const struct node *leaf = t->c.nodes[0];

		at = node_key(leaf, leaf->nritems - 1);
		if (leaves++ % 2 && at.type == KEY_EXTENT_DATA && n < ARRAY_SIZE(keys))
			keys[n++] = at;
		at.offset++;
	}
	rig_check(ret < 0 ? ret : 0, &err);
	for (uint64_t i = 0; i < n; i++)
		rig_check(edit_delete(t, &keys[i], &err), &err);
	sync_unlock_trees(&s->txn->sync);
	return n;
}

static void run_joined(const struct rig_kind *kind)
{
	struct delayed_amount items = { 0 };
	struct scene s = { 0 };
	struct bound b;
	struct rig r;

	open_scene(&s, &r, kind);
	thin_out(&s);
	begin(&s);
	b = bound_with(&s, BTRKIT_TOP_LEVEL);
	items.items = (int64_t)join_leaves(&s);
	items.leaves = items.items;
	check_promise("blocks", (uint64_t)items.items, s.txn->overlay->copied + s.txn->overlay->created,
		      bound_own(&b, &items));
	/* The leaves were merged. */
	assert_true(-overlay_open_tree(s.txn->overlay, BTRKIT_TOP_LEVEL)->blocks > items.items / 2);
	btrkit_txn_abort(s.txn);
	close_scene(&s, &r);
}

static void test_shared(void **state)
{
	static const struct rig_kind kinds[] = {
		{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 200 } },
		{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 16384, 0, 1, { 200 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		run_shared(&kinds[i]);
		run_joined(&kinds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
