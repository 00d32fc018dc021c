// SPDX-License-Identifier: LGPL-2.1-or-later
/* Conversions of damaged filesystems, on devices that write something else, and with almost no space. */
#include "tests/unit/convert_rig.h"

#include "lib/format/items/block_group.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "lib/volume/volume.h"

/* A device that modifies written blocks of the free space tree such that every block is still valid by itself. */
struct forger {
	struct btrkit_io io;
	struct btrkit_io *below;
	const struct node_rules *rules;
	bool forged;
};

static int forger_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct btrkit_io *below = ((struct forger *)io)->below;

	return below->ops->read(below, offset, buf, len);
}

/* Makes the first free range one sector shorter. */
static bool forge(const struct forger *f, uint8_t *block)
{
	struct disk_header *h = (struct disk_header *)block;
	struct disk_item *items = (struct disk_item *)(block + sizeof(*h));

	if (memcmp(h->fsid, f->rules->fsid, sizeof(h->fsid)) || le64_get(h->owner) != OID_FREE_SPACE_TREE || h->level)
		return false;
	for (uint32_t i = 0; i < le32_get(h->nritems); i++) {
		if (items[i].key.type != KEY_FREE_SPACE_EXTENT)
			continue;
		items[i].key.offset = le64_put(le64_get(items[i].key.offset) - f->rules->sectorsize);
		f->rules->csum->compute(h->fsid, f->rules->nodesize - sizeof(h->csum), h->csum);
		return true;
	}
	return false;
}

static int forger_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct forger *f = (struct forger *)io;
	uint8_t *copy = malloc(len);
	int ret;

	assert_non_null(copy);
	memcpy(copy, buf, len);
	for (size_t at = 0; f->rules && at + f->rules->nodesize <= len; at += f->rules->nodesize)
		f->forged |= forge(f, copy + at);
	ret = f->below->ops->write(f->below, offset, copy, len);
	free(copy);
	return ret;
}

static int forger_flush(struct btrkit_io *io)
{
	struct btrkit_io *below = ((struct forger *)io)->below;

	return below->ops->flush(below);
}

static void forger_close(struct btrkit_io *io)
{
	btrkit_io_close(((struct forger *)io)->below);
}

/* The written tree is verified before the superblock declares it valid. */
static void wrong_writes_are_found(void **state)
{
	static const struct btrkit_io_ops ops = {
		.read = forger_read, .write = forger_write, .flush = forger_flush, .close = forger_close
	};

	(void)state;
	for (unsigned v = 0; v < 8; v++) {
		struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct forger f = { .io = { .ops = &ops } };
		struct btrkit_io *io = &f.io;
		struct btrkit_space_summary sum;
		struct btrkit_fs *fs;
		struct written w;

		rig_make(&w, v);
		f.below = written_io(&w);
		f.io.size = f.below->size;
		written_check(btrkit_fs_open(&io, 1, &opts, &fs, &err), &err);
		f.rules = &fs->rules;
		assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, &err), -EUCLEAN);
		assert_true(f.forged);
		assert_non_null(strstr(err.message, "contradicts the extent tree"));
		assert_non_null(strstr(err.message, "is unchanged"));
		btrkit_fs_close(fs);
		/* The v1 cache has been removed already. */
		sum = rig_status(&w);
		assert_int_equal(sum.in_use, BTRKIT_SPACE_CACHE_NONE);
		rig_check_whole(&w);
		rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		rig_check_v2(&w);
		written_destroy(&w);
	}
}

/* Damage a tree that the superblock declares valid. */
static void forge_on_disk(struct written *w, bool destroy)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);
	const struct forger f = { .rules = &fs->rules };
	uint8_t *block = calloc(1, fs->geometry.nodesize);
	struct tree_root root;
	struct copy copy;

	assert_non_null(block);
	written_check(fs_find_root(fs, OID_FREE_SPACE_TREE, &root, NULL, &err), &err);
	for (unsigned mirror = 0; !volume_map(fs->volume, root.bytenr, fs->geometry.nodesize, mirror, &copy, &err);
	     mirror++) {
		assert_int_equal(btrkit_io_read(w->bytes, copy.physical, block, fs->geometry.nodesize, NULL), 0);
		assert_true(forge(&f, block));
		if (destroy)
			memset(block, 0, fs->geometry.nodesize);
		assert_int_equal(btrkit_io_write(w->bytes, copy.physical, block, fs->geometry.nodesize, NULL), 0);
	}
	free(block);
	btrkit_fs_close(fs);
}

static void wrong_trees_are_replaced(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_space_change c;
		struct btrkit_fs *fs;
		struct written w;
		uint64_t calls;

		rig_make(&w, TREE | (i & 4));
		forge_on_disk(&w, i & 2);
		assert_true(rig_status(&w).contradictions);
		calls = w.calls;
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		assert_int_equal(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V1, NULL, NULL, &err), -EUCLEAN);
		assert_int_equal(w.calls, calls);
		if (i & 1)
			written_check(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V2, NULL, &c, &err), &err);
		btrkit_fs_close(fs);
		if (i & 1)
			rig_check_whole(&w);
		c = rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		assert_int_equal(c.v2_removed_blocks, i & 1 ? 0 : 1);
		rig_check_v2(&w);
		written_destroy(&w);
	}
}

