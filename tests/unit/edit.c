// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Edits of a tree, compared with a sorted array: after random batches both have the same items, every block is valid
 * for a reader, and each block of the tree has been allocated once and not freed.
 */
#include "tests/unit/unit.h"

#include <btrkit/mkfs.h>

#include "lib/tree/edit.h"
#include "tests/random.h"

#define TREE 9 /* not shareable, and empty */
#define ITEMS_MAX 6000u
#define BLOCKS_MAX (1u << 16)

struct model_item {
	struct btrkit_key key;
	uint32_t size;
	uint32_t seed;
};

struct world {
	struct btrkit_fs *fs;
	struct failure failure;
	struct overlay *o;
	struct edit_tree *t;
	uint32_t nodesize;
	/* The allocator, with addresses far from all others. */
	uint64_t next;
	int8_t refs[BLOCKS_MAX];
	int64_t fail_after; /* number of allocations before one fails; negative: never */
	struct model_item items[ITEMS_MAX];
	uint32_t n;
	uint64_t random;
};

#define BASE (1ull << 40)

static int take(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		struct btrkit_error *err)
{
	struct world *w = ctx;

	(void)level;
	(void)first;
	(void)err;
	assert_int_equal(owner, TREE);
	if (!w->fail_after--)
		return -ENOSPC;
	assert_true(w->next < BLOCKS_MAX);
	w->refs[w->next] = 1;
	*bytenr = BASE + w->next++ * w->nodesize;
	return 0;
}

static int change(void *ctx, const struct extent_change *c, struct btrkit_error *err)
{
	struct world *w = ctx;

	(void)err;
	assert_int_equal(c->ref.root, TREE);
	assert_int_equal(c->ref.type, KEY_TREE_BLOCK_REF);
	w->refs[(c->bytenr - BASE) / w->nodesize] += (int8_t)c->add;
	return 0;
}

static const struct overlay_ops ops = { .alloc = take, .change = change };

static uint64_t roll(struct world *w, uint64_t below)
{
	random_step(&w->random);
	return (w->random >> 33) % below;
}

static struct world *create(uint32_t nodesize, uint64_t seed)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct world *w = calloc(1, sizeof(*w));
	struct btrkit_io *io;

	assert_non_null(w);
	w->nodesize = opts.nodesize = nodesize;
	w->random = seed;
	w->fail_after = -1;
	assert_int_equal(btrkit_io_memory(200ull << 20, &io, NULL), 0);
	assert_int_equal(btrkit_mkfs(&io, 1, &opts, NULL, NULL), 0);
	assert_int_equal(btrkit_fs_open(&io, 1, NULL, &w->fs, NULL), 0);
	failure_init(&w->failure);
	assert_int_equal(overlay_create(w->fs, w->fs->super.generation + 1, &ops, w, &w->failure, &w->o, NULL), 0);
	assert_int_equal(overlay_new_tree(w->o, TREE, &w->t, NULL), 0);
	return w;
}

static void destroy(struct world *w)
{
	overlay_abort(w->o);
	btrkit_fs_close(w->fs);
	free(w);
}

static const uint8_t *bytes_of(const struct model_item *m)
{
	static uint8_t bytes[65536];

	for (uint32_t i = 0; i < m->size; i++)
		bytes[i] = (uint8_t)(m->seed * 31 + i * 7 + (i >> 8));
	return bytes;
}

