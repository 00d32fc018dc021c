// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks the log trees, which Linux replays at mount. The extent tree has no record of them, so their blocks must lie
 * in space that it shows as free.
 */
#include "lib/check/log.h"

#include <stdlib.h>

#include "lib/io/buffer.h"

void log_say(struct log *l, enum check_code code, uint64_t logical, const struct btrkit_key *key, const char *field,
	     const char *message)
{
	check_say(l->c, code, &(struct check_place){ OID_TREE_LOG, logical, key, field }, "%s", message);
}

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

bool log_is_used(struct log *l, uint64_t start, uint64_t length)
{
	const struct check_tables *t = &l->c->tables;
	size_t i;

	if (check_find_extent(t, start, l->c->items.sectorsize, &l->hints.extent))
		return true;
	i = check_table_lower_bound(&t->extents, start, NULL);
	if (i < t->extents.n && check_extent_start(check_extent_at(t, i)) - start < length)
		return true;
	i = check_table_lower_bound(&t->blocks, start, &l->block_hint);
	if (i < t->blocks.n && check_block_bytenr(check_block_at(t, i)) - start < length)
		return true;
	return i && start - check_block_bytenr(check_block_at(t, i - 1)) < l->c->items.nodesize;
}

static void want(struct log *l, uint64_t bytenr, uint64_t generation, uint8_t level, const struct btrkit_key *key)
{
	const struct check_group *g = check_group_of(l->c, bytenr, &l->group_hint);
	struct log_ref *to;

	if (!meet(l, bytenr)) {
		log_say(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr", "block of a log tree is referenced twice");
		l->lost = true;
		return;
	}
	if (!l->c->extents_lost && log_is_used(l, bytenr, l->c->items.nodesize))
		log_say(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr",
			"block of a log tree overlaps an extent in the extent tree");
	else if (g && !(g->flags & BG_METADATA))
		log_say(l, CHECK_LOG_BLOCK, bytenr, key, "blockptr",
			"block of a log tree is not in a metadata block group");
	to = check_list_add(l->c, &l->pending, sizeof(*to));
	if (!to)
		return;
	*to = (struct log_ref){ .ref = { bytenr, generation, OID_TREE_LOG, level, NULL }, .has_key = key };
	if (key)
		to->first_key = *key;
}

static void take_tree(struct log *l, uint64_t logical, const struct item *item)
{
	struct root_item ri;
	struct tree_root *to;

	if (root_item_decode(&l->c->items, item, &ri, NULL))
		return;
	/* Linux validates it like a root item of the root tree. */
	if (ri.drop_progress.objectid && !ri.drop_level)
		log_say(l, CHECK_LOG_ROOT, logical, &item->key, "drop_progress",
			"log tree is being dropped, but has drop level 0");
	if (ri.generation_v2 && ri.generation_v2 != ri.generation)
		log_say(l, CHECK_ROOT_GENERATION, logical, &item->key, "generation_v2",
			"log tree has two different generations");
	if (item->key.objectid != OID_TREE_LOG || !check_find_root(l->c, item->key.offset)) {
		if (!l->c->blocks_lost)
			log_say(l, CHECK_LOG_TREE, logical, &item->key, "key.offset",
				"log tree belongs to a subvolume that does not exist");
		return;
	}
	if (!oid_is_file_tree(item->key.offset))
		log_say(l, CHECK_LOG_ROOT, logical, &item->key, "key.offset",
			"log tree belongs to a tree without files");
	to = check_list_add(l->c, &l->trees, sizeof(*to));
	if (to)
		*to = tree_root_of(&item->key, &ri);
}

/* Handles an item of the log root tree or of a log tree. */
static void take_item(struct log *l, const struct node *leaf, const struct item *item)
{
	if (l->top != (item->key.type == KEY_ROOT_ITEM))
		log_say(l, CHECK_ITEM_TREE, leaf->bytenr, &item->key, "key.type",
			"item type does not belong in a log tree");
	else if (l->top)
		take_tree(l, leaf->bytenr, item);
	else
		log_files_item(l, leaf, item);
}

static void judge_leaf(struct log *l, const struct node *leaf)
{
	struct item_ctx ctx = l->c->items;

	ctx.owner = OID_TREE_LOG;
	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (!i && l->any && key_cmp(&item.key, &l->last) <= 0) {
			log_say(l, CHECK_BLOCK_PARENT, leaf->bytenr, &item.key, "key",
				"first key of leaf is not greater than the last key of the previous one");
			l->lost = true;
		}
		l->any = true;
		l->last = item.key;
		if (!item_validate(&ctx, &item, &what)) {
			take_item(l, leaf, &item);
			continue;
		}
		err_at_tree(&what, OID_TREE_LOG);
		err_at_logical(&what, leaf->bytenr);
		err_at_item(&what, i, &item.key);
		check_tell(l->c, CHECK_ITEM_INVALID, &what);
		log_files_doubt(l, &item);
	}
}

/* Pushes the children in reverse order, so that the first one is read next. */
static void judge_node(struct log *l, const struct node *n)
{
	for (uint32_t i = n->nritems; i-- > 0;) {
		struct btrkit_key key;
		const struct node_ref ref = node_child(n, i, OID_TREE_LOG, &key);

		want(l, ref.bytenr, ref.generation, ref.level, &key);
	}
}

/* Reads the leaves in key order, and each block only once, so that this terminates. */
static void read_tree(struct log *l, const struct tree_root *root, bool top, uint8_t *buf)
{
	l->top = top;
	l->lost = l->any = false;
	want(l, root->bytenr, root->generation, root->level, NULL);
	while (l->pending.n && !check_failed(l->c)) {
		struct log_ref at = ((const struct log_ref *)l->pending.at)[--l->pending.n];
		struct node n;

		if (at.has_key)
			at.ref.first_key = &at.first_key;
		if (!check_read_block(l->c, &at.ref, buf)) {
			l->lost = true;
			continue;
		}
		l->c->result.blocks++;
		n = check_node(l->c, buf);
		if (n.level)
			judge_node(l, &n);
		else
			judge_leaf(l, &n);
	}
}

static void read_files(struct log *l, const struct tree_root *root, uint8_t *buf)
{
	log_files_begin(l, root->key_offset);
	read_tree(l, root, false, buf);
	log_files_end(l);
}

static void release(struct log *l)
{
	struct log_block *b, *next;

	HASH_ITER(hh, l->met, b, next)
	{
		HASH_DEL(l->met, b);
		free(b);
	}
	free(l->trees.at);
	free(l->pending.at);
	free(l->wanted.at);
	free(l->modes.at);
	free(l->names.at);
}

int check_logs(struct check *c)
{
	const struct super *super = &c->fs->super;
	/* Log trees belong to the next transaction. */
	const struct tree_root root = { OID_TREE_LOG, 0, super->log_root, super->generation + 1,
					super->log_root_level };
	struct log l = { .c = c };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *buf;

	if (!super->log_root)
		return 0;
	buf = io_buffer(c->items.nodesize);
	if (!buf)
		return check_fail(c, err_nomem(&err), &err);
	read_tree(&l, &root, true, buf);
	for (size_t i = 0; i < l.trees.n && !check_failed(c); i++)
		read_files(&l, (const struct tree_root *)l.trees.at + i, buf);
	log_data_join(&l);
	release(&l);
	free(buf);
	return c->failed;
}
