// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks the log trees, which Linux replays at mount. The extent tree has no record of them, so their blocks must lie
 * in space that it shows as free.
 */
#include "lib/check/findings.h"
#include "lib/check/log/log.h"
#include "lib/check/log/log_data.h"
#include "lib/check/log/log_files.h"
#include "lib/check/log/log_state.h"
#include "lib/check/state.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/roots.h"
#include "lib/check/volume/groups.h"
#include "lib/io/buffer.h"
#include "lib/sweep/leaves.h"
#include "lib/sweep/log.h"

#include <stdlib.h>

/* Records a visit of a block. @return whether it is the first */
static bool meet(struct log *l, uint64_t bytenr)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct log_block *b;

	HASH_FIND(hh, l->met, &bytenr, sizeof(bytenr), b);
	if (b)
		return false;
	b = malloc(sizeof(*b));
	if (b) {
		b->bytenr = bytenr;
		HASH_ADD(hh, l->met, bytenr, sizeof(b->bytenr), b);
	}
	if (b && b->hh.tbl)
		return true;
	free(b);
	check_fail(l->c, err_nomem(&err), &err);
	return false;
}

/* Checks a pointer to a block, which has a key if it is in a node. @return whether to follow it */
static bool want(struct log *l, uint64_t bytenr, const struct btrkit_key *key)
{
	const struct check_group *g = check_group_of(l->c, bytenr, &l->group_hint);

	if (!meet(l, bytenr)) {
		log_report(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr", "block of a log tree is referenced twice");
		l->lost = true;
		return false;
	}
	if (!l->c->extents_lost && log_is_used(l, bytenr, l->c->items.nodesize))
		log_report(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr",
			   "block of a log tree overlaps an extent in the extent tree");
	else if (g && !(g->flags & BG_METADATA))
		log_report(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr",
			   "block of a log tree is not in a metadata block group");
	return true;
}

/* Linux validates it like a root item of the root tree. */
static void check_tree_item(struct log *l, const struct sweep_log_item *at, const struct root_item *ri)
{
	const struct btrkit_key *key = &at->item->key;

	if (ri->drop_progress.objectid && !ri->drop_level)
		log_report(l, CHECK_LOG_ROOT, at->leaf->bytenr, key, "drop_progress",
			   "log tree is being dropped, but has drop level 0");
	if (ri->generation_v2 && ri->generation_v2 != ri->generation)
		log_report(l, CHECK_ROOT_GENERATION, at->leaf->bytenr, key, "generation_v2",
			   "log tree has two different generations");
}

static int tree(void *ctx, const struct sweep_log_item *at, const struct root_item *ri, bool *read,
		struct btrkit_error *err)
{
	struct log *l = ctx;
	const struct btrkit_key *key = &at->item->key;

	(void)err;
	check_tree_item(l, at, ri);
	*read = *read && check_find_root(l->c, key->offset);
	if (!*read && !l->c->blocks_lost)
		log_report(l, CHECK_LOG_TREE, at->leaf->bytenr, key, "key.offset",
			   "log tree belongs to a subvolume that does not exist");
	if (*read && !oid_is_file_tree(key->offset))
		log_report(l, CHECK_LOG_ROOT, at->leaf->bytenr, key, "key.offset",
			   "log tree belongs to a tree without files");
	return 0;
}

static int item(void *ctx, const struct sweep_log_item *at, bool top, bool *take, struct btrkit_error *err)
{
	struct log *l = ctx;
	const bool fits = top == (at->item->key.type == KEY_ROOT_ITEM);

	(void)err;
	if (!fits)
		log_report(l, CHECK_ITEM_TREE, at->leaf->bytenr, &at->item->key, "key.type",
			   "item type does not belong in a log tree");
	*take = fits && (top || log_files_item(l, at->leaf, at->item));
	return 0;
}

static int invalid(void *ctx, const struct sweep_log_item *at, int ret, const struct btrkit_error *what,
		   struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)ret;
	(void)err;
	check_report(l->c, check_code_of_invalid(&at->item->key), what);
	log_files_doubt(l, at->item);
	return 0;
}

static int disorder(void *ctx, const struct sweep_log_item *at, struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)err;
	log_report(l, CHECK_BLOCK_PARENT, at->leaf->bytenr, &at->item->key, "key",
		   "first key of leaf is not greater than the last key of the previous one");
	l->lost = true;
	return 0;
}

static int begin(void *ctx, const struct tree_root *root, bool top, bool *read, struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)err;
	l->lost = false;
	if (!top)
		log_files_begin(l, root->key_offset);
	*read = want(l, root->bytenr, NULL);
	if (!*read && !top)
		log_files_end(l);
	return l->c->failed;
}

static int end(void *ctx, const struct tree_root *root, bool top, struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)root;
	(void)err;
	if (!top)
		log_files_end(l);
	return l->c->failed;
}

/* --- How blocks are read: every copy. Each block is read only once, whatever the pointers say. --- */

static int get(void *ctx, const struct node_ref *ref, struct node **ret, struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)err;
	if (!check_read_block(l->c, ref, l->buf)) {
		l->lost = true;
		return l->c->failed;
	}
	l->node = check_node(l->c, l->buf);
	*ret = &l->node;
	l->c->result.blocks++;
	return l->c->failed;
}

static void put(void *ctx, struct node *n)
{
	(void)ctx;
	(void)n;
}

static int pointer(void *ctx, const struct node *parent, uint32_t slot, const struct node_ref *ref, bool ordered,
		   bool *follow, struct btrkit_error *err)
{
	(void)parent;
	(void)slot;
	(void)ordered;
	(void)err;
	*follow = want(ctx, ref->bytenr, ref->first_key);
	return 0;
}

static void release(struct log *l)
{
	struct log_block *b, *next;

	HASH_ITER(hh, l->met, b, next)
	{
		HASH_DEL(l->met, b);
		free(b);
	}
	/* Still there if the check ended within a tree. */
	if (l->has_subvolume)
		cursor_release(&l->subvolume);
	free(l->wanted.at);
	free(l->modes.at);
	free(l->names.at);
	free(l->buf);
}

static void read_logs(struct log *l)
{
	const struct sweep_blocks from = { .get = get, .put = put, .pointer = pointer, .ctx = l };
	const struct sweep_log_events to = {
		.begin = begin,
		.end = end,
		.tree = tree,
		.item = item,
		.invalid = invalid,
		.disorder = disorder,
		.inode = log_files_inode,
		.name = log_files_ref,
		.entry = log_files_entry,
		.range = log_files_range,
		.extent = log_data_extent,
		.csums = log_data_csums,
		.ctx = l,
	};
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret = sweep_logs(l->c->fs, &from, &to, &err);

	if (ret && !check_failed(l->c))
		check_fail(l->c, ret, &err);
}

int check_logs(struct check *c)
{
	struct log l = { .c = c };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (!c->fs->super.log_root)
		return 0;
	l.buf = io_buffer(c->items.nodesize);
	if (!l.buf)
		return check_fail(c, err_nomem(&err), &err);
	read_logs(&l);
	log_data_join(&l);
	release(&l);
	return c->failed;
}
