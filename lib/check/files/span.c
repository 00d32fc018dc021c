// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes spans from leaves, and merges them. */
#include "lib/check/files/span.h"

#include <inttypes.h>

#include "lib/check/files/file_refs.h"
#include "lib/check/files/inode.h"
#include "lib/check/files/span_dir.h"
#include "lib/check/files/span_file.h"
#include "lib/check/files/unknown.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/format/items/files/verity.h"

static struct span_inode *last_of(struct span *s)
{
	return s->last.seen ? &s->last : &s->first;
}

/* Starts an inode. The one before it is complete, unless it is the first of the leaf. */
static void begin_inode(struct span_reader *r, uint64_t objectid)
{
	struct span *s = r->span;

	if (s->last.seen)
		span_check(r->c, r->leaf->owner, s, &s->last);
	r->inode = s->first.seen ? &s->last : &s->first;
	*r->inode = (struct span_inode){ .objectid = objectid, .seen = SEEN_INODE, .gap = UINT64_MAX };
}

/* Suppresses findings that would only follow from a damaged item. */
static void doubt(struct span_reader *r)
{
	r->span->flags |= SPAN_DOUBT;
	if (r->inode)
		r->inode->seen |= SEEN_DOUBT;
}

static void verity_desc(struct span_reader *r, const struct item *item)
{
	r->inode->seen |= SEEN_VERITY;
	if (item->key.offset) {
		r->inode->verity += item->size;
		return;
	}
	r->inode->seen |= SEEN_VERITY_DESC;
	r->inode->verity -= (uint32_t)le64_get(((const struct disk_verity_desc *)item->data)->size);
}

/* @return whether the item belongs to no inode */
static bool is_without_inode(const struct item *item)
{
	return (item->key.type == KEY_ORPHAN_ITEM && item->key.objectid == OID_ORPHAN) ||
	       (!item->key.type && item->key.objectid == OID_FREE_SPACE);
}

static void take(struct span_reader *r, const struct item *item)
{
	const struct check_location at = { r->leaf->owner, r->leaf->bytenr, &item->key, "key.type" };

	switch (item->key.type) {
	case KEY_INODE_ITEM:
		span_inode_item(r, item);
		break;
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		span_refs(r, item);
		break;
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
		span_entries(r, item);
		break;
	case KEY_XATTR_ITEM:
		span_xattrs(r, item);
		break;
	case KEY_EXTENT_DATA:
		span_extent(r, item);
		break;
	case KEY_VERITY_DESC_ITEM:
		verity_desc(r, item);
		break;
	case KEY_VERITY_MERKLE_ITEM:
		r->inode->seen |= SEEN_VERITY;
		break;
	default:
		check_report_at(r->c, CHECK_ITEM_TREE, &at, "unexpected item of type %u in a file tree",
				item->key.type);
		doubt(r);
	}
}

void span_leaf(struct check *c, const struct node *leaf, bool full_backref, struct check_hints *hints, struct span *ret)
{
	struct span_reader r = { c, leaf, full_backref, hints, ret, NULL };
	struct item_ctx ctx = c->items;

	*ret = (struct span){ 0 };
	ctx.owner = leaf->owner;
	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		const bool alone = is_without_inode(&item);

		if (!item_type_find(&item.key)) {
			check_unknown_item(c, leaf->owner, leaf, &item);
			continue;
		}
		if (!alone && (!r.inode || r.inode->objectid != item.key.objectid))
			begin_inode(&r, item.key.objectid);
		if (item_validate(&ctx, &item, &err) < 0) {
			err_at_tree(&err, leaf->owner);
			err_at_logical(&err, leaf->bytenr);
			err_at_item(&err, i, &item.key);
			check_report(c, check_code_of_invalid(&item.key), &err);
			doubt(&r);
		} else if (!alone) {
			take(&r, &item);
		}
	}
}

/* Merges the parts of an inode that was split between two spans. */
static void add(struct check *c, uint64_t tree, struct span_inode *to, const struct span_inode *more)
{
	if (more->seen & SEEN_ITEM && !(to->seen & SEEN_ITEM)) {
		to->size = more->size;
		to->nbytes = more->nbytes;
		to->flags = more->flags;
		to->nlink = more->nlink;
		to->mode = more->mode;
	}
	if (more->seen & SEEN_EXTENTS)
		span_add_extents(c, tree, to, more->begin, more->end, more->gap);
	else if (!(to->seen & SEEN_EXTENTS))
		to->indexed += more->indexed;
	to->seen |= more->seen;
	to->names += more->names;
	to->name_hash += more->name_hash;
	to->bytes += more->bytes;
	to->verity += more->verity;
	to->children += more->children;
	to->entries += more->entries;
}

/* Merges the flags. Inodes next to something lost are in doubt. */
static void join_flags(struct span *left, struct span *right)
{
	uint32_t flags = (left->flags | right->flags) & (SPAN_LOST | SPAN_DOUBT | SPAN_RISING);

	if (left->flags & SPAN_GAP_RIGHT && right->first.seen)
		right->first.seen |= SEEN_DOUBT;
	if (right->flags & SPAN_GAP_LEFT && left->first.seen)
		last_of(left)->seen |= SEEN_DOUBT;
	flags |= left->flags & SPAN_GAP_LEFT;
	flags |= right->flags & SPAN_GAP_RIGHT;
	if (!left->first.seen)
		flags |= right->flags & SPAN_GAP_LEFT;
	if (!right->first.seen)
		flags |= left->flags & SPAN_GAP_RIGHT;
	left->flags = flags;
}

void span_join(struct check *c, uint64_t tree, struct span *left, const struct span *other)
{
	struct span right = *other;

	join_flags(left, &right);
	left->names += right.names;
	left->entries += right.entries;
	left->orphans += right.orphans;
	left->dirs += right.dirs;
	if (!right.first.seen)
		return;
	if (!left->first.seen) {
		left->first = right.first;
		left->last = right.last;
		return;
	}
	if (last_of(left)->objectid == right.first.objectid) {
		add(c, tree, last_of(left), &right.first);
		if (!right.last.seen)
			return;
		if (left->last.seen)
			span_check(c, tree, left, &left->last);
		left->last = right.last;
		return;
	}
	if (left->last.seen)
		span_check(c, tree, left, &left->last);
	if (right.last.seen)
		span_check(c, tree, left, &right.first);
	left->last = right.last.seen ? right.last : right.first;
}

void span_lost(struct span *ret)
{
	*ret = (struct span){ .flags = SPAN_LOST | SPAN_GAP_LEFT | SPAN_GAP_RIGHT };
}
