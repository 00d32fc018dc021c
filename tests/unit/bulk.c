// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bulk builder must produce a tree of the items that were added, with full leaves and each block written once. */
#include "tests/unit/unit.h"

#include "lib/format/ids.h"
#include "lib/tree/bulk.h"

#define NODESIZE 4096u
#define BLOCKS_MAX 4096u
#define BASE (1ull << 20)

struct built {
	uint8_t *blocks[BLOCKS_MAX]; /* by (address - BASE) / NODESIZE */
	uint64_t level_start[LEVELS_MAX];
	uint64_t last[LEVELS_MAX]; /* index of the last block written, plus one */
};

static struct node_rules rules = { .fsid = "bulk builder...", .nodesize = NODESIZE, .sectorsize = 4096 };
static const struct item_ctx item_ctx = { .sectorsize = 4096, .nodesize = NODESIZE, .csum_size = 4, .generation = 9 };
static const uint8_t chunk_tree_uuid[16] = "chunks";

static int place(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	struct built *t = ctx;

	(void)err;
	assert_int_equal(index, t->last[level]);
	t->last[level]++;
	*bytenr = BASE + (t->level_start[level] + index) * NODESIZE;
	return 0;
}

static int keep_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	struct built *t = ctx;
	uint64_t i = (bytenr - BASE) / NODESIZE;

	(void)err;
	assert_true(i < BLOCKS_MAX);
	assert_null(t->blocks[i]);
	t->blocks[i] = malloc(NODESIZE);
	assert_non_null(t->blocks[i]);
	memcpy(t->blocks[i], block, NODESIZE);
	return 0;
}

static void forget(struct built *t)
{
	for (size_t i = 0; i < BLOCKS_MAX; i++)
		free(t->blocks[i]);
}

/* Items have an unknown type and pseudo-random sizes; item @i begins with its own number. */
static uint32_t size_of(unsigned i)
{
	return 4 + i * 2654435761u % 700;
}

static int add_items(struct bulk *b, unsigned n)
{
	uint8_t data[1024];
	int ret = 0;

	for (unsigned i = 0; i < n && !ret; i++) {
		memset(data, (int)i, sizeof(data));
		memcpy(data, &i, sizeof(i));
		ret = bulk_add(b, &KEY(256 + i / 7, 2, i), data, size_of(i), NULL);
	}
	return ret;
}

static struct bulk_config config_of(struct built *t)
{
	return (struct bulk_config){ .rules = &rules,
				     .items = &item_ctx,
				     .chunk_tree_uuid = chunk_tree_uuid,
				     .owner = OID_FS_TREE,
				     .generation = 9,
				     .place = t ? place : NULL,
				     .write = t ? keep_block : NULL,
				     .ctx = t };
}

static void run(const struct bulk_config *config, unsigned n, struct tree_root *root, uint64_t blocks[LEVELS_MAX])
{
	struct bulk *b;

	assert_int_equal(bulk_create(config, &b, NULL), 0);
	assert_int_equal(add_items(b, n), 0);
	assert_int_equal(bulk_finish(b, root, NULL), 0);
	for (unsigned level = 0; level < LEVELS_MAX; level++)
		blocks[level] = bulk_blocks(b, level);
	bulk_destroy(b);
}

