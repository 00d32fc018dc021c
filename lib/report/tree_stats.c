// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts the blocks and items of trees. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/tree/cursor.h"

_Static_assert(BTRKIT_TREE_LEVELS == LEVELS_MAX, "a level for each that a tree may have");

static void count_leaf(struct btrkit_tree_stats *s, const struct node *n)
{
	uint64_t used = sizeof(struct disk_header);

	for (uint32_t i = 0; i < n->nritems; i++) {
		const struct item item = leaf_item(n, i);
		const struct disk_file_extent *d = (const struct disk_file_extent *)item.data;

		used += sizeof(struct disk_item) + item.size;
		s->types[item.key.type].count++;
		s->types[item.key.type].bytes += item.size;
		s->types[item.key.type].objectid = item.key.objectid;
		if (item.key.type == KEY_EXTENT_DATA && item.size >= FILE_EXTENT_INLINE_START &&
		    d->type == FILE_EXTENT_INLINE)
			s->inline_bytes += item.size - FILE_EXTENT_INLINE_START;
	}
	s->levels[0].used += used;
}

static void count_block(struct btrkit_tree_stats *s, const struct node *n)
{
	struct btrkit_tree_level *level = &s->levels[n->level];

	level->blocks++;
	level->items += n->nritems;
	if (n->level)
		level->used += sizeof(struct disk_header) + (uint64_t)n->nritems * sizeof(struct disk_key_ptr);
	else
		count_leaf(s, n);
}

/*
 * Checks that keys of a level increase from block to block, which ensures that the walk ends whatever the pointers are.
 */
static int in_order(const struct node *n, bool first, struct btrkit_key *last, struct btrkit_error *err)
{
	const struct btrkit_key key = n->nritems ? node_key(n, 0) : *last;

	if (!first && n->nritems && key_cmp(&key, last) <= 0) {
		err_corrupt(err, "key", "first key is not after the last key of the previous block");
		err_at_logical(err, n->bytenr);
		return -EUCLEAN;
	}
	if (n->nritems)
		*last = node_key(n, n->nritems - 1);
	return 0;
}

struct job {
	struct btrkit_fs *fs;
	btrkit_tree_stats_fn fn;
	btrkit_lost_fn lost; /* NULL: damage of the root tree ends the work */
	void *ctx;
	struct btrkit_tree_stats *stats;
	struct btrkit_error damage; /* the first one of a tree */
	bool root_told;		    /* what the root tree has lost */
};

static int tell(const struct job *j, const struct btrkit_error *what)
{
	return j->lost ? j->lost(j->ctx, what) : 0;
}

/* Notes damage of a tree. */
static int note(struct job *j, const struct tree_root *root, struct btrkit_error *what)
{
	err_at_tree(what, root->id);
	if (!j->stats->damage)
		j->damage = *what;
	j->stats->damage = &j->damage;
	return tell(j, what);
}

/* The level of the block that the cursor could not enter: nothing is held there and below. */
static unsigned lost_level(const struct cursor *c)
{
	unsigned level = c->root.level + 1u;

	while (level && c->nodes[level - 1])
		level--;
	return level ? level - 1 : 0;
}

/*
 * Goes around a block that cannot be read. Each is noted when its own level is counted, and met again for each level
 * below. @return 0: @c is at the next block of the level; 1: there is none; <0
 */
static int go_around(struct job *j, struct cursor *c, unsigned level, struct btrkit_key *at, int ret,
		     struct btrkit_error *what)
{
	while (ret < 0 && ret != -ENOMEM) {
		struct btrkit_key first, end;
		int r = 0;

		if (lost_level(c) == level) {
			j->stats->lost_blocks++;
			r = note(j, &c->root, what);
		}
		if (r)
			return r;
		/* Keys must increase, otherwise a tree with a loop would never end. */
		if (cursor_lost_keys(c, &first, &end) || key_cmp(&end, at) <= 0 ||
		    !key_cmp(&end, &KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX)))
			return 1;
		*at = end;
		*what = (struct btrkit_error)BTRKIT_ERROR_INIT;
		ret = cursor_descend(c, at, level, what);
	}
	return ret;
}

static int count_level(struct job *j, struct cursor *c, unsigned level)
{
	struct btrkit_key last = KEY(0, 0, 0), at = last;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	bool first = true;
	int r = cursor_descend(c, &at, level, &what);

	while (!(r = go_around(j, c, level, &at, r, &what))) {
		const struct node *n = c->nodes[level];

		r = in_order(n, first, &last, &what);
		if (r)
			return note(j, &c->root, &what);
		count_block(j->stats, n);
		first = false;
		at = last;
		r = cursor_next_block(c, level, &what);
	}
	return r < 0 ? r : 0;
}

