// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/dir.h"

#include <dirent.h>
#include <sys/stat.h>

#include "lib/base/crc32c.h"
#include "lib/base/reader.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

#define DIR_TYPE_ENCRYPTED 0x80

struct dir_iter dir_first(const struct item *item)
{
	return (struct dir_iter){ item->data, item->data + item->size };
}

int dir_next(struct dir_iter *it, struct dir_entry *ret, struct btrkit_error *err)
{
	struct reader r = { it->pos, it->end };
	const struct disk_dir_item *d;
	struct dir_entry entry;

	if (!reader_left(&r))
		return 1;
	d = reader_take(&r, sizeof(*d));
	if (!d)
		return err_corrupt(err, "item_size", "directory entry exceeds its item");
	entry = (struct dir_entry){
		.location = key_get(&d->location),
		.transid = le64_get(d->transid),
		.type = d->type & ~DIR_TYPE_ENCRYPTED,
		.encrypted = d->type & DIR_TYPE_ENCRYPTED,
		.name_len = le16_get(d->name_len),
		.data_len = le16_get(d->data_len),
	};
	if (entry.type == FT_UNKNOWN || entry.type > FT_XATTR)
		return err_corrupt(err, "type", "directory entry has unknown type %u", entry.type);
	entry.name = reader_take(&r, entry.name_len);
	if (!entry.name || entry.name_len > NAME_LEN_MAX)
		return err_corrupt(err, "name_len", "directory entry has invalid name length %u", entry.name_len);
	entry.data = reader_take(&r, entry.data_len);
	if (!entry.data || (entry.data_len && entry.type != FT_XATTR))
		return err_corrupt(err, "data_len", "directory entry has invalid data length %u", entry.data_len);
	it->pos = r.pos;
	*ret = entry;
	return 0;
}

