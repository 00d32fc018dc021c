// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads what a transaction has changed. Callbacks are called with no lock held, for copies of what was found. */
#include <btrkit/modify_read.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/inode.h"
#include "lib/modify/data.h"
#include "lib/modify/extents.h"
#include "lib/modify/names/names.h"

#define ENTRIES_AT_A_TIME 64u
#define BYTES_AT_A_TIME (1u << 20)

/* Begins to read an inode, and locks it. Ends with op_end(), unless it fails. */
static int begin(struct op *op, struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct op_inode *in,
		 struct btrkit_error *err)
{
	int ret = op_begin_reading(op, txn, root, err);

	if (ret)
		return ret;
	delayed_lock(op->t, &inode, 1, &op->locks);
	ret = op_inode_get(op, inode, in, err);
	return ret ? op_end(op, ret, err) : 0;
}

static int blame(const struct op *op, const struct btrkit_key *key, int ret, struct btrkit_error *err)
{
	if (ret < 0) {
		err_at_tree(err, op->t->id);
		err_at_key(err, key);
	}
	return ret;
}

int btrkit_txn_inode_get(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_inode *ret,
			 struct btrkit_error *err)
{
	struct inode_item item;
	struct item bytes;
	struct op_inode in;
	struct op op;
	int r = begin(&op, txn, root, inode, &in, err);

	if (r)
		return r;
	bytes = (struct item){ KEY(inode, KEY_INODE_ITEM, 0), (const uint8_t *)&in.item, sizeof(in.item) };
	r = blame(&op, &bytes.key, inode_item_decode(&txn->fs->items, &bytes, &item, err), err);
	if (!r)
		inode_describe(op.t->id, inode, &item, ret);
	return op_end(&op, r, err);
}

/* Entries that were found together. Their names are in @names. */
struct entries {
	struct btrkit_dir_entry rows[ENTRIES_AT_A_TIME];
	char names[ENTRIES_AT_A_TIME][NAME_LEN_MAX];
	unsigned n;
};

/* Adds the entry of a DIR_INDEX item, which has only one. */
static int add_entry(struct op *op, const struct op_inode *dir, const struct item *item, struct entries *all,
		     struct btrkit_error *err)
{
	struct btrkit_dir_entry *row = &all->rows[all->n];
	struct dir_iter it = dir_first(item);
	struct name_entry entry;
	struct dir_entry d;
	struct name name;
	int ret = dir_next(&it, &d, err);

	if (ret == 1)
		ret = err_corrupt(err, "item", "directory index without an entry");
	if (ret)
		return blame(op, &item->key, ret, err);
	memcpy(all->names[all->n], d.name, d.name_len);
	name = (struct name){ all->names[all->n], d.name_len };
	entry = (struct name_entry){ d.location, d.type };
	*row = (struct btrkit_dir_entry){ .name = name.bytes,
					  .name_len = name.len,
					  .root = op->t->id,
					  .inode = d.location.objectid,
					  .index = item->key.offset,
					  .type = dir_type_to_dirent(d.type) };
	if (d.location.type == KEY_ROOT_ITEM) {
		ret = name_is_subvolume(op, dir, &name, &entry, err);
		if (ret < 0)
			return ret;
		/* The root directory of a subvolume, or the empty directory that stands for one. */
		row->root = ret ? op->t->id : row->inode;
		row->inode = ret ? BTRKIT_EMPTY_SUBVOLUME : OID_FIRST_FREE;
	}
	all->n++;
	return 0;
}

/* @return 0: there may be more; 1: these are the last; <0 */
static int find_entries(struct op *op, const struct op_inode *dir, uint64_t after, struct entries *all,
			struct btrkit_error *err)
{
	int ret = op_check_is_dir(dir, err);

	for (all->n = 0; !ret && all->n < ENTRIES_AT_A_TIME; after = all->rows[all->n - 1].index) {
		struct item item;

		if (after == UINT64_MAX)
			return 1;
		ret = delayed_seek(op->t, &op->reader, &KEY(dir->inode, KEY_DIR_INDEX, after + 1), &item, err);
		if (!ret && item.key.type != KEY_DIR_INDEX)
			ret = 1;
		if (!ret)
			ret = blame(op, &item.key, item_validate(&op->txn->fs->items, &item, err), err);
		if (!ret)
			ret = add_entry(op, dir, &item, all, err);
		if (ret)
			break;
	}
	return ret;
}

int btrkit_txn_entries_after(struct btrkit_txn *txn, uint64_t root, uint64_t dir, uint64_t after,
			     btrkit_dir_entry_fn fn, void *ctx, struct btrkit_error *err)
{
	struct entries *all = malloc(sizeof(*all));
	int ret = all ? 0 : err_nomem(err);

	while (!ret) {
		struct op_inode in;
		struct op op;
		int r = 0;

		ret = begin(&op, txn, root, dir, &in, err);
		if (!ret)
			ret = op_end(&op, find_entries(&op, &in, after, all, err), err);
		if (ret < 0)
			break;
		for (unsigned i = 0; !r && i < all->n; i++) {
			after = all->rows[i].index;
			r = fn(ctx, &all->rows[i]);
		}
		ret = r ? r : ret;
	}
	free(all);
	return ret < 0 ? ret : 0;
}

