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

static int count_level(struct btrkit_tree_stats *s, struct cursor *c, unsigned level, struct btrkit_error *err)
{
	struct btrkit_key last = KEY(0, 0, 0);
	bool first = true;
	int r = cursor_descend(c, &KEY(0, 0, 0), level, err);

	while (!r) {
		const struct node *n = c->nodes[level];

		r = in_order(n, first, &last, err);
		if (r)
			break;
		count_block(s, n);
		first = false;
		r = cursor_next_block(c, level, err);
	}
	return r < 0 ? r : 0;
}

static int count(struct btrkit_fs *fs, const struct tree_root *root, struct btrkit_tree_stats *s,
		 struct btrkit_error *err)
{
	struct cursor c;
	int r = 0;

	*s = (struct btrkit_tree_stats){ .tree = root->id,
					 .key_offset = root->key_offset,
					 .bytenr = root->bytenr,
					 .generation = root->generation,
					 .nodesize = fs->geometry.nodesize,
					 .num_levels = root->level + 1u };
	cursor_init(&c, fs, root);
	c.scan = true;
	for (unsigned level = root->level + 1u; !r && level--;)
		r = count_level(s, &c, level, err);
	cursor_release(&c);
	if (r)
		err_at_tree(err, root->id);
	return r;
}

struct job {
	struct btrkit_fs *fs;
	btrkit_tree_stats_fn fn;
	void *ctx;
	struct btrkit_tree_stats *stats;
};

static int one_tree(struct job *j, const struct tree_root *root, struct btrkit_error *err)
{
	struct btrkit_error bad = BTRKIT_ERROR_INIT;
	const int r = count(j->fs, root, j->stats, &bad);

	if (r == -ENOMEM)
		return err_nomem(err);
	if (r)
		j->stats->damage = &bad;
	return j->fn(j->ctx, j->stats);
}

/* Counts the trees in the root tree: all of them, or only those with objectid @id. */
static int item_trees(struct job *j, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(id, 0, 0);
	bool found = !id;
	struct cursor c;
	int r;

	cursor_init(&c, j->fs, &j->fs->root_tree);
	for (r = cursor_seek(&c, &key, err); !r; r = cursor_next(&c, err)) {
		struct root_item item;
		struct tree_root root;

		if (id && c.item.key.objectid != id)
			break;
		if (c.item.key.type != KEY_ROOT_ITEM)
			continue;
		r = cursor_blame(&c, root_item_decode(&j->fs->items, &c.item, &item, err), err);
		if (r)
			break;
		root = fs_root_of(j->fs, &c.item.key, &item);
		found = true;
		/* Skip a partly deleted subvolume, because its freed blocks may have been reused. */
		r = item.refs || !item.drop_progress.objectid ? one_tree(j, &root, err) : 0;
		if (r)
			break;
	}
	cursor_release(&c);
	if (r >= 0 && !found)
		return err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id);
	return r < 0 ? r : 0;
}

static int chosen_tree(struct job *j, uint64_t id, struct btrkit_error *err)
{
	if (id == OID_ROOT_TREE)
		return one_tree(j, &j->fs->root_tree, err);
	return id == OID_CHUNK_TREE ? one_tree(j, &j->fs->chunk_tree, err) : item_trees(j, id, err);
}

int btrkit_tree_stats(struct btrkit_fs *fs, const uint64_t *trees, size_t n, btrkit_tree_stats_fn fn, void *ctx,
		      struct btrkit_error *err)
{
	struct job j = { .fs = fs, .fn = fn, .ctx = ctx, .stats = malloc(sizeof(*j.stats)) };
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
