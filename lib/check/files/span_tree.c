// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks file trees as a whole. */
#include "lib/check/files/inode.h"
#include "lib/check/files/names.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_tree.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"

/* Reads an INODE_ITEM. @return 0; 1: there is none; <0 */
static int read_inode(struct check *c, struct cursor *cur, uint64_t objectid, struct inode_item *ret)
{
	const struct btrkit_key key = { objectid, KEY_INODE_ITEM, 0 };
	int r = check_find(c, cur, &key);

	if (!r && cur->item.size < sizeof(struct disk_inode_item))
		r = -EUCLEAN;
	if (!r)
		inode_item_get((const struct disk_inode_item *)cur->item.data, ret);
	return r;
}

static int next_item(struct check *c, struct cursor *cur, const struct btrkit_key *after)
{
	struct btrkit_key key = *after;

	if (!++key.offset && !++key.type && !++key.objectid)
		return 1;
	return check_seek(c, cur, &key);
}

/* Sums up the inodes without links that have orphan items. @return 0; <0 */
static int sum_orphans(struct check *c, struct cursor *cur, uint64_t *sum)
{
	struct btrkit_key key = { OID_ORPHAN, KEY_ORPHAN_ITEM, 0 };
	int ret = check_seek(c, cur, &key);

	*sum = 0;
	while (!ret && cur->item.key.objectid == OID_ORPHAN && cur->item.key.type == KEY_ORPHAN_ITEM) {
		struct inode_item inode;

		key = cur->item.key;
		ret = read_inode(c, cur, key.offset, &inode);
		if (!ret && !inode.nlink && key.offset != OID_FIRST_FREE)
			*sum += check_hash(c, HASH_ORPHAN, &key.offset, 1, NULL, 0);
		if (ret >= 0)
			ret = next_item(c, cur, &key);
	}
	return ret < 0 ? ret : 0;
}

/* Reports each inode without links or an orphan item. The top directory is checked elsewhere. */
static void report_orphans(struct check *c, const struct check_root *root, struct cursor *cur)
{
	const struct btrkit_key first = { OID_FIRST_FREE + 1, KEY_INODE_ITEM, 0 };
	int ret = check_seek(c, cur, &first);

	while (!ret && cur->item.key.objectid <= OID_LAST_FREE && !check_failed(c)) {
		const struct btrkit_key orphan = { OID_ORPHAN, KEY_ORPHAN_ITEM, cur->item.key.objectid };
		const struct btrkit_key key = { cur->item.key.objectid, KEY_INODE_ITEM, 0 };
		const struct check_location at = { root->root.id, 0, &key, "nlink" };
		struct inode_item inode;

		ret = read_inode(c, cur, key.objectid, &inode);
		if (!ret && !inode.nlink && check_find(c, cur, &orphan) == 1)
			check_report_at(c, CHECK_INODE_ORPHAN, &at, "inode has neither links nor an orphan item");
		if (ret >= 0)
			ret = check_seek(c, cur, &(struct btrkit_key){ key.objectid + 1, KEY_INODE_ITEM, 0 });
	}
}

static void check_orphans(struct check *c, const struct check_root *root, uint64_t orphans)
{
	struct cursor cur;
	uint64_t sum;

	cursor_init(&cur, c->fs, &root->root);
	if (!sum_orphans(c, &cur, &sum) && sum != orphans)
		report_orphans(c, root, &cur);
	cursor_release(&cur);
}

/* Checks that the first inode of a tree is its top directory. */
static void check_top(struct check *c, const struct check_root *root, const struct span *all)
{
	const struct btrkit_key key = { OID_FIRST_FREE, KEY_INODE_ITEM, 0 };
	const struct check_location at = { root->root.id, 0, &key, NULL };
	struct inode_item inode;
	struct cursor cur;
	int ret = 0;

	if (all->first.seen && all->first.objectid == OID_FIRST_FREE)
		return;
	if (all->first.objectid < OID_FIRST_FREE) {
		cursor_init(&cur, c->fs, &root->root);
		ret = read_inode(c, &cur, OID_FIRST_FREE, &inode);
		cursor_release(&cur);
	} else {
		ret = 1;
	}
	if (ret == 1)
		check_report_at(c, CHECK_TREE_TOP, &at, "top directory is missing");
}

bool span_tree(struct check *c, const struct check_root *root, const struct span *all)
{
	struct span span = *all;

	if (span.flags & SPAN_GAP_LEFT && span.first.seen)
		span.first.seen |= SEEN_DOUBT;
	if (span.flags & SPAN_GAP_RIGHT && span.first.seen)
		(span.last.seen ? &span.last : &span.first)->seen |= SEEN_DOUBT;
	if (span.first.seen)
		span_check(c, root->root.id, &span, &span.first);
	if (span.last.seen)
		span_check(c, root->root.id, &span, &span.last);
	if (span.flags & (SPAN_LOST | SPAN_DOUBT))
		return false;
	check_top(c, root, &span);
	if (span.orphans)
		check_orphans(c, root, span.orphans);
	if (span.names || span.entries)
		span_names(c, root, &span);
	return !span.names && !span.entries;
}
