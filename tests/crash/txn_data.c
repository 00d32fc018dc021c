// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_data.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"

/* Finds the first file that has an extent, from inode number @from on. */
int data_find_file(struct btrkit_txn *txn, uint64_t root, uint64_t from, uint64_t *ret, struct btrkit_error *err)
{
	struct file_extent fe;
	struct edit_tree *t;
	int r = txn_tree(txn, root, &t, err);

	if (!r)
		r = cursor_seek(&t->c, &KEY(from, 0, 0), err);
	for (; !r; r = cursor_next(&t->c, err))
		if (t->c.item.key.type == KEY_EXTENT_DATA &&
		    !file_extent_decode(&txn->fs->items, &t->c.item, &fe, err) && fe.disk_bytenr)
			break;
	if (!r)
		*ret = t->c.item.key.objectid;
	return r == 1 ? err_set(err, BTRKIT_NOT_FOUND, "no file from inode %" PRIu64 " on", from) : r;
}

static int count_bytes(struct btrkit_txn *txn, uint64_t root, uint64_t inode, int64_t bytes, struct btrkit_error *err)
{
	struct disk_inode_item *d;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t size;
	int ret = txn_tree(txn, root, &t, err);

	if (!ret)
		ret = edit_bytes(t, &KEY(inode, KEY_INODE_ITEM, 0), &data, &size, err);
	if (ret)
		return ret;
	d = (struct disk_inode_item *)data;
	d->nbytes = le64_put(le64_get(d->nbytes) + (uint64_t)bytes);
	d->transid = le64_put(txn->generation);
	return 0;
}

static int change_ref(struct btrkit_txn *txn, uint64_t root, const struct btrkit_key *key,
		       const struct file_extent *fe, int add, struct btrkit_error *err)
{
	const struct extent_change change = { .bytenr = fe->disk_bytenr,
					      .num_bytes = fe->disk_num_bytes,
					      .data = true,
					      .ref = { .type = KEY_EXTENT_DATA_REF,
						       .root = root,
						       .objectid = key->objectid,
						       .offset = key->offset - fe->offset },
					      .add = add };
	int ret = txn_change_data_ref(txn, &change, err);

	return ret ? ret : count_bytes(txn, root, key->objectid, add * (int64_t)fe->num_bytes, err);
}

/* Finds the @nth extent of the inode, counted from 0, not counting holes. */
static int find_extent(struct edit_tree *t, uint64_t inode, unsigned nth, struct btrkit_key *key,
		       struct disk_file_extent *disk, struct file_extent *fe, struct btrkit_error *err)
{
	int ret;

	for (ret = cursor_seek(&t->c, &KEY(inode, KEY_EXTENT_DATA, 0), err);
	     !ret && t->c.item.key.objectid == inode && t->c.item.key.type == KEY_EXTENT_DATA;
	     ret = cursor_next(&t->c, err)) {
		ret = file_extent_decode(&t->overlay->fs->items, &t->c.item, fe, err);
		if (ret)
			return ret;
		if (!fe->disk_bytenr || nth--)
			continue;
		*key = t->c.item.key;
		memcpy(disk, t->c.item.data, sizeof(*disk));
		return 0;
	}
	return ret < 0 ? ret : err_set(err, BTRKIT_NOT_FOUND, "no such extent of inode %" PRIu64, inode);
}

/* Replaces an extent of a file by a hole. */
int data_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err)
{
	struct disk_file_extent disk;
	struct btrkit_key key;
	struct file_extent fe;
	struct edit_tree *t;
	int ret = txn_tree(txn, root, &t, err);

	if (!ret)
		ret = find_extent(t, inode, nth, &key, &disk, &fe, err);
	if (!ret)
		ret = edit_delete(t, &key, err);
	return ret ? ret : change_ref(txn, root, &key, &fe, -1, err);
}

#define FAR (1ull << 30) /* file offset past all data of any file */

/* Preallocates space past the end of the file, at position @nth there. */
int data_preallocate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, uint64_t bytes,
		       struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, KEY_EXTENT_DATA, FAR + nth * (16ull << 20));
	struct disk_file_extent disk;
	struct file_extent fe;
	struct edit_tree *t;
	struct range at;
	int ret = txn_alloc_data(txn, bytes, bytes, &at, err);

	if (!ret)
		ret = txn_tree(txn, root, &t, err);
	if (ret)
		return ret;
	disk = (struct disk_file_extent){ .generation = le64_put(txn->generation),
					  .ram_bytes = le64_put(bytes),
					  .type = FILE_EXTENT_PREALLOC,
					  .disk_bytenr = le64_put(at.start),
					  .disk_num_bytes = le64_put(at.length),
					  .num_bytes = le64_put(bytes) };
	fe = (struct file_extent){ .disk_bytenr = at.start, .disk_num_bytes = at.length, .num_bytes = bytes };
	ret = edit_insert(t, &key, &disk, sizeof(disk), err);
	return ret ? ret : change_ref(txn, root, &key, &fe, 1, err);
}

/* Clones the file's first extent to the end of the file, at position @nth, and extends the file. */
int data_clone(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err)
{
	struct disk_file_extent disk;
	struct disk_inode_item *d;
	struct btrkit_key key;
	struct file_extent fe;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t size;
	int ret = txn_tree(txn, root, &t, err);

	if (!ret)
		ret = find_extent(t, inode, 0, &key, &disk, &fe, err);
	if (ret)
		return ret;
	key.offset = FAR + nth * (16ull << 20);
	ret = edit_insert(t, &key, &disk, sizeof(disk), err);
	if (!ret)
		ret = change_ref(txn, root, &key, &fe, 1, err);
	if (!ret)
		ret = edit_bytes(t, &KEY(inode, KEY_INODE_ITEM, 0), &data, &size, err);
	if (ret)
		return ret;
	d = (struct disk_inode_item *)data;
	d->size = le64_put(key.offset + fe.num_bytes);
	return 0;
}
