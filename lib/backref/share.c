// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/backref/share_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"
#include "lib/backref/ancestors.h"

int share_init(struct share_ctx *s, struct btrkit_fs *fs, const struct tree_root *root, uint64_t last_snapshot,
	       struct btrkit_error *err)
{
	struct tree_root extent_tree = { 0 };
	int ret;

	*s = (struct share_ctx){ .fs = fs, .root = *root, .last_snapshot = last_snapshot };
	ret = fs_find_root(fs, OID_EXTENT_TREE, &extent_tree, NULL, err);
	cursor_init(&s->extents, fs, &extent_tree);
	s->extents.forward = true;
	cursor_init(&s->blocks, fs, &extent_tree);
	cursor_init(&s->others, fs, root);
	cursor_init(&s->ahead, fs, root);
	s->ahead.scan = true;
	return ret;
}

void share_release(struct share_ctx *s)
{
	cursor_release(&s->extents);
	cursor_release(&s->blocks);
	cursor_release(&s->others);
	cursor_release(&s->ahead);
	share_batch_release(&s->batch);
}

void share_new_file(struct share_ctx *s)
{
	memset(s->recent, 0, sizeof(s->recent));
	s->recent_slot = 0;
}

struct block_refs {
	struct share_ctx *s;
	uint64_t bytenr;
	uint64_t path_parent; /* parent on the current path, known not to be shared */
	struct {
		uint64_t *at;
		size_t n, size;
	} parents; /* other parents */
	struct btrkit_error *err;
};

/* @return 1: another tree refers to the block */
static int visit_path_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct block_refs *b = ctx;

	(void)extent;
	if (ref->type == KEY_TREE_BLOCK_REF)
		return ref->root != b->s->root.id && ref->root != OID_DATA_RELOC_TREE;
	if (ref->type != KEY_SHARED_BLOCK_REF || ref->parent == b->path_parent || ref->parent == b->bytenr)
		return 0;
	if (b->parents.n == b->parents.size) {
		size_t size = b->parents.size ? 2 * b->parents.size : 16;
		uint64_t *more = reallocarray(b->parents.at, size, sizeof(*more));

		if (!more)
			return err_nomem(b->err);
		b->parents.at = more;
		b->parents.size = size;
	}
	b->parents.at[b->parents.n++] = ref->parent;
	return 0;
}

/* Whether the block at @level of the cursor's path is shared. Its ancestors on the path are not. */
static int path_block_shared(struct share_ctx *s, const struct cursor *c, unsigned level, bool *shared,
			     struct btrkit_error *err)
{
	struct block_refs b = { .s = s, .bytenr = c->nodes[level]->bytenr, .err = err };
	int ret;

	b.path_parent = level < c->root.level ? c->nodes[level + 1]->bytenr : 0;
	ret = extent_for_each_ref(&s->blocks, b.bytenr, visit_path_ref, &b, err);
	*shared = ret == 1;
	for (size_t i = 0; !ret && !*shared && i < b.parents.n; i++)
		ret = block_reached_from_elsewhere(&s->blocks, &s->root, b.parents.at[i], shared, err);
	free(b.parents.at);
	return ret < 0 ? ret : 0;
}

/* Whether the leaf of @c is shared. This goes from the root down, because everything below a shared block is shared. */
static int path_shared(struct share_ctx *s, struct share_path *path, const struct cursor *c, bool *shared,
		       struct btrkit_error *err)
{
	bool verdict = false;

	for (unsigned level = c->root.level + 1; level-- > 0;) {
		int ret;

		if (path->levels[level].bytenr != c->nodes[level]->bytenr) {
			if (!verdict) {
				ret = path_block_shared(s, c, level, &verdict, err);
				if (ret)
					return ret;
				s->counts.blocks_checked++;
			} else {
				s->counts.saved_by_path++;
			}
			path->levels[level].bytenr = c->nodes[level]->bytenr;
			path->levels[level].shared = verdict;
			/* Blocks below belong to a different path. */
			for (unsigned below = 0; below < level; below++)
				path->levels[below].bytenr = 0;
		} else {
			s->counts.saved_by_path++;
		}
		verdict = path->levels[level].shared;
	}
	*shared = verdict;
	return 0;
}

int share_leaf(struct share_ctx *s, const struct cursor *c, bool *shared, struct btrkit_error *err)
{
	/*
	 * A tree that was never part of a snapshot shares nothing. The generation of the leaf cannot be used to decide
	 * more cases, because relocation changes it while blocks stay shared.
	 */
	if (!s->last_snapshot) {
		*shared = false;
		return 0;
	}
	return path_shared(s, &s->path, c, shared, err);
}

