// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the file extent items that refer to a data extent. A reference names either a tree and a file, or a leaf. The
 * contents of a leaf belong to all trees that reach it; these are found by following the references of tree blocks
 * upwards from the leaf.
 */
#include "lib/backref/references.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/backref/ancestors.h"

#define COMPRESSED_MAX (128u << 10) /* maximum compressed size of an extent */
#define KNOWN_MAX 65536		    /* maximum number of blocks remembered from one extent to the next */

/* A tree block whose trees are known. */
struct known_block {
	uint64_t bytenr;
	UT_hash_handle hh;
	uint64_t *trees; /* ascending */
	size_t n, size;
};

static void forget_all(struct references *r)
{
	struct known_block *b, *next;

	HASH_ITER(hh, r->known, b, next)
	{
		HASH_DEL(r->known, b);
		free(b->trees);
		free(b);
	}
}

int references_init(struct references *r, struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct tree_root extent_tree = { 0 };
	int ret;

	*r = (struct references){ .fs = fs };
	ret = fs_find_root(fs, OID_EXTENT_TREE, &extent_tree, NULL, err);
	cursor_init(&r->extents, fs, &extent_tree);
	return ret;
}

void references_release(struct references *r)
{
	forget_all(r);
	cursor_release(&r->extents);
	free(r->at);
}

static int add_tree(struct known_block *b, uint64_t tree, struct btrkit_error *err)
{
	size_t i = b->n;

	while (i && b->trees[i - 1] > tree)
		i--;
	if (i && b->trees[i - 1] == tree)
		return 0;
	if (b->n == b->size) {
		size_t size = b->size ? 2 * b->size : 4;
		uint64_t *more = reallocarray(b->trees, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		b->trees = more;
		b->size = size;
	}
	for (size_t k = b->n++; k > i; k--)
		b->trees[k] = b->trees[k - 1];
	b->trees[i] = tree;
	return 0;
}

/* References to a block, from its extent item. */
struct block_refs {
	unsigned level;
	struct extent_ref *at;
	size_t n, size;
	struct btrkit_error *err;
};

static int collect_block_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct block_refs *refs = ctx;

	refs->level = extent->level;
	if (ref->type != KEY_TREE_BLOCK_REF && ref->type != KEY_SHARED_BLOCK_REF)
		return 0;
	if (refs->n == refs->size) {
		size_t size = refs->size ? 2 * refs->size : 4;
		struct extent_ref *more = reallocarray(refs->at, size, sizeof(*more));

		if (!more)
			return err_nomem(refs->err);
		refs->at = more;
		refs->size = size;
	}
	refs->at[refs->n++] = *ref;
	return 0;
}

/*
 * Finds the parent of block @bytenr in a tree that refers to it, by the first key of the block.
 * @return 0; 1: the block is the root, or there is no such tree; <0
 */
static int parent_in_tree(struct references *r, uint64_t bytenr, unsigned level, uint64_t tree, uint64_t *parent,
			  bool *is_root, struct btrkit_error *err)
{
	struct node_ref ref = { bytenr, NODE_ANY, 0, (uint8_t)level, NULL };
	struct tree_root root;
	struct btrkit_key key;
	struct node *node;
	struct cursor c;
	int ret;

	*is_root = false;
	ret = fs_try_tree(r->fs, tree, &root, NULL, err);
	if (ret)
		return ret;
	if (root.bytenr == bytenr) {
		*is_root = true;
		return 1;
	}
	if (level >= root.level)
		return 1;
	ret = node_get(r->fs, &ref, &node, err);
	if (ret)
		return ret;
	key = node->nritems ? node_key(node, 0) : KEY(0, 0, 0);
	node_put(r->fs, node);
	cursor_init(&c, r->fs, &root);
	ret = cursor_descend(&c, &key, level + 1, err);
	if (!ret)
		*parent = c.nodes[level + 1]->bytenr;
	cursor_release(&c);
	return ret;
}