/* The attributes of one item, whose names have the same hash. */
struct attributes {
	uint8_t *bytes;
	struct item item; /* its contents are in @bytes */
};

/* Copies the first item with attributes from @offset on. @return 0; 1: there is none; <0 */
static int find_attributes(struct op *op, uint64_t inode, uint64_t offset, struct attributes *ret,
			   struct btrkit_error *err)
{
	struct item item;
	int r = delayed_seek(op->t, &op->reader, &KEY(inode, KEY_XATTR_ITEM, offset), &item, err);

	if (r || item.key.type != KEY_XATTR_ITEM)
		return r ? r : 1;
	r = blame(op, &item.key, item_validate(&op->txn->fs->items, &item, err), err);
	if (r)
		return r;
	ret->bytes = malloc(item.size ? item.size : 1);
	if (!ret->bytes)
		return err_nomem(err);
	memcpy(ret->bytes, item.data, item.size);
	ret->item = (struct item){ item.key, ret->bytes, item.size };
	return 0;
}

static int report_attributes(const struct attributes *all, btrkit_xattr_fn fn, void *ctx, struct btrkit_error *err)
{
	struct dir_iter it = dir_first(&all->item);
	struct dir_entry e;
	int ret;

	while (!(ret = dir_next(&it, &e, err))) {
		const struct btrkit_xattr x = { (const char *)e.name, e.data, e.name_len, e.data_len };

		ret = fn(ctx, &x);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

int btrkit_txn_xattrs(struct btrkit_txn *txn, uint64_t root, uint64_t inode, btrkit_xattr_fn fn, void *ctx,
		      struct btrkit_error *err)
{
	uint64_t offset = 0;
	int ret = 0;

	do {
		struct attributes all = { 0 };
		struct op_inode in;
		struct op op;

		ret = begin(&op, txn, root, inode, &in, err);
		if (!ret)
			ret = op_end(&op, find_attributes(&op, inode, offset, &all, err), err);
		if (!ret) {
			offset = all.item.key.offset + 1;
			ret = report_attributes(&all, fn, ctx, err);
		}
		free(all.bytes);
	} while (!ret && offset);
	return ret < 0 ? ret : 0;
}

/* Reads the part of an extent that is in [@from, @to) of the file. @buf is for @from, and has zeros. */
static int read_extent(struct op *op, const struct op_inode *in, const struct extent_at *x, uint64_t from, uint64_t to,
		       uint8_t *buf, struct btrkit_error *err)
{
	const bool verify = !(le64_get(in->item.flags) & INODE_NODATASUM);
	uint64_t start = x->key.offset > from ? x->key.offset : from, end = x->end;

	if (x->fe.type == FILE_EXTENT_INLINE)
		end = x->key.offset + x->fe.ram_bytes;
	else if (x->fe.type == FILE_EXTENT_PREALLOC || !x->fe.disk_bytenr)
		return 0;
	end = end < to ? end : to;
	if (start >= end)
		return 0;
	return data_read_extent(op, x, start - x->key.offset, verify, buf + (start - from), (size_t)(end - start),
				err);
}

/* Reads what is there of @len bytes at @from. */
static int read_some(struct op *op, const struct op_inode *in, uint64_t from, uint8_t *buf, size_t len, size_t *got,
		     struct btrkit_error *err)
{
	const uint64_t size = le64_get(in->item.size), left = size > from ? size - from : 0;
	const uint64_t to = from + (len < left ? len : left);
	struct extent_at x;
	int ret = 0;

	if (!S_ISREG(op_inode_mode(in)) && !S_ISLNK(op_inode_mode(in)))
		return err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is neither a file nor a symbolic link",
			       in->inode);
	*got = (size_t)(to - from);
	if (*got)
		memset(buf, 0, *got);
	for (uint64_t at = from; !ret && at < to; at = x.end) {
		ret = extents_next(op, in->inode, at, to, &x, err);
		if (!ret)
			ret = read_extent(op, in, &x, from, to, buf, err);
	}
	return ret < 0 ? ret : 0;
}

int btrkit_txn_read(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, void *buf, size_t len,
		    size_t *got, struct btrkit_error *err)
{
	size_t done = 0, now = 0, wanted;
	int ret;

	do {
		struct op_inode in;
		struct op op;

		wanted = len - done < BYTES_AT_A_TIME ? len - done : BYTES_AT_A_TIME;
		ret = begin(&op, txn, root, inode, &in, err);
		if (!ret)
			ret = op_end(&op,
				     read_some(&op, &in, offset + done, (uint8_t *)buf + done, wanted, &now, err),
				     err);
		if (ret)
			return ret;
		done += now;
	} while (now == wanted && done < len);
	*got = done;
	return 0;
}
