// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/backref/share.h"

#include <string.h>

#include "lib/backref/ancestors.h"
#include "lib/backref/share_batch.h"
#include "lib/backref/share_path.h"
#include "lib/base/err.h"

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

/* Returns whether the reference of @e counts this item. */
static bool counts_item(const struct share_extent *e, const struct item *item, const struct file_extent *fe)
{
	return fe->type != FILE_EXTENT_INLINE && fe->disk_bytenr == e->bytenr &&
	       item->key.offset - fe->offset == e->refs.offset;
}

/* Finds out whether any leaf is shared that has an item of the extent: @span bytes, with several items in this file. */
static int any_leaf_shared(struct share_ctx *s, const struct share_extent *e, uint64_t span, bool *shared,
			   struct btrkit_error *err)
{
	/* The offset of a reference may be negative, modulo 2^64; the file begins at 0. */
	struct btrkit_key key = KEY(e->refs.inode, KEY_EXTENT_DATA, e->refs.offset > INT64_MAX ? 0 : e->refs.offset);
	uint64_t last_leaf = 0, end = e->refs.offset + span;
	uint32_t left = e->refs.count;
	int ret;

	*shared = false;
	for (ret = cursor_seek(&s->others, &key, err); !ret && left && !*shared; ret = cursor_next(&s->others, err)) {
		struct file_extent fe;

		if (s->others.item.key.objectid != e->refs.inode || s->others.item.key.type != KEY_EXTENT_DATA ||
		    s->others.item.key.offset >= end)
			break;
		ret = cursor_blame(&s->others, file_extent_decode(&s->fs->items, &s->others.item, &fe, err), err);
		if (ret)
			return ret;
		if (!counts_item(e, &s->others.item, &fe))
			continue;
		left--;
		if (cursor_leaf(&s->others)->bytenr == last_leaf)
			continue;
		last_leaf = cursor_leaf(&s->others)->bytenr;
		ret = share_path(s, &s->other_path, &s->others, shared, err);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

/* Finds out whether a leaf is shared that has an item of the extent; the leaf of @c, at such an item, is not. */
static int leaves_shared(struct share_ctx *s, const struct cursor *c, struct share_extent *e,
			 const struct file_extent *fe, bool *shared, struct btrkit_error *err)
{
	int ret;

	*shared = false;
	/* No reference counts, or no snapshot can have the extent. */
	if (!e->refs.type || fe->generation > s->last_snapshot)
		return 0;
	if (e->refs.type == KEY_SHARED_DATA_REF) {
		if (e->refs.parent == cursor_leaf(c)->bytenr)
			return 0;
		return block_reached_from_elsewhere(&s->blocks, &s->root, e->refs.parent, shared, err);
	}
	if (e->refs.root != s->root.id) {
		*shared = true;
		return 0;
	}
	if (e->refs.count > 1 && !e->leaves_known) {
		ret = any_leaf_shared(s, e, fe->ram_bytes, &e->leaves_shared, err);
		if (ret)
			return ret;
		e->leaves_known = true;
		s->counts.spread_checked++;
	} else if (e->refs.count > 1) {
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
	bool in_shared_leaf = false;
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
		*shared = shared_extent(false, true);
		return 0;
	}
	e = share_batch_find(&s->batch, fe->disk_bytenr, c->item.key.objectid);
	if (!e)
		return err_set(err, BTRKIT_INVALID, "share_enter_leaf() was not called for the leaf");
	ret = e->lost ? share_load_refs(s, e, err) : 0;
	if (!ret && !e->refs.differ)
		ret = leaves_shared(s, c, e, fe, &in_shared_leaf, err);
	if (ret)
		return ret;
	*shared = shared_extent(e->refs.differ, in_shared_leaf);
	if (e->refs.type == KEY_EXTENT_DATA_REF && e->refs.root == s->root.id && e->refs.count > 1)
		remember(s, e, *shared);
	return 0;
}