bool dir_name_possible(const void *name, size_t len)
{
	const char *at = name;

	if (!len || (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'))))
		return false;
	return !memchr(name, '/', len) && !memchr(name, 0, len);
}

uint64_t dir_name_hash(const void *name, size_t len)
{
	return crc32c(~1u, name, len);
}

static int location_check(const struct btrkit_key *location, struct btrkit_error *err)
{
	switch (location->type) {
	case KEY_ROOT_ITEM:
		if (!oid_is_file_tree(location->objectid))
			return err_corrupt(err, "location", "directory entry refers to invalid subvolume %" PRIu64,
					   location->objectid);
		return 0;
	case KEY_INODE_ITEM:
	case 0:
		if (!is_inode_number(location->objectid) || location->offset)
			return err_corrupt(err, "location",
					   "directory entry refers to inode %" PRIu64 " with key offset %" PRIu64,
					   location->objectid, location->offset);
		return 0;
	default:
		return err_corrupt(err, "location", "directory entry refers to a key of type %u", location->type);
	}
}

static int dir_entry_check(const struct item_ctx *ctx, const struct btrkit_key *key, const struct dir_entry *entry,
			   struct btrkit_error *err)
{
	const struct btrkit_key *location = &entry->location;
	const bool xattr = key->type == KEY_XATTR_ITEM;
	/* The maximum in a leaf with a single item. */
	const uint32_t room = leaf_room(ctx->nodesize) - sizeof(struct disk_item) - sizeof(struct disk_dir_item);
	int ret = 0;

	if (!xattr)
		ret = location_check(location, err);
	else if (location->objectid || location->type || location->offset)
		ret = err_corrupt(err, "location", "extended attribute has a location");
	if (ret < 0)
		return ret;
	if (xattr != (entry->type == FT_XATTR))
		return err_corrupt(err, "type", "directory entry of type %u in an item of type %u", entry->type,
				   key->type);
	if ((uint32_t)entry->name_len + entry->data_len > room)
		return err_corrupt(err, "data_len", "directory entry is too large: %u bytes of name and data",
				   (unsigned)entry->name_len + entry->data_len);
	if (key->type != KEY_DIR_INDEX && key->offset != dir_name_hash(entry->name, entry->name_len))
		return err_corrupt(err, "key.offset", "key offset 0x%" PRIx64 " is not the hash of the name",
				   key->offset);
	return 0;
}

static int dir_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct dir_iter it = dir_first(item);
	struct dir_entry entry;
	int ret;

	while ((ret = dir_next(&it, &entry, err)) == 0) {
		ret = dir_entry_check(ctx, &item->key, &entry, err);
		if (ret < 0)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

static const uint8_t dirent_types[] = {
	[FT_UNKNOWN] = DT_UNKNOWN, [FT_REG] = DT_REG,	[FT_DIR] = DT_DIR,   [FT_CHR] = DT_CHR,
	[FT_BLK] = DT_BLK,	   [FT_FIFO] = DT_FIFO, [FT_SOCK] = DT_SOCK, [FT_SYMLINK] = DT_LNK,
};

uint8_t dir_type_of_mode(uint32_t mode)
{
	for (uint8_t type = FT_REG; type < sizeof(dirent_types); type++)
		if (DTTOIF((uint32_t)dirent_types[type]) == (mode & S_IFMT))
			return type;
	return FT_UNKNOWN;
}

uint8_t dir_type_to_dirent(uint8_t type)
{
	return type < sizeof(dirent_types) ? dirent_types[type] : DT_UNKNOWN;
}

static void dir_type_render(struct emit *e, uint8_t type)
{
	static const char *const names[] = {
		[FT_REG] = "FILE",  [FT_DIR] = "DIR",	[FT_CHR] = "CHRDEV",	  [FT_BLK] = "BLKDEV",
		[FT_FIFO] = "FIFO", [FT_SOCK] = "SOCK", [FT_SYMLINK] = "SYMLINK", [FT_XATTR] = "XATTR",
	};
	const char *name = type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;

	if (e->form == EMIT_JSON || !name) {
		emit_u64(e, "type", " type DIR_ITEM.", type);
		if (name && e->form == EMIT_JSON)
			emit_word(e, "type_name", name);
		return;
	}
	emit_text(e, " type ");
	emit_text(e, name);
}

/* Renders one entry; its name and data are next in @r. @return NULL, or the field that exceeds the item */
static const char *dir_entry_render(struct emit *e, const struct disk_dir_item *d, struct reader *r, unsigned flags)
{
	struct btrkit_key location;
	uint16_t name_len, data_len;
	const uint8_t *name, *data;

	name_len = le16_get(d->name_len);
	data_len = le16_get(d->data_len);
	location = key_get(&d->location);
	key_emit(e, "location", "\t\tlocation ", &location);
	dir_type_render(e, d->type & ~DIR_TYPE_ENCRYPTED);
	emit_bool(e, "encrypted", d->type & DIR_TYPE_ENCRYPTED);
	emit_u64(e, "transid", "\n\t\ttransid ", le64_get(d->transid));
	emit_u64(e, "data_len", " data_len ", data_len);
	emit_u64(e, "name_len", " name_len ", name_len);
	emit_text(e, "\n");
	name = reader_take(r, name_len);
	if (!name)
		return "name_len";
	render_name(e, "name", "\t\tname: ", name, name_len, flags);
	emit_text(e, "\n");
	data = reader_take(r, data_len);
	if (!data)
		return "data_len";
	if (data_len) {
		if (e->form == EMIT_JSON)
			render_data(e, "data", data, data_len, flags);
		else
			render_name(e, "", "\t\tdata ", data, data_len, flags);
		emit_text(e, "\n");
	}
	return NULL;
}

static void dir_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct reader r = reader_of(item->data, item->size);
	const char *damaged = NULL;

	(void)ctx;
	emit_array(e, "entries");
	while (reader_left(&r) && !damaged) {
		const struct disk_dir_item *d = reader_take(&r, sizeof(*d));

		if (!d) {
			damaged = "item_size";
			break;
		}
		emit_object(e, NULL);
		damaged = dir_entry_render(e, d, &r, flags);
		emit_object_end(e);
	}
	emit_array_end(e);
	if (damaged)
		render_damage(e, damaged);
}

const struct item_type item_type_dir_item = {
	.type = KEY_DIR_ITEM,
	.name = "DIR_ITEM",
	.min_size = sizeof(struct disk_dir_item),
	.validate = dir_validate,
	.render = dir_render,
};

const struct item_type item_type_dir_index = {
	.type = KEY_DIR_INDEX,
	.name = "DIR_INDEX",
	.min_size = sizeof(struct disk_dir_item),
	.validate = dir_validate,
	.render = dir_render,
};

const struct item_type item_type_xattr = {
	.type = KEY_XATTR_ITEM,
	.name = "XATTR_ITEM",
	.min_size = sizeof(struct disk_dir_item),
	.validate = dir_validate,
	.render = dir_render,
};
