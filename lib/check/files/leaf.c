// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads leaves, adjacent ones at once, and checks their items. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/check/codes.h"
#include "lib/check/files/extent_fields.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/files/leaf.h"
#include "lib/check/files/leaves.h"
#include "lib/check/files/span.h"
#include "lib/check/files/unknown.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/io/buffer.h"
#include "lib/sweep/copies.h"

/* Item types that belong into a particular tree. */
static const struct {
	uint8_t first, last;
	uint64_t tree;
} homes[] = {
	{ KEY_ROOT_ITEM, KEY_ROOT_ITEM, OID_ROOT_TREE },
	{ KEY_ROOT_BACKREF, KEY_ROOT_BACKREF, OID_ROOT_TREE },
	{ KEY_ROOT_REF, KEY_ROOT_REF, OID_ROOT_TREE },
	{ KEY_EXTENT_ITEM, KEY_EXTENT_ITEM, OID_EXTENT_TREE },
	{ KEY_METADATA_ITEM, KEY_METADATA_ITEM, OID_EXTENT_TREE },
	{ KEY_EXTENT_OWNER_REF, KEY_EXTENT_OWNER_REF, OID_EXTENT_TREE },
	{ KEY_TREE_BLOCK_REF, KEY_TREE_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_DATA_REF, KEY_EXTENT_DATA_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_BLOCK_REF, KEY_SHARED_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_DATA_REF, KEY_SHARED_DATA_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_CSUM, KEY_EXTENT_CSUM, OID_CSUM_TREE },
	{ KEY_FREE_SPACE_INFO, KEY_FREE_SPACE_INFO, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_EXTENT, KEY_FREE_SPACE_EXTENT, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_BITMAP, KEY_FREE_SPACE_BITMAP, OID_FREE_SPACE_TREE },
	{ KEY_DEV_EXTENT, KEY_DEV_EXTENT, OID_DEV_TREE },
	{ KEY_DEV_ITEM, KEY_DEV_ITEM, OID_CHUNK_TREE },
	{ KEY_CHUNK_ITEM, KEY_CHUNK_ITEM, OID_CHUNK_TREE },
};

static void check_item(struct check *c, uint64_t tree, const struct node *leaf, uint32_t slot, const struct item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct item_ctx ctx = c->items;
	enum check_code code = check_code_of_invalid(&item->key);
	int ret;

	if (!item_type_find(&item->key)) {
		check_unknown_item(c, tree, leaf, item);
		return;
	}
	ctx.owner = leaf->owner;
	ret = item_validate(&ctx, item, &what);
	for (size_t i = 0; !ret && i < sizeof(homes) / sizeof(homes[0]); i++) {
		if (item->key.type < homes[i].first || item->key.type > homes[i].last || tree == homes[i].tree)
			continue;
		ret = err_corrupt(&what, "key.type", "item of type %u belongs in tree %" PRIu64, item->key.type,
				  homes[i].tree);
		code = CHECK_ITEM_TREE;
	}
	if (!ret)
		return;
	err_at_tree(&what, tree);
	err_at_logical(&what, leaf->bytenr);
	err_at_item(&what, slot, &item->key);
	check_report(c, code, &what);
}

/* The root tree has its own directory and the v1 cache files; their permissions never change. */
static void check_cache_file(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item)
{
	struct inode_item inode;

	if (tree != OID_ROOT_TREE || item->key.type != KEY_INODE_ITEM || !oid_is_file_tree(item->key.objectid) ||
	    inode_item_decode(&c->items, item, &inode, NULL) || inode.mode == (S_IFREG | 0600))
		return;
	check_report_at(c, CHECK_SPACE_CACHE_FILE, &(struct check_location){ tree, leaf->bytenr, &item->key, "mode" },
			"file of a free space cache has unexpected mode %o", inode.mode);
}

/* Checks a leaf of a tree other than a file tree. The root tree still has files, those of the v1 cache. */
static void read_other(struct reader *r, uint64_t tree, const struct node *leaf, bool full_backref)
{
	struct check *c = r->l->c;

	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct file_extent fe;

		check_item(c, tree, leaf, i, &item);
		check_cache_file(c, tree, leaf, &item);
		if (item.key.type != KEY_EXTENT_DATA || file_extent_decode(&c->items, &item, &fe, NULL))
			continue;
		check_extent_fields(c, leaf, &item, &fe);
		check_file_extent(c, leaf, full_backref, &item, &fe, &r->hints);
	}
}

