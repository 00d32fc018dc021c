// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the inodes and names of a log tree, together with its subvolume. */
#include <string.h>
#include <sys/stat.h>

#include "lib/base/crc32c.h"
#include "lib/check/codes.h"
#include "lib/check/files/span.h"
#include "lib/check/files/unknown.h"
#include "lib/check/findings.h"
#include "lib/check/log/log_data.h"
#include "lib/check/log/log_files.h"
#include "lib/check/log/log_state.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/format/items/files/dir.h"
#include "lib/sweep/log.h"

#define MODE_NONE 0u		/* the inode does not exist */
#define MODE_UNKNOWN UINT32_MAX /* the inode cannot be read */

/* Returns the mode of an inode in the subvolume. */
static uint32_t committed_mode(struct log *l, uint64_t objectid)
{
	struct inode_item i;
	int ret;

	if (!l->has_subvolume)
		return MODE_UNKNOWN;
	if (l->asked == objectid)
		return l->answer;
	ret = check_find(l->c, &l->subvolume, &KEY(objectid, KEY_INODE_ITEM, 0));
	l->asked = objectid;
	l->answer = ret ? MODE_NONE : MODE_UNKNOWN;
	if (ret < 0)
		l->answer = MODE_UNKNOWN;
	else if (!ret && l->subvolume.item.size >= sizeof(struct disk_inode_item)) {
		inode_item_get((const struct disk_inode_item *)l->subvolume.item.data, &i);
		l->answer = i.mode & S_IFMT ? i.mode : MODE_UNKNOWN;
	}
	return l->answer;
}

static void report_log_item(struct log *l, enum check_code code, const struct node *leaf, const struct item *item,
			    const char *field, const char *message)
{
	log_report(l, code, leaf->bytenr, &item->key, field, message);
}

int log_files_inode(void *ctx, const struct sweep_log_item *at, const struct inode_item *i, struct btrkit_error *err)
{
	struct log *l = ctx;
	const uint64_t objectid = at->item->key.objectid;
	const uint32_t there = committed_mode(l, objectid);
	struct log_mode *to = check_list_add(l->c, &l->modes, sizeof(*to));

	(void)err;
	l->inode.item = true;
	l->inode.mode = i->mode;
	l->inode.flags = i->flags;
	if (to)
		*to = (struct log_mode){ objectid, i->mode };
	if (i->flags & ~(INODE_FLAGS_KNOWN | INODE_VERITY))
		report_log_item(l, CHECK_INODE_FLAGS, at->leaf, at->item, "flags", "unknown inode flags in a log tree");
	if (i->uid == UINT32_MAX || i->gid == UINT32_MAX)
		report_log_item(l, CHECK_INODE_OWNER, at->leaf, at->item, i->uid == UINT32_MAX ? "uid" : "gid",
				"invalid user ID or group ID of an inode in a log tree");
	/* The file type of an inode never changes. */
	if (there != MODE_NONE && there != MODE_UNKNOWN && (there ^ i->mode) & S_IFMT)
		report_log_item(l, CHECK_LOG_INODE, at->leaf, at->item, "mode",
				"inode in a log tree has a different file type than in its subvolume");
	return 0;
}

/* Linux cannot replay items of an inode that neither the log nor the subvolume has. */
static void first_of_inode(struct log *l, const struct node *leaf, const struct item *item)
{
	const uint32_t there = committed_mode(l, item->key.objectid);

	l->inode.mode = there == MODE_UNKNOWN ? 0 : there;
	if (there == MODE_NONE && !l->inode.doubt && !l->lost)
		report_log_item(l, CHECK_LOG_INODE, leaf, item, "key.objectid",
				"item in a log tree, whose inode is neither in the log nor in the subvolume");
}

static bool fits_kind(const struct log *l, uint8_t type)
{
	const uint32_t mode = l->inode.mode;

	switch (mode ? type : 0) {
	case KEY_EXTENT_DATA:
		return S_ISREG(mode) || S_ISLNK(mode);
	case KEY_DIR_LOG_ITEM:
	case KEY_DIR_LOG_INDEX:
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
		return S_ISDIR(mode);
	default:
		return true;
	}
}

