// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates and removes chunks in a transaction on new filesystems: after each step the chunk tree, device tree, block
 * groups, free space tree, superblock and the groups in memory must agree on the chunks.
 */
#include "tests/unit/unit.h"

#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/devices/dev.h"
#include "lib/space/chunk.h"
#include "lib/space/free_space_tree.h"
#include "lib/tree/edit.h"
#include "tests/unit/memory.h"
#include "tests/unit/written.h"

#define MIB (1ull << 20)

struct world {
	struct written bytes;
	struct btrkit_fs *fs;
	struct space *space;
	struct failure failure;
	struct overlay *o;
	struct disk_super super;
	bool tree; /* free space tree */
	uint64_t blocks;
};

/* These tests do not track freed blocks. */
static int take_block(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		      struct btrkit_error *err)
{
	struct world *w = ctx;
	const uint32_t size = w->fs->geometry.nodesize;
	struct range r;
	int ret;

	(void)level;
	(void)first;
	ret = space_alloc(w->space, owner == OID_CHUNK_TREE ? BG_SYSTEM : BG_METADATA, size, size, size, &r, err);
	if (ret)
		return ret;
	*bytenr = r.start;
	w->blocks++;
	return 0;
}

static int change(void *ctx, const struct extent_change *c, struct btrkit_error *err)
{
	(void)ctx;
	(void)c;
	(void)err;
	return 0;
}

static const struct overlay_ops ops = { .alloc = take_block, .change = change };

static void begin(struct world *w)
{
	failure_init(&w->failure);
	assert_int_equal(overlay_create(w->fs, w->fs->super.generation + 1, &ops, w, &w->failure, &w->o, NULL), 0);
	assert_int_equal(space_begin(w->space, w->o, NULL), 0);
	w->super = w->fs->super.disk;
}

static void open_world(struct world *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	w->fs = written_open(&w->bytes, BTRKIT_OPEN_WRITE);
	written_check(space_create(w->fs, &w->space, &err), &err);
	begin(w);
}

static void close_world(struct world *w)
{
	overlay_abort(w->o);
	space_aborted(w->space);
	space_destroy(w->space);
	btrkit_fs_close(w->fs);
}

static void create(struct world *w, const struct btrkit_mkfs_options *o, uint64_t size)
{
	*w = (struct world){ .tree = o->compat_ro & COMPAT_RO_FREE_SPACE_TREE };
	written_make(&w->bytes, o, size);
	open_world(w);
}

static void destroy(struct world *w)
{
	close_world(w);
	written_destroy(&w->bytes);
}

static void find(struct cursor *c, struct btrkit_key key)
{
	if (cursor_find(c, &key, NULL))
		fail_msg("no (%llu %u %llu) in tree %llu", (unsigned long long)key.objectid, key.type,
			 (unsigned long long)key.offset, (unsigned long long)c->root.id);
}

static void tree_cursor(struct world *w, uint64_t id, struct cursor *c)
{
	struct tree_root root = w->fs->chunk_tree;

	if (id != OID_CHUNK_TREE)
		assert_int_equal(fs_find_root(w->fs, id, &root, NULL, NULL), 0);
	cursor_init(c, w->fs, &root);
}

static size_t count_items(struct world *w, uint64_t tree, uint8_t type)
{
	struct cursor c;
	size_t n = 0;
	int ret;

	tree_cursor(w, tree, &c);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(&c, NULL))
		n += c.item.key.type == type;
	assert_int_equal(ret, 1);
	cursor_release(&c);
	return n;
}

/* Compares the item of a chunk, and its device extents, with the volume. @return bytes on the device */
static uint64_t expect_chunk(struct world *w, const struct volume_chunk *v, struct cursor *chunks,
			     struct cursor *devices)
{
	struct dev_extent e;
	struct chunk chunk;