static void read_files(struct reader *r, struct check_block *b, const struct node *leaf, struct span *ret)
{
	span_leaf(r->l->c, leaf, b->tagged & CHECK_BLOCK_FULL, &r->hints, ret);
	if (ret->flags & SPAN_RISING)
		atomic_fetch_or(&b->state, CHECK_RISING);
}

/* Checks a leaf. @block: NULL if it could not be read, which was reported */
static void take_leaf(struct reader *r, struct check_block *b, const uint8_t *block, struct below *ret)
{
	struct check *c = r->l->c;
	struct node leaf;

	*ret = (struct below){ .lost = true };
	if (!block) {
		atomic_fetch_or(&b->state, CHECK_LOST);
		span_lost(&ret->span);
		return;
	}
	leaf = check_node(c, block);
	ret->lost = false;
	ret->empty = !leaf.nritems;
	/* Only the root of a tree may be empty. Other empty leaves are reported, and their items count as lost. */
	if (ret->empty && !(atomic_load(&b->state) & CHECK_ROOT)) {
		atomic_fetch_or(&b->state, CHECK_LOST);
		span_lost(&ret->span);
		return;
	}
	if (leaf.nritems) {
		ret->first = node_key(&leaf, 0);
		ret->last = node_key(&leaf, leaf.nritems - 1);
	}
	check_relocated(c, b, &leaf);
	if (leaves_are_files(b))
		read_files(r, b, &leaf, &ret->span);
	else
		read_other(r, leaves_tree(c, b), &leaf, b->tagged & CHECK_BLOCK_FULL);
}

/* Number of leaves, starting with the first, that have adjacent addresses. */
static size_t neighbours(const struct reader *r, const struct wanted *at, size_t n)
{
	size_t run = 1;

	while (run < n &&
	       check_block_bytenr(at[run].block) == check_block_bytenr(at[run - 1].block) + r->l->c->items.nodesize)
		run++;
	return run;
}

void leaves_read(struct reader *r, size_t n)
{
	struct check *c = r->l->c;
	struct node_ref refs[SWEEP_RUN_BLOCKS];
	bool good[SWEEP_RUN_BLOCKS];
	size_t got;

	for (size_t i = 0, run; i < n; i += run) {
		run = neighbours(r, r->wanted + i, n - i);
		sweep_copies_prefetch(c->fs, check_block_bytenr(r->wanted[i].block), run);
	}
	for (struct wanted *at = r->wanted, *end = at + n; at < end; at += got) {
		size_t run = neighbours(r, at, (size_t)(end - at) < r->run.max ? (size_t)(end - at) : r->run.max);

		for (size_t i = 0; i < run; i++)
			refs[i] = check_block_ref(c, at[i].block);
		got = check_read_run(c, &r->run, refs, run, good);
		for (size_t i = 0; i < got; i++)
			take_leaf(r, at[i].block, good[i] ? r->run.blocks + i * c->items.nodesize : NULL, at[i].to);
	}
}

static void free_reader(struct reader *r)
{
	sweep_run_release(&r->run);
	free(r->node);
	free(r->children);
	free(r->wanted);
	free(r);
}

static struct reader *make_reader(struct leaves *l)
{
	const size_t nodesize = l->c->items.nodesize, children = nodesize / sizeof(struct disk_key_ptr);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct reader *r = calloc(1, sizeof(*r));

	if (r) {
		r->l = l;
		r->node = io_buffer(nodesize);
		r->children = calloc(children, sizeof(*r->children));
		r->wanted = calloc(children, sizeof(*r->wanted));
		if (r->node && r->children && r->wanted && !sweep_run_init(l->c->fs, &r->run, &err))
			return r;
		free_reader(r);
	}
	check_fail(l->c, err_nomem(&err), &err);
	return NULL;
}

struct reader *leaves_take_reader(struct leaves *l)
{
	struct reader *r;

	pthread_mutex_lock(&l->lock);
	r = l->idle;
	if (r)
		l->idle = r->next;
	pthread_mutex_unlock(&l->lock);
	return r ? r : make_reader(l);
}

void leaves_put_reader(struct leaves *l, struct reader *r)
{
	pthread_mutex_lock(&l->lock);
	r->next = l->idle;
	l->idle = r;
	pthread_mutex_unlock(&l->lock);
}

void leaves_free_readers(struct leaves *l)
{
	struct reader *next;

	for (; l->idle; l->idle = next) {
		next = l->idle->next;
		free_reader(l->idle);
	}
}