static void check_later(struct log *l, const struct node *leaf, const struct item *item, uint64_t directory,
			uint64_t other)
{
	struct log_name *to = check_list_add(l->c, &l->names, sizeof(*to));

	if (to)
		*to = (struct log_name){ directory, leaf->bytenr, other, item->key };
}

/* Returns the inode that has the index of the name in the subvolume, under another name; 0: none. */
static uint64_t index_taken(struct log *l, const struct inode_ref *ref)
{
	const struct btrkit_key key = { ref->parent, KEY_DIR_INDEX, ref->index };
	struct dir_entry e;
	struct dir_iter it;

	if (check_find(l->c, &l->subvolume, &key))
		return 0;
	it = dir_first(&l->subvolume.item);
	if (dir_next(&it, &e, NULL) || (e.name_len == ref->name_len && !memcmp(e.name, ref->name, e.name_len)))
		return 0;
	return e.location.type == KEY_INODE_ITEM ? e.location.objectid : 0;
}

/* Replay adds a new name to its directory, so its index must be unused there. */
static void check_parent(struct log *l, const struct node *leaf, const struct item *item, const struct inode_ref *ref)
{
	const uint32_t there = committed_mode(l, ref->parent);
	uint64_t other;

	if (there == MODE_NONE) {
		check_later(l, leaf, item, ref->parent, 0);
	} else if (there != MODE_UNKNOWN && !S_ISDIR(there)) {
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "parent",
				"parent of a name in a log tree is not a directory");
	} else if (there != MODE_UNKNOWN) {
		other = index_taken(l, ref);
		if (other)
			check_later(l, leaf, item, ref->parent, other);
	}
}

int log_files_ref(void *ctx, const struct sweep_log_item *at, const struct inode_ref *ref, struct btrkit_error *err)
{
	struct log *l = ctx;
	const struct node *leaf = at->leaf;
	const struct item *item = at->item;
	const uint64_t objectid = item->key.objectid;

	(void)err;
	if (item->key.type == KEY_INODE_EXTREF &&
	    item->key.offset != crc32c((uint32_t)ref->parent, ref->name, ref->name_len))
		report_log_item(l, CHECK_NAME_HASH, leaf, item, "key.offset",
				"name in a log tree is not at the key that its hash gives");
	if (span_is_dotdot(ref, objectid))
		return 0;
	if (!dir_name_possible(ref->name, ref->name_len))
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "name", "invalid name in a log tree");
	if (!span_index_possible(ref->index))
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "index", "invalid index of a name in a log tree");
	if (ref->parent < OID_FIRST_FREE || ref->parent > OID_LAST_FREE || ref->parent == objectid)
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "parent", "invalid parent of a name in a log tree");
	else
		check_parent(l, leaf, item, ref);
	return 0;
}

/* The target of a directory entry need not exist: Linux skips such entries. */
int log_files_entry(void *ctx, const struct sweep_log_item *at, unsigned number, const struct dir_entry *e,
		    struct btrkit_error *err)
{
	struct log *l = ctx;
	const struct node *leaf = at->leaf;
	const struct item *item = at->item;
	const bool index = item->key.type == KEY_DIR_INDEX;

	(void)err;
	if (index && !number && !span_index_possible(item->key.offset))
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "key.offset",
				"invalid index of a directory entry in a log tree");
	if (!dir_name_possible(e->name, e->name_len))
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "name",
				"invalid name of a directory entry in a log tree");
	if (index && number == 1)
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "item_size",
				"several names with the same index in a log tree");
	if (!e->location.type)
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "location",
				"location of a directory entry in a log tree has no type");
	if (e->location.type == KEY_ROOT_ITEM && e->type != FT_DIR)
		report_log_item(l, CHECK_LOG_NAME, leaf, item, "type",
				"entry of a subvolume in a log tree does not have type directory");
	return 0;
}

int log_files_range(void *ctx, const struct sweep_log_item *at, uint64_t first, uint64_t last, struct btrkit_error *err)
{
	(void)err;
	if (last < first)
		report_log_item(ctx, CHECK_LOG_NAME, at->leaf, at->item, "end",
				"directory range in a log tree ends before it begins");
	return 0;
}