	find(chunks, KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, v->logical));
	assert_int_equal(chunk_decode(&w->fs->items, &chunks->item, &chunk, NULL), 0);
	assert_int_equal(chunk.length, v->length);
	assert_int_equal(chunk.type, v->type);
	assert_int_equal(chunk.num_stripes, v->num_stripes);
	assert_int_equal(chunk.sub_stripes, 1);
	for (unsigned i = 0; i < v->num_stripes; i++) {
		assert_int_equal(le64_get(chunk.stripes[i].offset), v->stripes[i].physical);
		assert_memory_equal(chunk.stripes[i].dev_uuid, w->fs->super.dev_uuid, 16);
		find(devices, KEY(1, KEY_DEV_EXTENT, v->stripes[i].physical));
		assert_int_equal(dev_extent_decode(&w->fs->items, &devices->item, &e, NULL), 0);
		assert_int_equal(e.chunk_offset, v->logical);
		assert_int_equal(e.length, v->length);
		assert_memory_equal(devices->item.data + 32,
				    node_header(cursor_leaf(chunks))->chunk_tree_uuid, 16);
	}
	return v->length * v->num_stripes;
}

/* System chunks are in the superblock too, and no other chunks. */
static void expect_array(struct world *w)
{
	struct super super = { .disk = w->super };
	const struct item_ctx *ctx = &w->fs->items;
	struct volume *v = w->fs->volume;
	struct chunk chunk;
	struct item item;
	uint32_t pos = 0;
	size_t system = 0;

	while (!super_next_chunk(&super, &pos, &item, NULL)) {
		assert_int_equal(chunk_decode(ctx, &item, &chunk, NULL), 0);
		/* Adding the same chunk again succeeds only if both are equal. */
		assert_true(volume_find_chunk(v, chunk.logical) < volume_num_chunks(v));
		assert_int_equal(volume_add_chunk(v, &chunk, NULL), 0);
		system++;
	}
	/* The rest of the array must be zero. */
	for (uint32_t i = le32_get(w->super.sys_chunk_array_size); i < SUPER_SYS_CHUNKS_SIZE; i++)
		assert_int_equal(w->super.sys_chunk_array[i], 0);
	for (size_t i = 0; i < volume_num_chunks(v); i++)
		system -= !!(volume_chunk(v, i)->type & BG_SYSTEM);
	assert_int_equal(system, 0);
}

static void expect_free_space(struct world *w, const struct block_groups *groups)
{
	struct free_space_tree t;

	assert_int_equal(free_space_tree_begin(&t, w->fs, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < groups->n; i++) {
		const struct block_group *g = &groups->at[i];
		uint64_t free = 0;
		struct range r;
		int ret;

		assert_int_equal(free_space_tree_enter(&t, g, NULL), 0);
		while (!(ret = free_space_tree_next(&t, &r, NULL)))
			free += r.length;
		assert_int_equal(ret, 1);
		assert_int_equal(free, g->length - g->used);
	}
	assert_int_equal(free_space_tree_end(&t, NULL), 0);
	assert_int_equal(t.leftovers + t.outside, 0);
	free_space_tree_release(&t);
}

static void check_all(struct world *w)
{
	struct volume *v = w->fs->volume;
	struct cursor chunks, devices;
	struct block_groups groups;
	struct dev_item dev;
	uint64_t used = 0;
	size_t stripes = 0, at = 0;

	tree_cursor(w, OID_CHUNK_TREE, &chunks);
	tree_cursor(w, OID_DEV_TREE, &devices);
	/* Loading fails unless each chunk has its block group. */
	assert_int_equal(block_groups_load(w->fs, &groups, NULL), 0);
	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		const struct volume_chunk *c = volume_chunk(v, i);
		const struct space_group *g = space_group_of(w->space, c->logical);

		used += expect_chunk(w, c, &chunks, &devices);
		stripes += c->num_stripes;
		assert_false(g->removed);
		assert_int_equal(g->item.start, c->logical);
		assert_int_equal(g->item.length, c->length);
		assert_int_equal(groups.at[i].chunk_objectid, OID_FIRST_CHUNK_TREE);
	}
	find(&chunks, KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 1));
	assert_int_equal(dev_item_decode(&chunks.item, &dev, NULL), 0);
	assert_int_equal(dev.bytes_used, used);
	assert_memory_equal(chunks.item.data, &w->super.dev_item, sizeof(w->super.dev_item));
	assert_int_equal(count_items(w, OID_CHUNK_TREE, KEY_CHUNK_ITEM), groups.n);
	assert_int_equal(count_items(w, OID_DEV_TREE, KEY_DEV_EXTENT), stripes);
	assert_int_equal(count_items(w, groups.tree, KEY_BLOCK_GROUP_ITEM), groups.n);
	expect_array(w);
	if (w->tree)
		expect_free_space(w, &groups);
	for (size_t i = 0; i < space_num_groups(w->space); i++)
		at += !space_group_at(w->space, i)->removed;
	assert_int_equal(at, groups.n);
	block_groups_release(&groups);
	cursor_release(&chunks);
	cursor_release(&devices);
}

