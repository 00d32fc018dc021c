// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads names from leaves: directory entries, refs of inodes, and extended attributes. */
#include <string.h>
#include <sys/stat.h>

#include "lib/base/crc32c.h"
#include "lib/check/files/attributes.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_dir.h"
#include "lib/check/files/span_reader.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"

uint64_t span_hash_name(const struct check *c, uint64_t dir, const void *name, size_t len)
{
	return check_hash(c, HASH_NAME, &dir, 1, name, len);
}

uint64_t span_hash_entry(const struct check *c, uint64_t name, const struct btrkit_key *location, uint8_t type)
{
	const uint64_t numbers[] = { name, location->objectid, location->offset, location->type << 8 | type };

	return check_hash(c, HASH_ENTRY, numbers, 4, NULL, 0);
}

uint64_t span_hash_child(const struct check *c, uint64_t name, uint64_t index, uint64_t child)
{
	const uint64_t numbers[] = { name, index, child };

	return check_hash(c, HASH_CHILD, numbers, 3, NULL, 0);
}

/* Odd, so that a product with a non-zero number is never 0. */
uint64_t span_hash_type(const struct check *c, uint8_t type)
{
	const uint64_t number = type;

	return check_hash(c, HASH_TYPE, &number, 1, NULL, 0) | 1;
}

/* Whether an earlier entry of the item has the same name. */
static bool is_repeated(const struct item *item, const struct dir_entry *entry)
{
	struct dir_iter it = dir_first(item);
	struct dir_entry other;

	while (!dir_next(&it, &other, NULL) && other.name != entry->name)
		if (other.name_len == entry->name_len && !memcmp(other.name, entry->name, entry->name_len))
			return true;
	return false;
}

/* @nth: index of the entry in its item */
static void check_entry(struct span_reader *r, const struct item *item, const struct dir_entry *e, unsigned nth)
{
	const bool index = item->key.type == KEY_DIR_INDEX;

	/* Linux cannot list a directory with such an entry. */
	if (index && !dir_name_possible(e->name, e->name_len))
		span_report(r, CHECK_DIR_NAME, item, "name", "invalid name in the directory entry, length ",
			    e->name_len);
	if (index && nth == 1)
		span_report(r, CHECK_DIR_DUPLICATE, item, "item_size", "several names have index ", item->key.offset);
	if (!index && nth && is_repeated(item, e))
		span_report(r, CHECK_DIR_DUPLICATE, item, "name",
			    "duplicate name in the DIR_ITEM, the second entry points to inode ", e->location.objectid);
	if (!e->location.type)
		span_report(r, CHECK_DIR_LOCATION, item, "location",
			    "location of the directory entry has key type 0, objectid ", e->location.objectid);
	if (e->location.type == KEY_ROOT_ITEM && e->type != FT_DIR)
		span_report(r, CHECK_NAME_TYPE, item, "type", "directory entry of a subvolume has file type ", e->type);
}

void span_entries(struct span_reader *r, const struct item *item)
{
	struct dir_iter it = dir_first(item);
	struct dir_entry e;

	r->inode->seen |= SEEN_ENTRIES;
	if (item->key.type == KEY_DIR_INDEX && !span_index_possible(item->key.offset))
		span_report(r, CHECK_DIR_INDEX, item, "key.offset", "invalid directory index ", item->key.offset);
	for (unsigned i = 0; !dir_next(&it, &e, NULL); i++) {
		const uint64_t name = span_hash_name(r->c, item->key.objectid, e.name, e.name_len);
		const uint64_t entry = span_hash_entry(r->c, name, &e.location, e.type);

		check_entry(r, item, &e, i);
		r->inode->bytes += e.name_len;
		if (item->key.type == KEY_DIR_ITEM) {
			r->inode->entries -= entry;
			continue;
		}
		r->inode->entries += entry;
		r->inode->indexed += e.name_len;
		if (e.location.type != KEY_ROOT_ITEM)
			r->inode->children += span_hash_child(r->c, name, item->key.offset, e.location.objectid) *
					      span_hash_type(r->c, e.type);
	}
}

/* Takes the name of an inode that appears to be a directory. */
static void take_dir(struct span_reader *r, const struct inode_ref *ref, uint64_t dir)
{
	const uint64_t numbers[] = { dir, ref->parent };

	r->span->dirs += check_hash(r->c, HASH_PARENT, numbers, 2, NULL, 0);
	if (span_is_rising(ref, dir))
		r->span->flags |= SPAN_RISING;
}

void span_refs(struct span_reader *r, const struct item *item)
{
	const bool is_file = r->inode->seen & SEEN_ITEM && !S_ISDIR(r->inode->mode);
	struct inode_ref_iter it = inode_ref_first(item);
	struct inode_ref ref;

	while (!inode_ref_next(&it, &ref, NULL)) {
		uint64_t name;

		if (item->key.type == KEY_INODE_EXTREF &&
		    item->key.offset != crc32c((uint32_t)ref.parent, ref.name, ref.name_len))
			span_report(r, CHECK_NAME_HASH, item, "key.offset",
				    "key offset is not the hash of the name in directory ", ref.parent);
		if (span_is_dotdot(&ref, item->key.objectid)) {
			r->inode->seen |= SEEN_DOTDOT;
			continue;
		}
		name = span_hash_name(r->c, ref.parent, ref.name, ref.name_len);
		if (!is_file)
			take_dir(r, &ref, item->key.objectid);
		r->inode->names++;
		r->inode->name_hash += span_hash_child(r->c, name, ref.index, item->key.objectid);
	}
}

void span_xattrs(struct span_reader *r, const struct item *item)
{
	struct dir_iter it = dir_first(item);
	struct dir_entry e;

	for (unsigned i = 0; !dir_next(&it, &e, NULL); i++) {
		if (i && is_repeated(item, &e))
			span_report(r, CHECK_INODE_XATTR, item, "name",
				    "duplicate extended attribute, the size of the second value is ", e.data_len);
		span_attribute(r, item, &e);
	}
}