static struct btrkit_key data_group(struct cursor *c)
{
	int ret;

	for (ret = cursor_seek(c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(c, NULL)) {
		const struct disk_block_group *d = (const struct disk_block_group *)c->item.data;

		if (c->item.key.type == KEY_BLOCK_GROUP_ITEM && le64_get(d->flags) & BG_DATA)
			return c->item.key;
	}
	fail_msg("no block group of data");
	return KEY(0, 0, 0);
}

/* Nothing may rely on an extent tree that contradicts itself. */
static void wrong_extents_are_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_txn *txn;
		struct edit_tree *t = NULL;
		struct btrkit_key key;
		struct btrkit_fs *fs;
		struct written w;
		uint32_t size;
		uint8_t *data;
		uint64_t calls;

		rig_make(&w, i & 2 ? TREE : 0);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		txn = written_start(fs);
		written_check(txn_tree(txn, OID_EXTENT_TREE, &t, &err), &err);
		key = data_group(&t->c);
		written_check(edit_bytes(t, &key, &data, &size, &err), &err);
		((struct disk_block_group *)data)->used = le64_put(1 << 20);
		written_commit(txn);
		btrkit_fs_close(fs);
		calls = w.calls;
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		assert_int_equal(i & 1 ? btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V1, NULL, NULL, &err) :
					 btrkit_space_convert(fs,
							      i & 2 ? BTRKIT_SPACE_CACHE_NONE : BTRKIT_SPACE_CACHE_V2,
							      NULL, NULL, &err),
				 -EUCLEAN);
		assert_true(err.places & BTRKIT_AT_TREE && err.tree == OID_EXTENT_TREE);
		assert_int_equal(w.calls, calls);
		btrkit_fs_close(fs);
		written_destroy(&w);
	}
}

/* Adds items to the top-level subvolume while @blocks can be reserved, at most @max. */
static int fill_some(struct written *w, unsigned blocks, unsigned max)
{
	static uint64_t number;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	struct btrkit_txn *txn = written_start(fs);
	struct edit_tree *t = NULL;
	struct chunk_plan plan;
	struct space_group *g;
	uint8_t bytes[1000] = { 0 };
	int ret;

	/* Allocate all chunks that are possible, so that no more can be created. */
	while (!chunk_plan(txn->space, BG_DATA, &plan, &err))
		written_check(chunk_create(txn->space, &plan, &txn->super, &g, &err), &err);
	written_check(txn_tree(txn, OID_FS_TREE, &t, &err), &err);
	for (ret = 0; !ret && max--; number++) {
		if (blocks && max % 16 == 0)
			ret = txn_reserve(txn, 16 * blocks, &err);
		if (!ret)
			ret = edit_insert(t, &KEY(number * 2654435761u % (1u << 31) + 1000, 99, number), bytes,
					  sizeof(bytes), &err);
	}
	if (!ret || blocks)
		ret = ret | btrkit_txn_commit(txn, NULL, &err);
	else
		btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	assert_true(!ret || ret == -ENOSPC);
	return ret;
}

/* Fills until at most @spare bytes more than needed are available; a negative @spare: until there are too few. */
static void fill(struct written *w, int64_t spare)
{
	struct btrkit_space_change c;

	while (!fill_some(w, 8, 5000))
		;
	for (;;) {
		c = rig_convert(w, BTRKIT_SPACE_CACHE_V2, BTRKIT_SPACE_DRY_RUN);
		if ((int64_t)(c.available_bytes - c.needed_bytes) <= spare)
			return;
		/* Each item takes at most one block. */
		assert_int_equal(fill_some(w, 0, (unsigned)((int64_t)(c.available_bytes - c.needed_bytes) / 65536 + 2)),
				 0);
	}
}

/* If space does not suffice, nothing is written; if the dry run says that it suffices, the conversion succeeds. */
static void nearly_full(void **state)
{
	(void)state;
	for (unsigned v = 0; v < 4; v++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		const bool enough = v & 2;
		struct btrkit_fs *fs;
		struct written w;
		uint64_t calls;
		int ret;

		rig_make(&w, v & 1);
		fill(&w, enough ? 65536 : -1);
		calls = w.calls;
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		ret = btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, &err);
		btrkit_fs_close(fs);
		if (ret != (enough ? 0 : -ENOSPC))
			fail_msg("variant %u: %d: %s", v, ret, err.message);
		if (!enough) {
			assert_non_null(strstr(err.message, "bytes are needed for tree blocks"));
			assert_int_equal(w.calls, calls);
			rig_check_whole(&w);
		} else {
			rig_check_v2(&w);
		}
		written_destroy(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_writes_are_found),
		cmocka_unit_test(wrong_trees_are_replaced),
		cmocka_unit_test(wrong_extents_are_refused),
		cmocka_unit_test(nearly_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