static int make(struct world *w, uint64_t type, struct space_group **ret)
{
	struct chunk_plan plan;
	int r = chunk_plan(w->space, type, &plan, NULL);

	return r ? r : chunk_create(w->space, &plan, &w->super, ret, NULL);
}

static void make_options(unsigned i, struct btrkit_mkfs_options *o)
{
	*o = (struct btrkit_mkfs_options)BTRKIT_MKFS_OPTIONS_INIT;
	if (i & 1)
		o->compat_ro = 0;
	else if (i & 2)
		o->compat_ro = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;
	o->mixed = i >= 6;
	o->nodesize = i & 2 ? 4096 : 0;
	o->data = i & 4 ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE;
	o->metadata = o->mixed ? o->data : i & 2 ? BTRKIT_PROFILE_SINGLE : BTRKIT_PROFILE_DUP;
}

/* Creates chunks until the device is full, then removes all empty ones; an abort restores the state before. */
static void chunks_come_and_go(void **state)
{
	static const uint64_t types[] = { BG_DATA, BG_METADATA, BG_SYSTEM };

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct btrkit_mkfs_options o;
		size_t before, made = 0, gone = 0;
		struct space_group *g;
		struct world w;
		struct range r;
		int ret = 0;

		make_options(i, &o);
		create(&w, &o, 400 * MIB);
		check_all(&w);
		before = volume_num_chunks(w.fs->volume);
		for (unsigned k = 0; !ret; k++) {
			ret = make(&w, types[k % 3], &g);
			made += !ret;
			if (ret || k < 6)
				check_all(&w);
		}
		assert_int_equal(ret, -ENOSPC);
		assert_true(made >= 3);
		for (size_t k = 0; k < space_num_groups(w.space); k++) {
			ret = chunk_remove(w.space, space_group_at(w.space, k), &w.super, NULL);
			assert_true(!ret || ret == -EBUSY);
			gone += !ret;
			if (k < 6)
				check_all(&w);
		}
		check_all(&w);
		assert_true(gone >= 2 && volume_num_chunks(w.fs->volume) == before + made - gone);
		/* The space of removed chunks is not free before the commit, neither for chunks nor for extents. */
		assert_int_equal(make(&w, BG_DATA, &g), -ENOSPC);
		for (unsigned k = 0; k < 3; k++)
			while (!space_alloc(w.space, types[k], MIB, MIB, MIB, &r, NULL))
				assert_false(space_group_of(w.space, r.start)->removed);

		overlay_abort(w.o);
		space_aborted(w.space);
		begin(&w);
		assert_int_equal(volume_num_chunks(w.fs->volume), before);
		check_all(&w);
		assert_int_equal(make(&w, BG_DATA, &g), 0);
		check_all(&w);
		destroy(&w);
	}
}

static void what_is_not_empty_stays(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct space_group *g, *more;
	struct world w;
	struct range r;

	(void)state;
	create(&w, &o, 400 * MIB);
	for (size_t i = 0; i < space_num_groups(w.space); i++)
		assert_int_equal(chunk_remove(w.space, space_group_at(w.space, i), &w.super, NULL), -EBUSY);
	assert_int_equal(make(&w, BG_DATA, &g), 0);
	assert_int_equal(make(&w, BG_DATA, &more), 0);
	/* Space of a chunk that is allocated, used, and then pinned keeps the chunk from being removed. */
	do
		assert_int_equal(space_alloc(w.space, BG_DATA, MIB, MIB, MIB, &r, NULL), 0);
	while (space_group_of(w.space, r.start) != g);
	assert_int_equal(chunk_remove(w.space, g, &w.super, NULL), -EBUSY);
	assert_int_equal(space_enter(w.space, &r, NULL), 0);
	assert_int_equal(chunk_remove(w.space, g, &w.super, NULL), -EBUSY);
	assert_int_equal(space_leave(w.space, &r, NULL), 0);
	assert_int_equal(chunk_remove(w.space, g, &w.super, NULL), -EBUSY);
	assert_int_equal(chunk_remove(w.space, more, &w.super, NULL), 0);
	assert_int_equal(chunk_remove(w.space, more, &w.super, NULL), -EBUSY);
	assert_null(more->pinned);
	check_all(&w);
	destroy(&w);
}