static int trees_of(struct references *r, uint64_t bytenr, unsigned level, const struct known_block **ret,
		    struct btrkit_error *err);

/* Adds the trees that reach a block through one of its references. */
static int add_trees(struct references *r, struct known_block *b, unsigned level, const struct extent_ref *ref,
		     struct btrkit_error *err)
{
	const struct known_block *above;
	uint64_t parent = ref->parent;
	bool is_root;
	int ret = 0;

	if (ref->type == KEY_TREE_BLOCK_REF) {
		ret = parent_in_tree(r, b->bytenr, level, ref->root, &parent, &is_root, err);
		if (ret)
			return ret < 0 ? ret : is_root ? add_tree(b, ref->root, err) : 0;
	} else if (parent == b->bytenr) {
		/* The root of a relocation tree, which has no files of its own. */
		return 0;
	}
	ret = trees_of(r, parent, level + 1, &above, err);
	for (size_t i = 0; !ret && i < above->n; i++)
		ret = add_tree(b, above->trees[i], err);
	return ret;
}

/* Finds the trees that reach a block. The level increases with each recursion, so the depth is bounded. */
static int trees_of(struct references *r, uint64_t bytenr, unsigned level, const struct known_block **ret,
		    struct btrkit_error *err)
{
	struct block_refs refs = { .err = err, .level = level };
	struct known_block *b;
	int failed;

	HASH_FIND(hh, r->known, &bytenr, sizeof(bytenr), b);
	if (b) {
		*ret = b;
		return 0;
	}
	if (level >= LEVELS_MAX)
		return err_corrupt(err, "level", "level is too high for parent block %" PRIu64, bytenr);
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err);
	b->bytenr = bytenr;
	failed = extent_for_each_ref(&r->extents, bytenr, collect_block_ref, &refs, err);
	if (!failed && refs.level != level)
		failed = err_corrupt(err, "level", "block %" PRIu64 " has level %u, expected %u", bytenr,
				     refs.level, level);
	for (size_t i = 0; !failed && i < refs.n; i++)
		failed = add_trees(r, b, level, &refs.at[i], err);
	free(refs.at);
	if (!failed) {
		HASH_ADD(hh, r->known, bytenr, sizeof(b->bytenr), b);
		if (!b->hh.tbl)
			failed = err_nomem(err);
	}
	if (failed) {
		free(b->trees);
		free(b);
		return failed;
	}
	*ret = b;
	return 0;
}

/* State of the search for one extent. */
struct search {
	struct references *r;
	uint64_t bytenr, num_bytes;
	struct extent_ref *refs; /* references to the extent */
	size_t n, size;
	bool found, data;
	struct btrkit_error *err;
};

static int collect_data_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct search *s = ctx;

	s->found = true;
	s->data = extent->flags & EXTENT_FLAG_DATA;
	s->num_bytes = extent->num_bytes;
	if (ref->type != KEY_EXTENT_DATA_REF && ref->type != KEY_SHARED_DATA_REF)
		return 0;
	if (s->n == s->size) {
		size_t size = s->size ? 2 * s->size : 4;
		struct extent_ref *more = reallocarray(s->refs, size, sizeof(*more));

		if (!more)
			return err_nomem(s->err);
		s->refs = more;
		s->size = size;
	}
	s->refs[s->n++] = *ref;
	return 0;
}

/* Adds an item that refers to the extent, once for each tree that reaches the leaf. */
static int add_item(struct search *s, uint64_t leaf, const struct btrkit_key *key, const struct file_extent *fe)
{
	struct references *r = s->r;
	const struct known_block *b;
	int ret;

	ret = trees_of(r, leaf, 0, &b, s->err);
	if (ret)
		return ret;
	if (r->size - r->n < b->n) {
		size_t size = 2 * (r->n + b->n);
		struct btrkit_reference *more = reallocarray(r->at, size, sizeof(*more));

		if (!more)
			return err_nomem(s->err);
		r->at = more;
		r->size = size;
	}
	for (size_t i = 0; i < b->n; i++)
		r->at[r->n++] = (struct btrkit_reference){ .root = b->trees[i],
							   .inode = key->objectid,
							   .offset = key->offset,
							   .length = fe->num_bytes,
							   .extent_offset = fe->offset,
							   .compressed = fe->compression };
	return 0;
}

