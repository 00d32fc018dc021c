// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_defects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/commit/csums.h"
#include "lib/commit/data.h"
#include "lib/commit/refs.h"
#include "lib/commit/supers.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/super.h"
#include "lib/modify/data.h"
#include "lib/modify/roots.h"
#include "lib/tree/cursor.h"
#include "planted.h"

enum {
	NO_FIRST_FLUSH,
	NO_LAST_FLUSH,
	DATA_LATE,
	IN_PLACE,
	KEPT_SHARED,
	PINNED_REUSED,
	NO_CSUM,
	CSUMS_STAY,
	DATA_REF_STAYS,
	DATA_REF_MISSING,
	INODE_DROPPED,
	NO_DIR_ITEM,
	NO_DIR_INDEX,
	NO_INODE_REF,
	NAME_STAYS,
	DIR_NOT_PUT,
	BYTES_NOT_COUNTED,
	NO_ORPHAN,
	ORPHAN_EARLY,
	NO_DROP_PROGRESS,
	DEAD_ALIVE,
	NUM_REPLACED,
};

static bool data_last(struct log *log, const struct disks *before);

#define WRITE "write, regular, 4K"
#define CREATE "create, 4K"
#define UNLINK "unlink, 64K"
#define LARGE "large files, 4K"
#define STEPS "a subvolume deleted in steps, 4K"

const struct defect defects[] = {
	[NO_FIRST_FLUSH] = { "no flush between data and superblock", WRITE },
	[NO_LAST_FLUSH] = { "no flush at the end of a commit in between", LARGE },
	[DATA_LATE] = { "data is written after the superblock", WRITE },
	[IN_PLACE] = { "committed data is overwritten", "write, nodatacow, 4K" },
	[KEPT_SHARED] = { "space that a snapshot keeps too is written", "prealloc, 16K" },
	[PINNED_REUSED] = { "freed space is used again in the same transaction", "rename, 4K" },
	[NO_CSUM] = { "a checksum item is missing", "write, compressed, 16K" },
	[CSUMS_STAY] = { "checksums of freed data stay", "truncate, 4K" },
	[DATA_REF_STAYS] = { "a reference to data is not dropped", "punch, 64K" },
	[DATA_REF_MISSING] = { "a clone has no reference", "clone, 4K" },
	[INODE_DROPPED] = { "what waits of an inode is dropped", CREATE },
	[NO_DIR_ITEM] = { "an index item without a DIR_ITEM", CREATE },
	[NO_DIR_INDEX] = { "a DIR_ITEM without an index item", "threads, 4K" },
	[NO_INODE_REF] = { "an entry of which the inode does not know", "rename, 4K" },
	[NAME_STAYS] = { "the entry of what is gone stays", UNLINK },
	[DIR_NOT_PUT] = { "a directory's size stays as it was", "directories, 16K" },
	[BYTES_NOT_COUNTED] = { "an inode does not count its bytes", WRITE },
	[NO_ORPHAN] = { "no orphan item for what goes in steps", LARGE },
	[ORPHAN_EARLY] = { "the orphan item goes before the last step", LARGE },
	[NO_DROP_PROGRESS] = { "how far a subvolume is dropped is not noted", STEPS },
	[DEAD_ALIVE] = { "a subvolume that is dropped has references", STEPS },
	/* Defects of the write log. */
	{ "data reaches the device last", WRITE, .doctor = data_last },
};
const unsigned num_defects = sizeof(defects) / sizeof(defects[0]);
const int planted_reuse = PINNED_REUSED;

static unsigned flushes; /* in this commit */
static uint64_t chosen;
static uint8_t nowhere[1 << 17];

/* Data writes that are held back until after the superblock. */
static struct late {
	uint64_t logical;
	size_t len;
	uint8_t *data;
} late[64];
static unsigned num_late;

void defects_plant(int number)
{
	planted_begin(number);
	num_late = flushes = 0;
	chosen = 0;
}

void defects_commit(void)
{
	planted_commit();
	flushes = 0;
}