/* Walks the blocks below @ref and counts the items, which must come in order. */
static void walk(const struct built *t, const struct node_ref *ref, unsigned *next)
{
	const uint8_t *block = t->blocks[(ref->bytenr - BASE) / NODESIZE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct node *n;

	assert_non_null(block);
	if (node_verify(&rules, ref, block, &err))
		fail_msg("%s", err.message);
	n = calloc(1, sizeof(*n) + NODESIZE);
	assert_non_null(n);
	n->data = (uint8_t *)(n + 1);
	memcpy(n->data, block, NODESIZE);
	n->level = node_header(n)->level;
	n->nritems = le32_get(node_header(n)->nritems);
	for (uint32_t i = 0; i < n->nritems; i++) {
		struct btrkit_key key;

		if (n->level) {
			struct node_ref child = node_child(n, i, OID_FS_TREE, &key);

			walk(t, &child, next);
		} else {
			struct item item = leaf_item(n, i);

			assert_int_equal(item.key.offset, *next);
			assert_int_equal(item.size, size_of(*next));
			assert_memory_equal(item.data, next, sizeof(*next));
			(*next)++;
		}
	}
	free(n);
}

static void items_come_back(void **state)
{
	static const unsigned counts[] = { 0, 1, 2, 11, 12, 100, 1000, 12000 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
		static struct built t;
		const struct bulk_config counting = config_of(NULL);
		struct bulk_config writing;
		uint64_t planned[LEVELS_MAX], written[LEVELS_MAX], at = 0;
		struct tree_root root;
		struct node_ref ref;
		unsigned next = 0;

		t = (struct built){ 0 };
		run(&counting, counts[k], &root, planned);
		for (unsigned level = 0; level < LEVELS_MAX; level++) {
			t.level_start[level] = at;
			at += planned[level];
		}
		writing = config_of(&t);
		run(&writing, counts[k], &root, written);
		assert_memory_equal(planned, written, sizeof(planned));
		ref = (struct node_ref){ root.bytenr, root.generation, root.id, root.level, NULL };
		walk(&t, &ref, &next);
		assert_int_equal(next, counts[k]);
		assert_int_equal(written[root.level], 1);
		if (counts[k] == 12000)
			assert_true(root.level >= 2);
		forget(&t);
	}
}

/* No leaf but the last may have room for the item after it. */
static void leaves_are_full(void **state)
{
	static struct built t;
	struct bulk_config config = config_of(&t);
	uint64_t blocks[LEVELS_MAX];
	struct tree_root root;
	unsigned next = 0;

	(void)state;
	t = (struct built){ .level_start = { 0, 2000, 3000 } };
	run(&config, 5000, &root, blocks);
	for (uint64_t i = 0; i + 1 < blocks[0]; i++) {
		const struct disk_header *h = (const struct disk_header *)t.blocks[i];
		const struct disk_item *items = (const struct disk_item *)(h + 1);
		uint32_t n = le32_get(h->nritems);

		next += n;
		assert_true(le32_get(items[n - 1].offset) < (n + 1) * sizeof(*items) + size_of(next));
	}
	forget(&t);
}

static void mistakes_are_refused(void **state)
{
	static struct built t;
	struct bulk_config config = config_of(&t);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t data[NODESIZE] = { 0 };
	struct bulk *b;

	(void)state;
	t = (struct built){ 0 };
	assert_int_equal(bulk_create(&config, &b, NULL), 0);
	assert_int_equal(bulk_add(b, &KEY(300, 2, 0), data, 8, NULL), 0);
	assert_int_equal(bulk_add(b, &KEY(300, 2, 0), data, 8, &err), -EINVAL);
	assert_int_equal(bulk_add(b, &KEY(299, 2, 9), data, 8, &err), -EINVAL);
	assert_int_equal(bulk_add(b, &KEY(301, 2, 0), data, NODESIZE - 101 - 24, &err), -EINVAL);
	assert_int_equal(bulk_add(b, &KEY(301, 2, 0), data, NODESIZE - 101 - 25, &err), 0);
	/* Zeros of this length are too short for an inode item. */
	assert_int_equal(bulk_add(b, &KEY(302, KEY_INODE_ITEM, 0), data, 8, &err), -EUCLEAN);
	assert_int_equal(err.key.objectid, 302);
	bulk_destroy(b);
	forget(&t);
}

static int refuse_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	(void)ctx;
	(void)bytenr;
	(void)block;
	(void)err;
	return -EIO;
}

static void failing_writes_are_told(void **state)
{
	static struct built t;
	struct bulk_config config = config_of(&t);
	struct tree_root root;
	struct bulk *b;

	(void)state;
	t = (struct built){ 0 };
	config.write = refuse_block;
	assert_int_equal(bulk_create(&config, &b, NULL), 0);
	assert_int_equal(add_items(b, 100), -EIO);
	bulk_destroy(b);
	t = (struct built){ 0 };
	assert_int_equal(bulk_create(&config, &b, NULL), 0);
	assert_int_equal(bulk_finish(b, &root, NULL), -EIO);
	bulk_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_back),
		cmocka_unit_test(leaves_are_full),
		cmocka_unit_test(mistakes_are_refused),
		cmocka_unit_test(failing_writes_are_told),
	};

	rules.csum = csum_kind_find(0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