int share_enter_leaf(struct share_ctx *s, const struct cursor *c, bool one_inode, bool *shared,
		     struct btrkit_error *err)
{
	int ret;

	*shared = false;
	if (share_batch_enter(&s->batch, cursor_leaf(c)->bytenr))
		return 0;
	ret = share_leaf(s, c, shared, err);
	return ret || *shared ? ret : share_batch_load(s, c, one_inode, err);
}

/* Whether the reference @e counts this item. */
static bool counted_by(const struct share_extent *e, const struct item *item, const struct file_extent *fe)
{
	return fe->type != FILE_EXTENT_INLINE && fe->disk_bytenr == e->bytenr &&
	       item->key.offset - fe->offset == e->offset;
}

/* Whether any leaf is shared that has an item of the extent, which has @span bytes and several items in this file. */
static int any_leaf_shared(struct share_ctx *s, const struct share_extent *e, uint64_t span, bool *shared,
			   struct btrkit_error *err)
{
	/* The offset of a reference may be negative, modulo 2^64; the file begins at 0. */
	struct btrkit_key key = KEY(e->inode, KEY_EXTENT_DATA, e->offset > INT64_MAX ? 0 : e->offset);
	uint64_t last_leaf = 0, end = e->offset + span;
	uint32_t left = e->count;
	int ret;

	*shared = false;
	for (ret = cursor_seek(&s->others, &key, err); !ret && left && !*shared; ret = cursor_next(&s->others, err)) {
		struct file_extent fe;

		if (s->others.item.key.objectid != e->inode || s->others.item.key.type != KEY_EXTENT_DATA ||
		    s->others.item.key.offset >= end)
			break;
		ret = cursor_blame(&s->others, file_extent_decode(&s->fs->items, &s->others.item, &fe, err), err);
		if (ret)
			return ret;
		if (!counted_by(e, &s->others.item, &fe))
			continue;
		left--;
		if (cursor_leaf(&s->others)->bytenr == last_leaf)
			continue;
		last_leaf = cursor_leaf(&s->others)->bytenr;
		ret = path_shared(s, &s->other_path, &s->others, shared, err);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

/* Decide by the references, and where these are not sufficient, by the leaves that refer to the extent. */
static int judge(struct share_ctx *s, const struct cursor *c, struct share_extent *e, const struct file_extent *fe,
		 bool *shared, struct btrkit_error *err)
{
	int ret;

	*shared = e->shared;
	if (e->shared || !e->ref_type || fe->generation > s->last_snapshot)
		return 0;
	if (e->ref_type == KEY_SHARED_DATA_REF) {
		if (e->parent == cursor_leaf(c)->bytenr)
			return 0;
		return block_reached_from_elsewhere(&s->blocks, &s->root, e->parent, shared, err);
	}
	if (e->root != s->root.id) {
		*shared = true;
		return 0;
	}
	if (e->count > 1 && !e->leaves_known) {
		ret = any_leaf_shared(s, e, fe->ram_bytes, &e->leaves_shared, err);
		if (ret)
			return ret;
		e->leaves_known = true;
		s->counts.spread_checked++;
	} else if (e->count > 1) {
		s->counts.saved_by_repeat++;
	}
	*shared = e->leaves_shared;
	return 0;
}

static void remember(struct share_ctx *s, const struct share_extent *e, bool shared)
{
	s->recent[s->recent_slot].bytenr = e->bytenr;
	s->recent[s->recent_slot].shared = shared;
	s->recent[s->recent_slot].looked = e->leaves_known;
	s->recent_slot = (s->recent_slot + 1) % SHARE_RECENT;
}

int share_extent_shared(struct share_ctx *s, const struct cursor *c, const struct file_extent *fe, bool leaf_shared,
			bool *shared, struct btrkit_error *err)
{
	struct share_extent *e;
	int ret;

	if (leaf_shared)
		s->counts.saved_by_leaf++;
	for (unsigned i = 0; i < SHARE_RECENT; i++) {
		if (s->recent[i].bytenr == fe->disk_bytenr) {
			*shared = s->recent[i].shared;
			if (!leaf_shared && s->recent[i].looked)
				s->counts.saved_by_repeat++;
			return 0;
		}
	}
	if (leaf_shared) {
		*shared = true;
		return 0;
	}
	e = share_batch_find(&s->batch, fe->disk_bytenr, c->item.key.objectid);
	if (!e)
		return err_set(err, BTRKIT_INVALID, "share_enter_leaf() was not called for the leaf");
	ret = e->lost ? share_load_refs(s, e, err) : 0;
	if (!ret)
		ret = judge(s, c, e, fe, shared, err);
	if (!ret && e->ref_type == KEY_EXTENT_DATA_REF && e->root == s->root.id && e->count > 1)
		remember(s, e, *shared);
	return ret;
}
