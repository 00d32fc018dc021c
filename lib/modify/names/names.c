// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/names/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/names/entries.h"

int name_check(const struct name *name, struct btrkit_error *err)
{
	const char *s = name->bytes;
	const size_t len = name->len;

	if (len > NAME_LEN_MAX)
		return err_system(err, ENAMETOOLONG, "name of %zu bytes", len);
	if (!len || (len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
		return err_set(err, BTRKIT_INVALID, "invalid name \"%.*s\"", (int)len, s);
	if (memchr(s, '/', len) || memchr(s, '\0', len))
		return err_set(err, BTRKIT_INVALID, "name contains a slash or a zero byte");
	return 0;
}

static struct btrkit_key name_key(const struct op_inode *dir, const struct name *name)
{
	return KEY(dir->inode, KEY_DIR_ITEM, dir_name_hash(name->bytes, name->len));
}

static int blame(const struct delayed_tree *t, const struct btrkit_key *key, int ret, struct btrkit_error *err)
{
	if (ret < 0) {
		err_at_tree(err, t->id);
		err_at_key(err, key);
	}
	return ret;
}

int name_find(struct op *op, const struct op_inode *dir, const struct name *name, struct name_entry *ret,
	      struct btrkit_error *err)
{
	const struct btrkit_key key = name_key(dir, name);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int r;

	if (name->len > NAME_LEN_MAX)
		return err_system(err, ENAMETOOLONG, "name of %zu bytes", name->len);
	r = delayed_find(op->t, &op->reader, &key, &item, err);
	if (!r)
		r = blame(op->t, &key, entry_find(&item, name->bytes, name->len, &e, &offset, err), err);
	if (!r)
		*ret = (struct name_entry){ e.location, e.type };
	return r;
}

int name_check_new(struct op *op, const struct op_inode *dir, const struct name *name, struct btrkit_error *err)
{
	struct name_entry there;
	int ret;

	ret = op_check_is_dir(dir, err);
	if (!ret)
		ret = name_find(op, dir, name, &there, err);
	if (!ret)
		return err_system(err, EEXIST, "\"%.*s\"", (int)name->len, name->bytes);
	return ret < 0 ? ret : op_check_dir(op, dir, 0, err);
}

int name_is_subvolume(struct op *op, const struct op_inode *dir, const struct name *name,
		      const struct name_entry *entry, struct btrkit_error *err)
{
	int ret;

	sync_rdlock_trees(&op->txn->sync);
	ret = subvolume_lies_at(op->txn->fs, entry->location.objectid, op->t->id, dir->inode, name->bytes, name->len,
				err);
	sync_rdunlock_trees(&op->txn->sync);
	return ret;
}

int name_find_index(struct op *op, const struct op_inode *dir, const struct name *name, uint64_t *ret,
		    struct btrkit_error *err)
{
	struct btrkit_key at = KEY(dir->inode, KEY_DIR_INDEX, 0);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int r;

	for (;; at.offset++) {
		r = delayed_seek(op->t, &op->reader, &at, &item, err);
		if (r < 0)
			return r;
		if (r || item.key.type != KEY_DIR_INDEX)
			return err_corrupt(err, NULL, "no DIR_INDEX for an entry of directory %" PRIu64, dir->inode);
		at = item.key;
		r = blame(op->t, &at, entry_find(&item, name->bytes, name->len, &e, &offset, err), err);
		if (r <= 0) {
			*ret = at.offset;
			return r;
		}
		if (at.offset == UINT64_MAX)
			return err_corrupt(err, NULL, "DIR_INDEX has the highest possible index");
	}
}

static uint32_t entry_size(const struct name *name)
{
	return (uint32_t)(sizeof(struct disk_dir_item) + name->len);
}

int name_fits(struct op *op, const struct op_inode *dir, const struct name *name, struct btrkit_error *err)
{
	const struct btrkit_key key = name_key(dir, name);
	struct item item;
	int ret;

	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	if (ret)
		return ret < 0 ? ret : 0;
	if (item.size + entry_size(name) > entry_room(op))
		return err_system(err, EOVERFLOW, "too many names with the same hash in the directory");
	return 0;
}

static void put_entry(uint8_t *to, const struct op *op, const struct name *name, const struct name_entry *entry)
{
	const struct disk_dir_item d = {
		.location = key_put(&entry->location),
		.transid = le64_put(op->txn->generation),
		.name_len = le16_put((uint16_t)name->len),
		.type = entry->type,
	};

	memcpy(to, &d, sizeof(d));
	memcpy(to + sizeof(d), name->bytes, name->len);
}

static void resize_dir(const struct op *op, struct op_inode *dir, int64_t by)
{
	dir->item.size = le64_put(le64_get(dir->item.size) + (uint64_t)(2 * by));
	dir->item.mtime = dir->item.ctime = op->now;
}

int name_add(struct op *op, struct op_inode *dir, const struct name *name, const struct name_entry *entry,
	     uint64_t index, struct btrkit_error *err)
{
	uint8_t bytes[sizeof(struct disk_dir_item) + NAME_LEN_MAX];
	const struct btrkit_key key = name_key(dir, name);
	const uint32_t size = entry_size(name);
	struct item item;
	int ret;

	put_entry(bytes, op, name, entry);
	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	if (!ret)
		ret = entry_append(op, &item, bytes, size, err);
	else if (ret == 1)
		ret = delayed_insert(op->t, &key, bytes, size, NULL, err);
	if (!ret)
		ret = delayed_insert(op->t, &KEY(dir->inode, KEY_DIR_INDEX, index), bytes, size, NULL, err);
	if (!ret)
		resize_dir(op, dir, (int64_t)name->len);
	return ret;
}

/*
 * Checks that the index in the inode's reference belongs to this name: otherwise the entry of another one would be
 * removed.
 */
static int check_index(struct op *op, const struct op_inode *dir, const struct name *name, uint64_t index,
		       struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(dir->inode, KEY_DIR_INDEX, index);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int ret;

	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	if (!ret)
		ret = entry_find(&item, name->bytes, name->len, &e, &offset, err);
	if (ret == 1)
		ret = err_corrupt(err, NULL, "DIR_INDEX is missing, or is that of another name");
	return blame(op->t, &key, ret, err);
}

int name_remove(struct op *op, struct op_inode *dir, const struct name *name, uint64_t index, struct btrkit_error *err)
{
	const struct btrkit_key key = name_key(dir, name);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int ret;

	ret = check_index(op, dir, name, index, err);
	if (ret)
		return ret;
	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	if (!ret)
		ret = entry_find(&item, name->bytes, name->len, &e, &offset, err);
	if (ret == 1)
		ret = err_corrupt(err, NULL, "DIR_INDEX without an entry in the DIR_ITEM");
	if (!ret)
		ret = entry_cut(op, &item, offset, entry_size(name) + e.data_len, err);
	if (!ret)
		ret = delayed_delete(op->t, &KEY(dir->inode, KEY_DIR_INDEX, index), err);
	if (!ret)
		resize_dir(op, dir, -(int64_t)name->len);
	return blame(op->t, &key, ret, err);
}

static uint32_t put_ref(uint8_t *to, const struct name *name, uint64_t index)
{
	const struct disk_inode_ref d = { le64_put(index), le16_put((uint16_t)name->len) };

	memcpy(to, &d, sizeof(d));
	memcpy(to + sizeof(d), name->bytes, name->len);
	return (uint32_t)(sizeof(d) + name->len);
}

static struct btrkit_key extref_key(uint64_t inode, uint64_t dir, const struct name *name)
{
	/* As in Linux, only the lower 32 bits of the directory's inode number seed the checksum. */
	return KEY(inode, KEY_INODE_EXTREF, crc32c((uint32_t)dir, name->bytes, name->len));
}

static int add_extref(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t index,
		      struct btrkit_error *err)
{
	uint8_t bytes[sizeof(struct disk_inode_extref) + NAME_LEN_MAX];
	const struct disk_inode_extref d = { le64_put(dir), le64_put(index), le16_put((uint16_t)name->len) };
	const struct btrkit_key key = extref_key(inode, dir, name);
	const uint32_t size = (uint32_t)(sizeof(d) + name->len);
	struct item item;
	int ret;

	memcpy(bytes, &d, sizeof(d));
	memcpy(bytes + sizeof(d), name->bytes, name->len);
	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	if (ret == 1)
		return delayed_insert(op->t, &key, bytes, size, NULL, err);
	return ret ? ret : entry_append(op, &item, bytes, size, err);
}

/* Whether @more bytes fit into an item, which may not exist yet. @return 0; 1: they do not; <0 */
static int has_room(struct op *op, const struct btrkit_key *key, size_t more, struct btrkit_error *err)
{
	struct item item;
	int ret = delayed_find(op->t, &op->reader, key, &item, err);

	return ret ? (ret < 0 ? ret : 0) : item.size + more > entry_room(op);
}

int name_ref_fits(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, struct btrkit_error *err)
{
	const struct btrkit_key extended = extref_key(inode, dir, name);
	int ret;

	ret = has_room(op, &KEY(inode, KEY_INODE_REF, dir), sizeof(struct disk_inode_ref) + name->len, err);
	if (ret <= 0)
		return ret;
	if (!(op->txn->fs->super.incompat & INCOMPAT_EXTENDED_IREF))
		return err_system(err, EMLINK, "too many links in one directory without the feature extref");
	ret = has_room(op, &extended, sizeof(struct disk_inode_extref) + name->len, err);
	return ret == 1 ? err_system(err, EMLINK, "too many links of the inode with the same hash") : ret;
}

int name_ref_add(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t index, bool fresh,
		 struct btrkit_error *err)
{
	uint8_t bytes[sizeof(struct disk_inode_ref) + NAME_LEN_MAX];
	const struct btrkit_key key = KEY(inode, KEY_INODE_REF, dir);
	const uint32_t size = put_ref(bytes, name, index);
	struct item item;
	int ret;

	ret = fresh ? 1 : delayed_find(op->t, &op->reader, &key, &item, err);
	if (ret == 1)
		return delayed_insert(op->t, &key, bytes, size, NULL, err);
	if (ret)
		return ret;
	if (item.size + size > entry_room(op))
		return add_extref(op, inode, dir, name, index, err);
	return entry_append(op, &item, bytes, size, err);
}

/* Removes a name from an item of references. @return 0; 1: it is not there; <0 */
static int cut_ref(struct op *op, const struct btrkit_key *key, uint64_t dir, const struct name *name, uint64_t *index,
		   struct btrkit_error *err)
{
	struct inode_ref_iter it;
	struct inode_ref ref;
	struct item item;
	int ret;

	ret = delayed_find(op->t, &op->reader, key, &item, err);
	if (ret)
		return ret;
	it = inode_ref_first(&item);
	for (;;) {
		const uint8_t *start = it.pos;

		ret = inode_ref_next(&it, &ref, err);
		if (ret)
			return blame(op->t, key, ret, err);
		if (ref.parent != dir || ref.name_len != name->len || memcmp(ref.name, name->bytes, name->len) != 0)
			continue;
		*index = ref.index;
		return entry_cut(op, &item, (uint32_t)(start - item.data), (uint32_t)(it.pos - start), err);
	}
}

int name_ref_remove(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t *index,
		    struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, KEY_INODE_REF, dir), extended = extref_key(inode, dir, name);
	int ret;

	ret = cut_ref(op, &key, dir, name, index, err);
	if (ret == 1)
		ret = cut_ref(op, &extended, dir, name, index, err);
	if (ret == 1)
		ret = blame(op->t, &key, err_corrupt(err, NULL, "no INODE_REF for a directory entry"), err);
	return ret;
}
