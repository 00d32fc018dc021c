// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the sizes of trees. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/format/key_names.h"
#include "lib/report/list.h"
#include "lib/tree/cursor.h"

struct level {
	uint64_t blocks, items, used;	/* items are pointers above level 0; used includes headers */
};

struct stats {
	struct level levels[LEVELS_MAX];
	struct {
		uint64_t count, bytes;
		uint64_t objectid;	/* example, to name the type */
	} types[256];
	uint64_t inline_bytes;	/* of files, as stored in the tree */
};

static void count_leaf(struct stats *s, const struct node *n)
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

static void count_block(struct stats *s, const struct node *n)
{
	struct level *level = &s->levels[n->level];

	level->blocks++;
	level->items += n->nritems;
	if (n->level)
		level->used += sizeof(struct disk_header) + (uint64_t)n->nritems * sizeof(struct disk_key_ptr);
	else
		count_leaf(s, n);
}

/*
 * Check that keys of a level increase from block to block, which ensures that the walk ends whatever the pointers are.
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

static int count_level(struct stats *s, struct cursor *c, unsigned level, struct btrkit_error *err)
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

static int count(struct btrkit_fs *fs, const struct tree_root *root, struct stats *s, struct btrkit_error *err)
{
	struct cursor c;
	int r = 0;

	memset(s, 0, sizeof(*s));
	cursor_init(&c, fs, root);
	c.scan = true;
	for (unsigned level = root->level + 1u; !r && level--;)
		r = count_level(s, &c, level, err);
	cursor_release(&c);
	if (r)
		err_at_tree(err, root->id);
	return r;
}

static void print_types(struct emit *e, const struct stats *s)
{
	emit_array(e, "items");
	for (unsigned type = 0; type < 256; type++) {
		if (!s->types[type].count)
			continue;
		emit_object(e, NULL);
		if (e->form == EMIT_JSON)
			emit_u64(e, "type", "", type);
		key_type_emit(e, "\t", s->types[type].objectid, (uint8_t)type);
		emit_u64(e, "count", ": ", s->types[type].count);
		emit_u64(e, "bytes", " items, ", s->types[type].bytes);
		emit_text(e, " bytes\n");
		emit_object_end(e);
	}
	emit_array_end(e);
}

static void print_levels(struct emit *e, const struct stats *s, unsigned levels, uint32_t nodesize)
{
	emit_array(e, "nodes");
	for (unsigned i = 0; i < levels; i++) {
		const struct level *l = &s->levels[i];

		emit_object(e, NULL);
		emit_u64(e, "level", "\tlevel ", i);
		emit_u64(e, "blocks", ": ", l->blocks);
		emit_u64(e, "items", i ? " nodes, pointers " : " leaves, items ", l->items);
		emit_u64(e, "used", ", bytes used ", l->used);
		emit_u64(e, "free", " free ", l->blocks * nodesize - l->used);
		emit_text(e, "\n");
		emit_object_end(e);
	}
	emit_array_end(e);
}

static void print_stats(struct emit *e, const struct tree_root *root, const struct stats *s, uint32_t nodesize,
			const struct btrkit_error *bad)
{
	uint64_t blocks = 0, used = 0;

	for (unsigned i = 0; i < LEVELS_MAX; i++) {
		blocks += s->levels[i].blocks;
		used += s->levels[i].used;
	}
	emit_object(e, NULL);
	objectid_emit(e, "tree", "tree ", root->id, 0);
	if (e->form == EMIT_JSON || root->key_offset)
		emit_u64(e, "key_offset", " ", root->key_offset);
	emit_u64(e, "bytenr", ": root block ", root->bytenr);
	emit_u64(e, "generation", " generation ", root->generation);
	emit_u64(e, "levels", "\n\tlevels ", root->level + 1u);
	emit_u64(e, "blocks", " blocks ", blocks);
	emit_u64(e, "bytes", " bytes ", blocks * nodesize);
	emit_u64(e, "used", " used ", used);
	emit_u64(e, "free", " free ", blocks * nodesize - used);
	emit_u64(e, "inline_bytes", " inline ", s->inline_bytes);
	emit_text(e, "\n");
	print_levels(e, s, root->level + 1u, nodesize);
	print_types(e, s);
	if (bad) {
		emit_str(e, "damaged", "\tdamaged: ", bad->message);
		emit_text(e, "\n");
	}
	emit_object_end(e);
}

struct job {
	struct btrkit_fs *fs;
	struct emit *e;
	struct stats stats;
	int damage;	/* the first error */
	struct btrkit_error damage_error;
};

static int one_tree(struct job *j, const struct tree_root *root, struct btrkit_error *err)
{
	struct btrkit_error bad = BTRKIT_ERROR_INIT;
	const int r = count(j->fs, root, &j->stats, &bad);

	if (r == -ENOMEM)
		return err_nomem(err);
	print_stats(j->e, root, &j->stats, j->fs->items.nodesize, r ? &bad : NULL);
	if (r && !j->damage) {
		j->damage = r;
		j->damage_error = bad;
	}
	return emit_failed(j->e);
}

/* Handles the trees in the root tree: all of them, or only those with objectid @id. */
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

int btrkit_tree_stats_print(struct btrkit_fs *fs, const uint64_t *trees, size_t n, enum btrkit_format format,
			    btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	struct emit e;
	struct job j = { .fs = fs, .e = &e };
	int r = list_begin(&e, format, "tree-stats", write, ctx, err);

	if (r)
		return r;
	for (size_t i = 0; !r && i < n; i++)
		r = chosen_tree(&j, trees[i], err);
	if (!n) {
		r = one_tree(&j, &fs->root_tree, err);
		if (!r)
			r = one_tree(&j, &fs->chunk_tree, err);
		if (!r)
			r = item_trees(&j, 0, err);
	}
	r = list_end(&e, r);
	if (!r && j.damage) {
		if (err)
			*err = j.damage_error;
		return j.damage;
	}
	return r;
}
