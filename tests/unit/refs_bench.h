/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_REFS_BENCH_H
#define BTRKIT_TESTS_REFS_BENCH_H

/* Helpers shared by the tests of delayed references. */

#include "lib/commit/refs.h"
#include "lib/commit/refs_head.h"
#include "lib/commit/settle.h"
#include "lib/format/feature_bits.h"
#include "tests/unit/written.h"
#include "tests/random.h"

#define SIZE (160ull << 20)
#define SECTOR 4096u

static uint64_t seed;

static inline uint32_t rnd(uint32_t n)
{
	random_step(&seed);
	return (uint32_t)(seed >> 33) % n;
}

struct bench {
	struct written w;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
};

static inline void begin(struct bench *b, uint32_t nodesize)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	o.nodesize = nodesize;
	written_make(&b->w, &o, SIZE);
	b->fs = written_open(&b->w, BTRKIT_OPEN_WRITE);
	b->txn = written_start(b->fs);
}

static inline void end(struct bench *b)
{
	btrkit_fs_close(b->fs);
	written_destroy(&b->w);
}

static inline struct range alloc(struct bench *b)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range r = { 0 };

	written_check(txn_alloc_data(b->txn, SECTOR, 4 * SECTOR, &r, &err), &err);
	return r;
}

static inline int change(struct bench *b, const struct range *r, const struct extent_ref *ref, int add,
			 struct btrkit_error *err)
{
	const struct extent_change c = { r->start, r->length, true, 0, *ref, add };

	return txn_change_data_ref(b->txn, &c, err);
}

static inline void must_change(struct bench *b, const struct range *r, const struct extent_ref *ref, int add)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	written_check(change(b, r, ref, add, &err), &err);
}

static inline void run(struct bench *b)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	written_check(txn_run_refs(b->txn, &err), &err);
}

/* What the extent tree has about an extent. */
struct found {
	struct extent_ref refs[1000];
	size_t n, keyed;
	uint64_t count; /* as the item says */
	bool exists;
	uint64_t flags;
	uint8_t key_type;
};

static inline void read_extent(struct bench *b, uint64_t bytenr, struct found *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct extent_item item;
	struct edit_tree *t = NULL;
	int ret;

	f->n = f->keyed = 0;
	f->exists = false;
	written_check(txn_tree(b->txn, OID_EXTENT_TREE, &t, &err), &err);
	for (ret = cursor_seek(&t->c, &KEY(bytenr, 0, 0), &err); !ret && t->c.item.key.objectid == bytenr;
	     ret = cursor_next(&t->c, &err)) {
		written_check(item_validate(&b->fs->items, &t->c.item, &err), &err);
		if (t->c.item.key.type <= KEY_METADATA_ITEM) {
			written_check(extent_item_decode(&b->fs->items, &t->c.item, &item, &err), &err);
			f->exists = true;
			f->count = item.refs;
			f->flags = item.flags;
			f->key_type = t->c.item.key.type;
			while (!extent_item_next_ref(&item, &f->refs[f->n], &err))
				f->n++;
		} else {
			written_check(extent_keyed_ref_decode(&t->c.item, &f->refs[f->n++], &err), &err);
			f->keyed++;
		}
	}
	written_check(ret < 0 ? ret : 0, &err);
}

static inline struct extent_ref data_ref(uint64_t root, uint64_t inode, uint64_t offset)
{
	return (struct extent_ref){ .type = KEY_EXTENT_DATA_REF, .root = root, .objectid = inode, .offset = offset };
}

static inline struct extent_ref shared_ref(uint64_t parent)
{
	return (struct extent_ref){ .type = KEY_SHARED_DATA_REF, .parent = parent };
}

static inline void change_block(struct bench *b, uint64_t bytenr, const struct extent_ref *ref, int add, int expected)
{
	const struct extent_change c = { bytenr, b->fs->geometry.nodesize, false, 0, *ref, add };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	assert_int_equal(refs_change(b->txn->refs, &c, &err), expected);
}

#endif