/* Returns whether Linux copies items of this type from a subvolume, or creates them for logs. */
static bool belongs(uint8_t type)
{
	switch (type) {
	case KEY_INODE_ITEM:
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
	case KEY_XATTR_ITEM:
	case KEY_VERITY_DESC_ITEM:
	case KEY_VERITY_MERKLE_ITEM:
	case KEY_DIR_LOG_ITEM:
	case KEY_DIR_LOG_INDEX:
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
	case KEY_EXTENT_DATA:
	case KEY_EXTENT_CSUM:
		return true;
	default:
		return false;
	}
}

static void begin_inode(struct log *l, uint64_t objectid)
{
	if (!l->inode.any || l->inode.objectid != objectid)
		l->inode = (struct log_inode){ .objectid = objectid, .any = true };
}

bool log_files_item(struct log *l, const struct node *leaf, const struct item *item)
{
	if (item->key.type == KEY_EXTENT_CSUM)
		return true;
	if (!item_type_find(&item->key)) {
		check_unknown_item(l->c, OID_TREE_LOG, leaf, item);
		return false;
	}
	if (!belongs(item->key.type)) {
		report_log_item(l, CHECK_ITEM_TREE, leaf, item, "key.type", "item type does not belong in a log tree");
		return false;
	}
	if (!l->inode.any || l->inode.objectid != item->key.objectid) {
		begin_inode(l, item->key.objectid);
		if (item->key.type != KEY_INODE_ITEM)
			first_of_inode(l, leaf, item);
	}
	if (!fits_kind(l, item->key.type))
		report_log_item(l, CHECK_LOG_INODE, leaf, item, "key.type",
				"item type in a log tree does not fit the file type of its inode");
	return true;
}

void log_files_doubt(struct log *l, const struct item *item)
{
	begin_inode(l, item->key.objectid);
	l->inode.doubt = true;
	/* The item may have held checksums that would otherwise be reported as missing. */
	if (item->key.type == KEY_EXTENT_CSUM)
		l->lost = true;
}

void log_files_begin(struct log *l, uint64_t subvolume)
{
	const struct check_root *root = check_find_root(l->c, subvolume);

	l->inode = (struct log_inode){ .any = false };
	l->first_sum = l->c->log_sums.n;
	l->asked = 0;
	l->answer = MODE_NONE;
	l->has_subvolume = root && !root->drop.begun;
	if (l->has_subvolume)
		cursor_init(&l->subvolume, l->c->fs, &root->root);
}

/* Returns the mode of an inode in the log. */
static uint32_t logged_mode(const struct log *l, uint64_t objectid)
{
	const struct log_mode *modes = l->modes.at;
	size_t low = 0, high = l->modes.n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (modes[mid].objectid < objectid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->modes.n && modes[low].objectid == objectid ? modes[low].mode : MODE_NONE;
}

/*
 * Linux skips a name whose directory does not exist. If the index is in use, the old name may be removed before the new
 * one is added, provided that the log has items of that inode or of the directory. Otherwise the mount fails. Linux
 * itself writes such logs when it reuses the index of a deleted name.
 */
static void check_name(struct log *l, const struct log_name *n)
{
	const uint32_t mode = logged_mode(l, n->directory);

	if (!n->other && mode != MODE_NONE && !S_ISDIR(mode))
		log_report(l, CHECK_LOG_NAME, n->leaf, &n->key, "parent",
			   "parent of a name in a log tree is not a directory");
	if (n->other && mode == MODE_NONE && logged_mode(l, n->other) == MODE_NONE && !l->lost)
		log_report(l, CHECK_LOG_NAME, n->leaf, &n->key, "index",
			   "index of a name in a log tree belongs to another name in its directory");
}

void log_files_end(struct log *l)
{
	const struct log_name *names = l->names.at;

	for (size_t i = 0; i < l->names.n; i++)
		check_name(l, &names[i]);
	log_data_end(l);
	l->names.n = l->modes.n = 0;
	if (l->has_subvolume)
		cursor_release(&l->subvolume);
	l->has_subvolume = false;
}