/* Searches a leaf that a shared reference names. */
static int search_leaf(struct search *s, const struct extent_ref *ref)
{
	struct node_ref to = { ref->parent, NODE_ANY, 0, 0, NULL };
	struct btrkit_fs *fs = s->r->fs;
	struct node *leaf;
	int ret;

	ret = node_get(fs, &to, &leaf, s->err);
	if (ret)
		return ret;
	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		struct item item = leaf_item(leaf, i);
		struct file_extent fe;

		if (item.key.type != KEY_EXTENT_DATA)
			continue;
		ret = file_extent_decode(&fs->items, &item, &fe, s->err);
		if (ret) {
			err_at_logical(s->err, leaf->bytenr);
			err_at_item(s->err, i, &item.key);
		} else if (fe.disk_bytenr == s->bytenr) {
			ret = add_item(s, leaf->bytenr, &item.key, &fe);
		}
	}
	node_put(fs, leaf);
	return ret;
}

/* Searches the file that a reference names. Its items begin where the start of the extent would be in the file. */
static int search_file(struct search *s, const struct extent_ref *ref)
{
	const uint64_t span = s->num_bytes < COMPRESSED_MAX ? COMPRESSED_MAX : s->num_bytes;
	/* The offset may be negative, modulo 2^64; the file begins at 0. */
	const struct btrkit_key key = KEY(ref->objectid, KEY_EXTENT_DATA, ref->offset > INT64_MAX ? 0 : ref->offset);
	const uint64_t end = ref->offset + span;
	struct btrkit_fs *fs = s->r->fs;
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = fs_try_tree(fs, ref->root, &root, NULL, s->err);
	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &key, s->err); !ret; ret = cursor_next(&c, s->err)) {
		struct file_extent fe;

		if (c.item.key.objectid != ref->objectid || c.item.key.type != KEY_EXTENT_DATA ||
		    c.item.key.offset >= end)
			break;
		ret = cursor_blame(&c, file_extent_decode(&fs->items, &c.item, &fe, s->err), s->err);
		if (!ret && fe.disk_bytenr == s->bytenr && c.item.key.offset - fe.offset == ref->offset)
			ret = add_item(s, cursor_leaf(&c)->bytenr, &c.item.key, &fe);
		if (ret)
			break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int compare(const void *x, const void *y)
{
	const struct btrkit_reference *a = x, *b = y;

	if (a->root != b->root)
		return a->root < b->root ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* An item in a leaf shared with a snapshot is found by the references of both. */
static void sort_and_join(struct references *r)
{
	size_t kept = 0;

	if (!r->n)
		return;
	qsort(r->at, r->n, sizeof(*r->at), compare);
	for (size_t i = 1; i < r->n; i++)
		if (compare(&r->at[kept], &r->at[i]))
			r->at[++kept] = r->at[i];
	r->n = kept + 1;
}

int references_load(struct references *r, uint64_t bytenr, struct btrkit_error *err)
{
	struct search s = { .r = r, .bytenr = bytenr, .err = err };
	int ret;

	r->n = 0;
	if (HASH_COUNT(r->known) >= KNOWN_MAX)
		forget_all(r);
	ret = extent_for_each_ref(&r->extents, bytenr, collect_data_ref, &s, err);
	if (!ret && (!s.found || !s.data))
		ret = err_set(err, BTRKIT_NOT_FOUND, "no data extent begins at %" PRIu64, bytenr);
	for (size_t i = 0; !ret && i < s.n; i++)
		ret = s.refs[i].type == KEY_SHARED_DATA_REF ? search_leaf(&s, &s.refs[i]) : search_file(&s, &s.refs[i]);
	free(s.refs);
	if (!ret)
		sort_and_join(r);
	return ret;
}