bool defects_planted(void)
{
	return planted_seen() || planted_now >= NUM_REPLACED;
}

/* Moves the first write, a data write, to the end of the first commit. */
static bool data_last(struct log *log, const struct disks *before)
{
	size_t end = 0;

	(void)before;
	while (end < log->n && log->events[end].kind != EVENT_MARK)
		end++;
	if (end == log->n || log->events[0].kind != EVENT_WRITE)
		return false;
	log_put(log, end - 1, log_take(log, 0));
	return true;
}

WRAPPED(int, btrkit_io_flush, struct btrkit_io *io, struct btrkit_error *err)
{
	if (planted_now == NO_FIRST_FLUSH && !flushes++ && planted_wrong(NO_FIRST_FLUSH, 0))
		return 0;
	if (planted_now == NO_LAST_FLUSH && flushes++ % 3 && planted_wrong(NO_LAST_FLUSH, 0))
		return 0;
	return __real_btrkit_io_flush(io, err);
}

/* Address of the first data extent without checksums in the top-level subvolume, to be overwritten in place. */
static uint64_t committed_data(struct btrkit_fs *fs, size_t len)
{
	struct inode_item inode = { 0 };
	struct file_extent fe;
	struct tree_root root;
	uint64_t ret = 0;
	struct cursor c;

	if (fs_find_root(fs, OID_FS_TREE, &root, NULL, NULL))
		return 0;
	cursor_init(&c, fs, &root);
	for (int r = cursor_seek(&c, &KEY(257, 0, 0), NULL); !r && !ret; r = cursor_next(&c, NULL)) {
		if (c.item.key.type == KEY_INODE_ITEM && inode_item_decode(&fs->items, &c.item, &inode, NULL))
			break;
		if (c.item.key.type == KEY_EXTENT_DATA && inode.flags & INODE_NODATASUM &&
		    !file_extent_decode(&fs->items, &c.item, &fe, NULL) &&
		    fe.type == FILE_EXTENT_REG && fe.disk_num_bytes >= len)
			ret = fe.disk_bytenr;
	}
	cursor_release(&c);
	return ret;
}

WRAPPED(int, txn_write_data, struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len,
	struct btrkit_error *err)
{
	uint64_t other;

	if (num_late < 64 && planted_wrong(DATA_LATE, 0)) {
		late[num_late] = (struct late){ logical, len, malloc(len) };
		if (!late[num_late].data)
			exit(99);
		memcpy(late[num_late++].data, data, len);
		return 0;
	}
	if (planted_now == IN_PLACE && (other = committed_data(txn->fs, len)) && planted_wrong(IN_PLACE, 1))
		if (__real_txn_write_data(txn, other, data, len, err))
			exit(99);
	return __real_txn_write_data(txn, logical, data, len, err);
}

/* Skips the check: the superblock that it would find is the one of the commit in progress. */
WRAPPED(int, commit_supers_check, const struct btrkit_fs *fs, struct btrkit_error *err)
{
	return num_late ? 0 : __real_commit_supers_check(fs, err);
}

WRAPPED(int, commit_supers_write, struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
	struct btrkit_error *err)
{
	int ret = __real_commit_supers_write(txn, s, mirror, err);

	for (unsigned i = 0; !ret && i < num_late; i++) {
		ret = __real_txn_write_data(txn, late[i].logical, late[i].data, late[i].len, err);
		free(late[i].data);
	}
	num_late = 0;
	return ret;
}

WRAPPED(int, data_is_own, struct op *op, uint64_t inode, const struct extent_at *x, struct btrkit_error *err)
{
	const int ret = __real_data_is_own(op, inode, x, err);

	return ret == 1 && planted_wrong(KEPT_SHARED, 0) ? 0 : ret;
}

WRAPPED(int, csums_add, struct btrkit_txn *txn, uint64_t logical, const uint8_t *sums, size_t size,
	struct btrkit_error *err)
{
	return planted_wrong(NO_CSUM, 2) ? 0 : __real_csums_add(txn, logical, sums, size, err);
}