static uint32_t model_find(const struct world *w, const struct btrkit_key *key)
{
	uint32_t low = 0, high = w->n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (key_cmp(&w->items[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool model_has(const struct world *w, const struct btrkit_key *key)
{
	uint32_t at = model_find(w, key);

	return at < w->n && !key_cmp(&w->items[at].key, key);
}

static void model_take_out(struct world *w, uint32_t at, uint32_t n)
{
	memmove(w->items + at, w->items + at + n, (w->n - at - n) * sizeof(*w->items));
	w->n -= n;
}

static void model_put(struct world *w, const struct model_item *m)
{
	uint32_t at = model_find(w, &m->key);

	memmove(w->items + at + 1, w->items + at, (w->n - at) * sizeof(*w->items));
	w->items[at] = *m;
	w->n++;
}

static struct btrkit_key some_key(struct world *w)
{
	return KEY(256 + roll(w, 40), 2, roll(w, 2000));
}

/* Mostly small, sometimes the maximum. */
static uint32_t some_size(struct world *w)
{
	const uint32_t room = leaf_room(w->nodesize) - (uint32_t)sizeof(struct disk_item);

	switch (roll(w, 40)) {
	case 0:
		return room;
	case 1:
		return (uint32_t)roll(w, room);
	case 2:
		return 0;
	default:
		return (uint32_t)roll(w, 200);
	}
}

static void insert_some(struct world *w)
{
	struct model_item m = { some_key(w), some_size(w), (uint32_t)roll(w, 1000) };
	bool there = model_has(w, &m.key);

	if (w->n == ITEMS_MAX)
		return;
	assert_int_equal(edit_insert(w->t, &m.key, bytes_of(&m), m.size, NULL), there ? -EEXIST : 0);
	if (!there)
		model_put(w, &m);
}

static void insert_many(struct world *w)
{
	static struct item items[300];
	struct btrkit_key key = some_key(w);
	const uint32_t step = (uint32_t)roll(w, 3), want = (uint32_t)roll(w, ARRAY_SIZE(items));
	uint32_t n = 0;

	for (uint32_t i = 0; i < want && w->n + n < ITEMS_MAX; i++) {
		struct model_item m = { key, some_size(w), (uint32_t)roll(w, 1000) };
		uint8_t *data;

		key.offset += 1 + roll(w, step + 1);
		if (model_has(w, &m.key))
			continue;
		data = malloc(m.size + 1);
		assert_non_null(data);
		memcpy(data, bytes_of(&m), m.size);
		items[n++] = (struct item){ m.key, data, m.size };
		model_put(w, &m);
	}
	assert_int_equal(edit_insert_many(w->t, items, n, NULL), 0);
	for (uint32_t i = 0; i < n; i++)
		free((void *)items[i].data);
}

static void delete_some(struct world *w)
{
	struct btrkit_key key = some_key(w);

	if (roll(w, 4) && w->n)
		key = w->items[roll(w, w->n)].key;
	assert_int_equal(edit_delete(w->t, &key, NULL), model_has(w, &key) ? 0 : -ENOENT);
	if (model_has(w, &key))
		model_take_out(w, model_find(w, &key), 1);
}

static int count_gone(void *ctx, const struct item *item, struct btrkit_error *err)
{
	const struct model_item **at = ctx;

	(void)err;
	assert_int_equal(key_cmp(&item->key, &(*at)->key), 0);
	assert_int_equal(item->size, (*at)->size);
	assert_memory_equal(item->data, bytes_of(*at), item->size);
	++*at;
	return 0;
}

/* Deletes consecutive items, or all but one of them. */
static void delete_many(struct world *w)
{
	static struct btrkit_key keys[ITEMS_MAX];
	const uint32_t from = (uint32_t)roll(w, w->n + 1), most = w->n - from < 400 ? w->n - from : 400;
	const uint32_t n = (uint32_t)roll(w, most + 1), left = roll(w, 2) ? (uint32_t)roll(w, n + 1) : n;
	const struct model_item *at = w->items + from;
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i != left)
			keys[k++] = w->items[from + i].key;
	for (size_t i = 0, taken; i < k; i += taken) {
		at += at == w->items + from + left;
		/* Deletes the items of one leaf; the item to keep may be between them. */
		assert_int_equal(edit_delete_many(w->t, keys + i, k - i, count_gone, &at, &taken, NULL), 0);
		assert_true(taken && taken <= k - i);
	}
	if (left < n) {
		w->items[from] = w->items[from + left];
		model_take_out(w, from + 1, n - 1);
	} else {
		model_take_out(w, from, n);
	}
}

static void delete_range(struct world *w)
{
	struct btrkit_key first = some_key(w), last = first;
	uint64_t count;
	uint32_t from, to;

	last.offset += roll(w, 300);
	if (!roll(w, 12))
		last.objectid += roll(w, 6);
	from = model_find(w, &first);
	to = model_find(w, &last);
	if (model_has(w, &last))
		to++;
	assert_int_equal(edit_delete_range(w->t, &first, &last, &count, NULL), 0);
	assert_int_equal(count, to - from);
	model_take_out(w, from, to - from);
}

static void replace_some(struct world *w)
{
	struct model_item *m;
	uint8_t *data;
	uint32_t size;

	if (!w->n)
		return;
	m = &w->items[roll(w, w->n)];
	if (roll(w, 3)) {
		m->size = some_size(w);
		m->seed++;
		assert_int_equal(edit_replace(w->t, &m->key, bytes_of(m), m->size, NULL), 0);
	} else if (m->size && roll(w, 2)) {
		m->size = (uint32_t)roll(w, m->size);
		assert_int_equal(edit_replace(w->t, &m->key, NULL, m->size, NULL), 0);
	} else {
		m->seed++;
		assert_int_equal(edit_bytes(w->t, &m->key, &data, &size, NULL), 0);
		assert_int_equal(size, m->size);
		memcpy(data, bytes_of(m), m->size);
	}
}

static void rekey_some(struct world *w)
{
	struct btrkit_key to;
	uint32_t at;
	bool fits;

	if (!w->n)
		return;
	at = (uint32_t)roll(w, w->n);
	to = w->items[at].key;
	to.offset += roll(w, 7) - 3;
	fits = (!at || key_cmp(&w->items[at - 1].key, &to) < 0) &&
	       (at + 1 == w->n || key_cmp(&to, &w->items[at + 1].key) < 0);
	assert_int_equal(edit_rekey(w->t, &w->items[at].key, &to, NULL), fits ? 0 : -EINVAL);
	if (fits)
		w->items[at].key = to;
}

static int seal_all(struct world *w, struct btrkit_error *err)
{
	struct sort_entry *blocks;
	size_t n;
	int ret;

	assert_int_equal(overlay_blocks(w->o, &blocks, &n, err), 0);
	ret = 0;
	for (size_t i = 0; !ret && i < n; i++) {
		struct node *node = blocks[i].what;

		assert_true(!i || blocks[i].number > blocks[i - 1].number);
		assert_int_equal(node->bytenr, blocks[i].number);
		assert_int_equal(w->refs[(node->bytenr - BASE) / w->nodesize], 1);
		ret = overlay_seal(w->o, node, err);
	}
	free(blocks);
	return ret;
}

static void compare(struct world *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cursor c;
	char line[400];
	uint32_t i = 0;
	int64_t live = 0;
	int ret;

	ret = seal_all(w, &err);
	if (ret)
		fail_msg("%s", btrkit_error_format(&err, line, sizeof(line)));
	for (uint64_t b = 0; b < w->next; b++) {
		assert_true(w->refs[b] == 0 || w->refs[b] == 1);
		live += w->refs[b];
	}
	assert_int_equal(live, w->o->num_nodes);
	assert_int_equal(live, w->t->blocks);
	cursor_init(&c, w->fs, &w->t->c.root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(&c, NULL), i++) {
		assert_true(i < w->n);
		assert_int_equal(key_cmp(&c.item.key, &w->items[i].key), 0);
		assert_int_equal(c.item.size, w->items[i].size);
		assert_memory_equal(c.item.data, bytes_of(&w->items[i]), c.item.size);
	}
	assert_int_equal(ret, 1);
	assert_int_equal(i, w->n);
	cursor_release(&c);
}

static void (*const edits[])(struct world *w) = { insert_some, insert_some, insert_some,  insert_many, delete_some,
						  delete_some, replace_some, rekey_some, delete_range, delete_many };

static void run(uint32_t nodesize, uint64_t seed)
{
	struct world *w = create(nodesize, seed);
	const struct btrkit_key all = KEY(UINT64_MAX, 255, UINT64_MAX);
	uint64_t count;

	for (unsigned i = 0; i < 4000; i++) {
		edits[roll(w, ARRAY_SIZE(edits))](w);
		if (!(i % 97))
			compare(w);
	}
	compare(w);
	assert_int_equal(edit_delete_range(w->t, &KEY(0, 0, 0), &all, &count, NULL), 0);
	assert_int_equal(count, w->n);
	w->n = 0;
	compare(w);
	assert_int_equal(w->o->num_nodes, 1);
	assert_int_equal(w->t->c.root.level, 0);
	destroy(w);
}

static void test_random_4k(void **state)
{
	(void)state;
	run(4096, 1);
	run(4096, 2);
}

static void test_random_16k(void **state)
{
	(void)state;
	run(16384, 3);
}

static void test_random_64k(void **state)
{
	(void)state;
	run(65536, 4);
}

/* In order, one by one and in batches: leaves must become full. */
static void test_in_order(void **state)
{
	static struct item items[5000];
	uint8_t data[100] = { 1 };
	struct world *w = create(4096, 1);
	const uint32_t each = sizeof(data) + sizeof(struct disk_item), fit = leaf_room(4096) / each;
	const uint32_t leaves = (ARRAY_SIZE(items) + fit - 1) / fit;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(items); i++) {
		items[i] = (struct item){ KEY(300, 2, i), data, sizeof(data) };
		assert_int_equal(edit_insert(w->t, &items[i].key, data, sizeof(data), NULL), 0);
	}
	assert_in_range(w->t->blocks, leaves, leaves + leaves / 100 + 3);
	for (uint32_t i = 0; i < ARRAY_SIZE(items); i++)
		items[i].key.objectid = 299;
	assert_int_equal(edit_insert_many(w->t, items, ARRAY_SIZE(items), NULL), 0);
	assert_in_range(w->t->blocks, 2 * leaves, 2 * leaves + leaves / 50 + 6);
	destroy(w);
}

static void test_arguments(void **state)
{
	const uint32_t room = leaf_room(4096);
	struct world *w = create(4096, 1);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct item pair[2] = { { KEY(300, 2, 2), NULL, 0 }, { KEY(300, 2, 1), NULL, 0 } };
	uint8_t *data = calloc(1, room);
	size_t taken;

	(void)state;
	assert_non_null(data);
	assert_int_equal(edit_insert(w->t, &KEY(1, 2, 3), data, room, &err), -EINVAL);
	assert_int_equal(edit_insert_many(w->t, pair, 2, &err), -EINVAL);
	assert_int_equal(edit_insert(w->t, &KEY(1, 2, 3), data, 8, &err), 0);
	assert_int_equal(edit_insert(w->t, &KEY(1, 2, 3), data, 8, &err), -EEXIST);
	assert_int_equal(edit_replace(w->t, &KEY(1, 2, 3), NULL, 9, &err), -EINVAL);
	assert_int_equal(edit_delete(w->t, &KEY(1, 2, 4), &err), -ENOENT);
	assert_int_equal(edit_delete_many(w->t, &KEY(1, 2, 4), 1, count_gone, NULL, &taken, &err), -ENOENT);
	assert_int_equal(edit_rekey(w->t, &KEY(1, 2, 4), &KEY(1, 2, 5), &err), -ENOENT);
	/* None of these calls changed anything. */
	assert_false(failure_is_set(&w->failure));
	/* An item that its own validator rejects is found when the block is sealed. */
	assert_int_equal(edit_insert(w->t, &KEY(256, KEY_ROOT_ITEM, 0), data, 8, &err), 0);
	assert_int_equal(seal_all(w, &err), -EUCLEAN);
	assert_int_equal(err.tree, TREE);
	free(data);
	destroy(w);
}

/* A failed allocation in the middle of an edit leaves a state that can be aborted. */
static void test_no_space(void **state)
{
	uint8_t data[1000] = { 0 };

	(void)state;
	for (int64_t after = 0; after < 12; after++) {
		struct world *w = create(4096, 1);
		struct tree_root root = w->fs->root_tree;
		int ret = 0;

		w->fail_after = after;
		for (uint32_t i = 0; !ret && i < 100; i++)
			ret = edit_insert(w->t, &KEY(300, 2, i * 7 % 100), data, sizeof(data), NULL);
		assert_int_equal(ret, -ENOSPC);
		assert_true(failure_is_set(&w->failure));
		assert_int_equal(w->fs->root_tree.bytenr, root.bytenr);
		destroy(w);
	}
}

/* A leaf is full, and the pointer next to its own leads to a node: no items may be moved there. */
static void test_wrong_neighbour(void **state)
{
	static uint8_t data[100];
	const uint32_t count = 8000, step = 16;
	struct world *w = create(4096, 1);

	(void)state;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(edit_insert(w->t, &KEY(i * step, 2, 3), data, sizeof(data), NULL), 0);
	assert_int_equal(w->t->c.root.level, 2);
	for (unsigned right = 0; right < 2; right++) {
		const uint32_t at = count - 400 + 200 * right; /* below a node that has room */
		struct disk_key_ptr *ptrs;
		struct node *leaf, *above;
		uint32_t size, slot;
		le64 before;
		uint8_t *found;

		assert_int_equal(edit_bytes(w->t, &KEY(at * step, 2, 3), &found, &size, NULL), 0);
		leaf = w->t->c.nodes[0];
		above = w->t->c.nodes[1];
		slot = w->t->c.slots[1] + (right ? 1 : -1);
		assert_in_range(slot, 0, above->nritems - 1);
		ptrs = (struct disk_key_ptr *)(above->data + sizeof(struct disk_header));
		before = ptrs[slot].blockptr;
		ptrs[slot].blockptr = le64_put(above->bytenr);
		for (uint32_t i = 1; i < 12; i++) {
			const struct btrkit_key last = node_key(leaf, leaf->nritems - 2);

			assert_int_equal(edit_insert(w->t, &KEY(last.objectid + 1, 2, i), data, sizeof(data), NULL), 0);
		}
		for (uint32_t i = 0; i < above->nritems; i++)
			if (le64_get(ptrs[i].blockptr) == above->bytenr)
				ptrs[i].blockptr = before;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size;
		uint8_t *found;

		assert_int_equal(edit_bytes(w->t, &KEY(i * step, 2, 3), &found, &size, NULL), 0);
		assert_int_equal(size, sizeof(data));
	}
	destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_4k), cmocka_unit_test(test_random_16k), cmocka_unit_test(test_random_64k),
		cmocka_unit_test(test_in_order),  cmocka_unit_test(test_arguments),  cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_wrong_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
