// SPDX-License-Identifier: LGPL-2.1-or-later
/* Extended attributes as items. */
#include "lib/modify/xattr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/acl.h"

static struct btrkit_key key_of(uint64_t inode, const char *name)
{
	return KEY(inode, KEY_XATTR_ITEM, dir_name_hash(name, strlen(name)));
}

static uint32_t entry_size(const struct dir_entry *e)
{
	return (uint32_t)sizeof(struct disk_dir_item) + e->name_len + e->data_len;
}

/* @item is set if any attribute has this hash. @return 0; 1: none with this name; 2: none with this hash; <0 */
static int find(struct op *op, const struct btrkit_key *key, const char *name, struct item *item,
		struct dir_entry *ret, uint32_t *offset, struct btrkit_error *err)
{
	int r = delayed_find(op->t, &op->reader, key, item, err);

	if (r)
		return r < 0 ? r : 2;
	r = entry_find(item, name, strlen(name), ret, offset, err);
	if (r < 0) {
		err_at_tree(err, op->t->id);
		err_at_key(err, key);
	}
	return r;
}

int xattr_find(struct op *op, uint64_t inode, const char *name, struct dir_entry *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = key_of(inode, name);
	struct item item;
	uint32_t offset;
	int r = find(op, &key, name, &item, ret, &offset, err);

	return r < 0 ? r : !!r;
}

static const char *name_of(enum xattr_note note)
{
	return note == XATTR_DEFAULT_ACL ? ACL_DEFAULT : ATTRIBUTE_CAPABILITY;
}

int xattr_find_noted(struct op *op, uint64_t inode, enum xattr_note note, struct dir_entry *ret,
		     struct btrkit_error *err)
{
	uint8_t *notes;
	int r = delayed_notes(op->t, inode, &notes, err);

	if (r || *notes & note)
		return r ? r : 1;
	r = xattr_find(op, inode, name_of(note), ret, err);
	if (r == 1)
		*notes |= (uint8_t)note;
	return r;
}

static int forget_note(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err)
{
	enum xattr_note note;
	uint8_t *notes;
	int ret;

	if (!strcmp(name, ACL_DEFAULT))
		note = XATTR_DEFAULT_ACL;
	else if (!strcmp(name, ATTRIBUTE_CAPABILITY))
		note = XATTR_HAS_CAPABILITY;
	else
		return 0;
	ret = delayed_notes(op->t, inode, &notes, err);
	if (!ret)
		*notes &= (uint8_t)~note;
	return ret;
}

int xattr_fits(struct op *op, uint64_t inode, const char *name, size_t size, struct btrkit_error *err)
{
	const struct btrkit_key key = key_of(inode, name);
	const size_t more = sizeof(struct disk_dir_item) + strlen(name) + size;
	struct dir_entry e;
	struct item item;
	uint32_t offset, others = 0;
	int ret;

	if (more > entry_room(op))
		return err_system(err, ENOSPC, "attribute of %zu bytes does not fit in a leaf", size);
	ret = find(op, &key, name, &item, &e, &offset, err);
	if (ret < 0)
		return ret;
	if (!ret)
		others = item.size - entry_size(&e);
	else if (ret == 1)
		others = item.size;
	if (others + more > entry_room(op))
		return err_system(err, ENOSPC, "too many attributes with the same hash");
	return 0;
}

int xattr_put(struct op *op, uint64_t inode, const char *name, const void *value, size_t size,
	      struct btrkit_error *err)
{
	const struct btrkit_key key = key_of(inode, name);
	const size_t len = strlen(name), all = sizeof(struct disk_dir_item) + len + size;
	const struct disk_dir_item d = {
		.transid = le64_put(op->txn->generation),
		.data_len = le16_put((uint16_t)size),
		.name_len = le16_put((uint16_t)len),
		.type = FT_XATTR,
	};
	uint8_t *bytes = malloc(all);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int ret;

	if (!bytes)
		return err_nomem(err);
	memcpy(bytes, &d, sizeof(d));
	memcpy(bytes + sizeof(d), name, len);
	if (size)
		memcpy(bytes + sizeof(d) + len, value, size);
	ret = find(op, &key, name, &item, &e, &offset, err);
	if (!ret)
		ret = entry_swap(op, &item, offset, entry_size(&e), bytes, (uint32_t)all, err);
	else if (ret == 1)
		ret = entry_append(op, &item, bytes, (uint32_t)all, err);
	else if (ret == 2)
		ret = delayed_insert(op->t, &key, bytes, (uint32_t)all, NULL, err);
	free(bytes);
	return ret ? ret : forget_note(op, inode, name, err);
}

int xattr_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err)
{
	const struct btrkit_key key = key_of(inode, name);
	struct dir_entry e;
	struct item item;
	uint32_t offset;
	int ret = find(op, &key, name, &item, &e, &offset, err);

	if (ret)
		return ret < 0 ? ret : 1;
	return entry_cut(op, &item, offset, entry_size(&e), err);
}

int xattr_drop_capability(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	struct dir_entry e;
	int ret = xattr_find_noted(op, inode, XATTR_HAS_CAPABILITY, &e, err);

	/* As in Linux, an empty value is left alone. */
	if (!ret && e.data_len)
		ret = xattr_drop(op, inode, ATTRIBUTE_CAPABILITY, err);
	return ret < 0 ? ret : 0;
}
