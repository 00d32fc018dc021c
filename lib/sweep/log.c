// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/log.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/files/dir_log.h"
#include "lib/sweep/leaves.h"

struct reader {
	const struct sweep_blocks *from;
	const struct sweep_log_events *to;
	struct item_ctx items;
	struct array trees; /* struct tree_root: the logs */
	bool top;	    /* the log root tree is being read */
	bool any;	    /* an item of this tree was read; its key: */
	struct btrkit_key last;
};

static int take_tree(struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	bool read = at->item->key.objectid == OID_TREE_LOG;
	struct tree_root *to;
	struct root_item ri;
	int ret = root_item_decode(&r->items, at->item, &ri, err);

	if (!ret && r->to->tree)
		ret = r->to->tree(r->to->ctx, at, &ri, &read, err);
	if (ret || !read)
		return ret;
	to = array_add(&r->trees, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = tree_root_of(&at->item->key, &ri);
	return 0;
}

static int take_inode(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	struct inode_item inode;

	inode_item_get((const struct disk_inode_item *)at->item->data, &inode);
	return r->to->inode(r->to->ctx, at, &inode, err);
}

static int take_names(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	struct inode_ref_iter it = inode_ref_first(at->item);
	struct inode_ref ref;
	int ret = 0;

	while (!ret && !inode_ref_next(&it, &ref, NULL))
		ret = r->to->name(r->to->ctx, at, &ref, err);
	return ret;
}

static int take_entries(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	const bool attribute = at->item->key.type == KEY_XATTR_ITEM;
	struct dir_iter it = dir_first(at->item);
	struct dir_entry e;
	int ret = 0;

	for (unsigned i = 0; !ret && !dir_next(&it, &e, NULL); i++)
		ret = attribute ? r->to->attribute(r->to->ctx, at, &e, err) : r->to->entry(r->to->ctx, at, i, &e, err);
	return ret;
}

static int take_range(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	const struct disk_dir_log *d = (const struct disk_dir_log *)at->item->data;

	return r->to->range(r->to->ctx, at, at->item->key.offset, le64_get(d->end), err);
}

static int take_extent(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	struct file_extent fe;
	int ret = file_extent_decode(&r->items, at->item, &fe, err);

	return ret ? ret : r->to->extent(r->to->ctx, at, &fe, err);
}

static int take_csums(const struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	const uint64_t sectors = at->item->size / r->items.csum_size;

	return r->to->csums(r->to->ctx, at, at->item->key.offset, sectors * r->items.sectorsize, at->item->data, err);
}

/* Returns whether the caller wants to know what an item of this type says. */
static bool is_wanted(const struct reader *r, uint8_t type)
{
	const struct sweep_log_events *to = r->to;

	if (r->top)
		return type == KEY_ROOT_ITEM;
	switch (type) {
	case KEY_INODE_ITEM:
		return to->inode;
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		return to->name;
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
		return to->entry;
	case KEY_DIR_LOG_ITEM:
	case KEY_DIR_LOG_INDEX:
		return to->range;
	case KEY_XATTR_ITEM:
		return to->attribute;
	case KEY_EXTENT_DATA:
		return to->extent;
	case KEY_EXTENT_CSUM:
		return to->csums;
	default:
		return false;
	}
}

/* The item is valid, and wanted. */
static int take(struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	switch (at->item->key.type) {
	case KEY_ROOT_ITEM:
		return take_tree(r, at, err);
	case KEY_INODE_ITEM:
		return take_inode(r, at, err);
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		return take_names(r, at, err);
	case KEY_DIR_LOG_ITEM:
	case KEY_DIR_LOG_INDEX:
		return take_range(r, at, err);
	case KEY_EXTENT_DATA:
		return take_extent(r, at, err);
	case KEY_EXTENT_CSUM:
		return take_csums(r, at, err);
	default:
		return take_entries(r, at, err);
	}
}

static int report_invalid(const struct reader *r, const struct sweep_log_item *at, int ret, struct btrkit_error *what,
			  struct btrkit_error *err)
{
	err_at_tree(what, OID_TREE_LOG);
	err_at_logical(what, at->leaf->bytenr);
	err_at_item(what, at->slot, &at->item->key);
	return r->to->invalid ? r->to->invalid(r->to->ctx, at, ret, what, err) : 0;
}

static int take_item(struct reader *r, const struct sweep_log_item *at, struct btrkit_error *err)
{
	const bool wanted = is_wanted(r, at->item->key.type);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	bool go_on = wanted;
	int ret;

	if (!wanted && !r->to->item)
		return 0;
	ret = item_validate(&r->items, at->item, &what);
	if (ret)
		return report_invalid(r, at, ret, &what, err);
	if (r->to->item)
		ret = r->to->item(r->to->ctx, at, r->top, &go_on, err);
	return ret || !go_on || !wanted ? ret : take(r, at, err);
}

static int take_leaf(void *ctx, const struct node *leaf, struct btrkit_error *err)
{
	struct reader *r = ctx;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		const struct sweep_log_item at = { leaf, i, &item };

		if (!i && r->any && r->to->disorder && key_cmp(&item.key, &r->last) <= 0)
			ret = r->to->disorder(r->to->ctx, &at, err);
		r->any = true;
		r->last = item.key;
		if (!ret)
			ret = take_item(r, &at, err);
	}
	return ret;
}

static int read_tree(struct reader *r, const struct tree_root *root, bool top, struct btrkit_error *err)
{
	bool read = true;
	int ret = r->to->begin ? r->to->begin(r->to->ctx, root, top, &read, err) : 0;

	if (ret || !read)
		return ret;
	r->top = top;
	r->any = false;
	ret = sweep_each_leaf(r->from, root, take_leaf, r, err);
	return ret || !r->to->end ? ret : r->to->end(r->to->ctx, root, top, err);
}

int sweep_logs(const struct btrkit_fs *fs, const struct sweep_blocks *from, const struct sweep_log_events *to,
	       struct btrkit_error *err)
{
	const struct super *super = &fs->super;
	/* Log trees have the generation of the next commit. */
	const struct tree_root root = { OID_TREE_LOG, 0, super->log_root, super->generation + 1,
					super->log_root_level };
	struct reader r = { .from = from, .to = to, .items = fs->items };
	int ret;

	if (!super->log_root)
		return 0;
	r.items.owner = OID_TREE_LOG;
	ret = read_tree(&r, &root, true, err);
	for (size_t i = 0; !ret && i < r.trees.n; i++) {
		/* A copy, because no event may change the list meanwhile. */
		const struct tree_root log = ((const struct tree_root *)r.trees.at)[i];

		ret = read_tree(&r, &log, false, err);
	}
	free(r.trees.at);
	return ret;
}