static int count(struct job *j, const struct tree_root *root)
{
	struct cursor c;
	int r = 0;

	*j->stats = (struct btrkit_tree_stats){ .tree = root->id,
						.key_offset = root->key_offset,
						.bytenr = root->bytenr,
						.generation = root->generation,
						.nodesize = j->fs->items.nodesize,
						.num_levels = root->level + 1u };
	cursor_init(&c, j->fs, root);
	c.scan = true;
	for (unsigned level = root->level + 1u; !r && level--;)
		r = count_level(j, &c, level);
	cursor_release(&c);
	return r;
}

static int one_tree(struct job *j, const struct tree_root *root, struct btrkit_error *err)
{
	const int r = count(j, root);

	j->root_told |= root->id == OID_ROOT_TREE;
	if (r)
		return r == -ENOMEM ? err_nomem(err) : r;
	return j->fn(j->ctx, j->stats);
}

/* State of a cursor in the root tree. */
struct roots {
	struct job *j;
	struct btrkit_error *err;
	bool lost; /* something was skipped */
};

/* A cursor_lost_fn. */
static int lose_roots(void *ctx, int ret, const struct btrkit_error *what)
{
	struct roots *r = ctx;
	int told;

	if (!r->j->lost)
		return err_pass(r->err, what, ret);
	r->lost = true;
	told = r->j->root_told ? 0 : tell(r->j, what);
	return told;
}

static int count_root_item(struct roots *r, struct cursor *c, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct root_item item;
	struct tree_root root;
	const int ret = cursor_blame(c, root_item_decode(&r->j->fs->items, &c->item, &item, &what), &what);

	if (ret) {
		r->lost = true;
		return r->j->lost ? tell(r->j, &what) : err_pass(err, &what, ret);
	}
	root = fs_root_of(r->j->fs, &c->item.key, &item);
	/* Skip a partly deleted subvolume, because its freed blocks may have been reused. */
	return item.refs || !item.drop_progress.objectid ? one_tree(r->j, &root, err) : 0;
}

/* Counts the trees in the root tree: all of them, or only those with objectid @id. */
static int item_trees(struct job *j, uint64_t id, struct btrkit_error *err)
{
	struct roots roots = { j, err, false };
	struct btrkit_key at = KEY(id, 0, 0);
	bool found = !id;
	struct cursor c;
	int r;

	cursor_init(&c, j->fs, &j->fs->root_tree);
	for (r = cursor_next_around(&c, &at, true, lose_roots, &roots, err); !r && (!id || at.objectid == id);) {
		if (at.type == KEY_ROOT_ITEM) {
			found = true;
			r = count_root_item(&roots, &c, err);
		}
		if (!r)
			r = cursor_next_around(&c, &at, false, lose_roots, &roots, err);
	}
	cursor_release(&c);
	j->root_told |= roots.lost;
	if (r >= 0 && !found && !roots.lost)
		return err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id);
	return r < 0 ? r : 0;
}

static int chosen_tree(struct job *j, uint64_t id, struct btrkit_error *err)
{
	if (id == OID_ROOT_TREE)
		return one_tree(j, &j->fs->root_tree, err);
	return id == OID_CHUNK_TREE ? one_tree(j, &j->fs->chunk_tree, err) : item_trees(j, id, err);
}

int btrkit_tree_stats_around(struct btrkit_fs *fs, const uint64_t *trees, size_t n, btrkit_tree_stats_fn fn,
			     btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct job j = { .fs = fs, .fn = fn, .lost = lost, .ctx = ctx, .stats = malloc(sizeof(*j.stats)) };
	int r = 0;

	if (!j.stats)
		return err_nomem(err);
	for (size_t i = 0; !r && i < n; i++)
		r = chosen_tree(&j, trees[i], err);
	if (!n) {
		r = one_tree(&j, &fs->root_tree, err);
		if (!r)
			r = one_tree(&j, &fs->chunk_tree, err);
		if (!r)
			r = item_trees(&j, 0, err);
	}
	free(j.stats);
	return r;
}

int btrkit_tree_stats(struct btrkit_fs *fs, const uint64_t *trees, size_t n, btrkit_tree_stats_fn fn, void *ctx,
		      struct btrkit_error *err)
{
	return btrkit_tree_stats_around(fs, trees, n, fn, NULL, ctx, err);
}