WRAPPED(int, csums_trim, struct btrkit_txn *txn, const struct range *dead, struct btrkit_error *err)
{
	return planted_wrong(CSUMS_STAY, 0) ? 0 : __real_csums_trim(txn, dead, err);
}

WRAPPED(int, refs_change, struct refs *r, const struct extent_change *change, struct btrkit_error *err)
{
	if (change->data && change->add < 0 && planted_wrong(DATA_REF_STAYS, 2))
		return 0;
	if (change->data && change->add > 0 && planted_wrong(DATA_REF_MISSING, 1))
		return 0;
	return __real_refs_change(r, change, err);
}

/* @return whether to drop the item instead of inserting it */
static bool leave_out(const struct btrkit_key *key)
{
	if (planted_now == INODE_DROPPED && key->type == KEY_INODE_ITEM && !chosen && planted_wrong(INODE_DROPPED, 5))
		chosen = key->objectid;
	if (chosen && planted_now == INODE_DROPPED && key->objectid == chosen)
		return true;
	if (planted_now == ORPHAN_EARLY && key->type == KEY_ORPHAN_ITEM && !chosen && planted_wrong(ORPHAN_EARLY, 1))
		chosen = key->offset;
	return (key->type == KEY_DIR_ITEM && planted_wrong(NO_DIR_ITEM, 3)) ||
	       (key->type == KEY_DIR_INDEX && planted_wrong(NO_DIR_INDEX, 3)) ||
	       (key->type == KEY_INODE_REF && planted_wrong(NO_INODE_REF, 2)) ||
	       (key->type == KEY_ORPHAN_ITEM && planted_wrong(NO_ORPHAN, 0));
}

WRAPPED(int, delayed_insert, struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
	uint8_t **ret, struct btrkit_error *err)
{
	if (planted_now < 0 || !leave_out(key))
		return __real_delayed_insert(t, key, data, size, ret, err);
	if (ret)
		*ret = nowhere;
	return 0;
}

WRAPPED(int, delayed_delete, struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	if (planted_now == NO_ORPHAN && key->type == KEY_ORPHAN_ITEM)
		return 0;
	if (key->type == KEY_DIR_ITEM && planted_wrong(NAME_STAYS, 1))
		return 0;
	if (planted_now == ORPHAN_EARLY && chosen && key->type == KEY_ORPHAN_ITEM)
		return 0;
	if (planted_now == ORPHAN_EARLY && chosen == key->objectid) {
		chosen = 1;
		if (__real_delayed_delete(t, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, key->objectid), err))
			exit(99);
	}
	return __real_delayed_delete(t, key, err);
}

WRAPPED(int, op_inode_put, struct op *op, struct op_inode *in, struct btrkit_error *err)
{
	return S_ISDIR(op_inode_mode(in)) && planted_wrong(DIR_NOT_PUT, 1) ? 0 : __real_op_inode_put(op, in, err);
}

WRAPPED(int, extents_put, struct op *op, struct op_inode *in, uint64_t offset, const struct file_extent *fe,
	struct btrkit_error *err)
{
	const le64 before = in->item.nbytes;
	const int ret = __real_extents_put(op, in, offset, fe, err);

	if (planted_wrong(BYTES_NOT_COUNTED, 2))
		in->item.nbytes = before;
	return ret;
}

WRAPPED(int, roots_put, struct btrkit_txn *txn, const struct roots_item *item, struct btrkit_error *err)
{
	struct roots_item other = *item;

	if (!le32_get(item->d.refs) && le64_get(item->d.drop_progress.objectid) && planted_wrong(NO_DROP_PROGRESS, 0))
		memset(&other.d.drop_progress, 0, sizeof(other.d.drop_progress));
	if (!le32_get(item->d.refs) && planted_wrong(DEAD_ALIVE, 0))
		other.d.refs = le32_put(1);
	return __real_roots_put(txn, &other, err);
}