/*
 * The array in the superblock fills up before the device does: the creation must then fail without changing anything.
 */
static void the_array_can_be_full(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct space_group *g;
	struct chunk_plan plan;
	struct disk_super before;
	struct world w;
	int ret = 0;

	(void)state;
	o.metadata = BTRKIT_PROFILE_SINGLE;
	create(&w, &o, 800 * MIB);
	while (!ret)
		ret = make(&w, BG_SYSTEM, &g);
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(chunk_plan(w.space, BG_SYSTEM, &plan, NULL), 0);
	assert_int_equal(volume_num_chunks(w.fs->volume), 2 + 2048 / (17 + 48 + 32));
	before = w.super;
	assert_int_equal(chunk_create(w.space, &plan, &w.super, &g, NULL), -ENOSPC);
	assert_memory_equal(&before, &w.super, sizeof(before));
	check_all(&w);
	destroy(&w);
}

/* A plan that collides with another chunk, and a chunk one of whose items is missing. */
static void contradictions_are_told(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct chunk_plan plan;
	struct space_group *g;
	struct edit_tree *t;
	struct world w;

	(void)state;
	create(&w, &o, 400 * MIB);
	assert_int_equal(chunk_plan(w.space, BG_DATA, &plan, NULL), 0);
	plan.logical -= MIB;
	assert_int_equal(chunk_create(w.space, &plan, &w.super, &g, NULL), -EUCLEAN);
	plan.logical += MIB;
	plan.stripes[0].physical = volume_chunk(w.fs->volume, 0)->stripes[0].physical;
	assert_int_equal(chunk_create(w.space, &plan, &w.super, &g, NULL), -EUCLEAN);
	overlay_abort(w.o);
	space_aborted(w.space);

	begin(&w);
	assert_int_equal(make(&w, BG_DATA, &g), 0);
	assert_int_equal(overlay_tree(w.o, OID_DEV_TREE, &t, NULL), 0);
	assert_int_equal(chunk_plan(w.space, BG_DATA, &plan, NULL), 0);
	assert_int_equal(cursor_seek_back(&t->c, &KEY(1, KEY_DEV_EXTENT, plan.stripes[0].physical), NULL), 0);
	assert_int_equal(edit_delete(t, &(struct btrkit_key){ t->c.item.key.objectid, t->c.item.key.type,
							       t->c.item.key.offset }, NULL), 0);
	assert_int_equal(chunk_remove(w.space, g, &w.super, NULL), -EUCLEAN);
	destroy(&w);
}

static int make_and_remove(struct world *w)
{
	struct space_group *system, *data;
	int ret = make(w, BG_SYSTEM, &system);

	if (!ret)
		ret = make(w, BG_DATA, &data);
	if (!ret)
		ret = chunk_remove(w->space, system, &w->super, NULL);
	return ret ? ret : chunk_remove(w->space, data, &w->super, NULL);
}

/* Each allocation fails in turn: after an abort the state must be the same as before. */
static void memory_runs_out(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	uint64_t made = 1, told = 0;
	struct world w;

	(void)state;
	create(&w, &o, 200 * MIB);
	for (uint64_t i = 0; made >= i; i++) {
		const size_t before = volume_num_chunks(w.fs->volume);
		int ret;

		memory_count(i, false);
		ret = make_and_remove(&w);
		made = memory_end();
		/* Each failure must be reported; in the last round none fails. */
		assert_true(!ret || ret == -ENOMEM);
		told += !!ret;
		overlay_abort(w.o);
		space_aborted(w.space);
		begin(&w);
		assert_int_equal(volume_num_chunks(w.fs->volume), before);
		check_all(&w);
		/* Open it again: cached blocks would not be allocated again. */
		close_world(&w);
		open_world(&w);
	}
	destroy(&w);
	printf("%llu of %llu failing allocations were reported\n", (unsigned long long)told, (unsigned long long)made);
	assert_true(told > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_come_and_go),
		cmocka_unit_test(what_is_not_empty_stays),
		cmocka_unit_test(the_array_can_be_full),
		cmocka_unit_test(contradictions_are_told),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
