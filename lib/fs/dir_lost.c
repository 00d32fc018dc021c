// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/dir_lost.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/fs/dir.h"
#include "lib/fs/inode.h"
#include "lib/fs/lost_names.h"
#include "lib/sweep/lost.h"

/* DIR_ITEM items have hashes of 32 bits. */
#define HASH_END ((uint64_t)UINT32_MAX + 1)

void dir_lost_release(struct dir_lost *l)
{
	free(l->ranges.at);
	*l = (struct dir_lost){ 0 };
}

/* Finds the index of the name of a subvolume. @return 0; 1: there is no such reference; <0 */
static int index_of_subvolume(struct btrkit_fs *fs, uint64_t parent, uint64_t dir, const struct dir_entry *d,
			      uint64_t *ret, struct btrkit_error *err)
{
	struct root_ref ref;
	struct cursor c;
	int r;

	cursor_init(&c, fs, &fs->root_tree);
	r = cursor_find(&c, &KEY(parent, KEY_ROOT_REF, d->location.objectid), err);
	if (!r)
		r = root_ref_decode(&c.item, &ref, err);
	if (!r)
		r = ref.dirid != dir || ref.name_len != d->name_len || memcmp(ref.name, d->name, d->name_len);
	if (!r)
		*ret = ref.sequence;
	cursor_release(&c);
	return r;
}

/*
 * Whether the entry @d of the current item is one that was lost, and the first of its name. *@index is set to its
 * index. What has no reference that can be read is counted.
 * @return 0; 1: no; -ENOMEM
 */
static int was_lost(const struct cursor *c, uint64_t dir, struct dir_lost *l, const struct dir_entry *d,
		    uint64_t *index, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct dir_iter it = dir_first(&c->item);
	struct dir_entry before;
	int r;

	if (dir_name_hash(d->name, d->name_len) != c->item.key.offset)
		return 1;
	while (!dir_next(&it, &before, &what) && before.name != d->name)
		if (before.name_len == d->name_len && !memcmp(before.name, d->name, d->name_len))
			return 1;
	if (d->location.type == KEY_ROOT_ITEM)
		r = index_of_subvolume(c->fs, c->root.id, dir, d, index, &what);
	else
		r = inode_name_index(c->fs, &c->root, d->location.objectid, dir, d->name, d->name_len, index,
				     &what);
	if (r == -ENOMEM)
		return err_nomem(err);
	l->unknown += !!r;
	return r || !sweep_lost_has(&l->ranges, *index);
}

/* Searches the current item from entry l->nth on. @return 0; 1: not there; <0 */
static int search_item(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		       struct btrkit_error *err)
{
	struct dir_iter it = dir_first(&c->item);
	struct dir_entry d;
	uint64_t index = 0;
	int r;

	for (unsigned i = 0; !(r = dir_next(&it, &d, err)); i++) {
		if (i < l->nth)
			continue;
		l->nth = i + 1;
		r = was_lost(c, dir, l, &d, &index, err);
		if (!r)
			return dir_entry_describe(c, &d, index, ret, err);
		if (r < 0)
			return r;
	}
	return cursor_blame(c, r, err);
}

/* Continues behind what cannot be read. */
static void skip(const struct cursor *c, uint64_t dir, struct dir_lost *l)
{
	struct btrkit_key first, end;

	l->nth = 0;
	if (cursor_lost_keys(c, &first, &end))
		l->hash++;
	else if (end.objectid == dir && end.type == KEY_DIR_ITEM && end.offset > l->hash)
		l->hash = end.offset;
	else
		l->hash = HASH_END;
}

/* Whether the DIR_ITEM of a name may be in what cannot be read. @return 0; 1: no; -ENOMEM */
static int item_is_lost(struct cursor *other, uint64_t dir, const struct inode_ref *ref)
{
	const struct btrkit_key key = KEY(dir, KEY_DIR_ITEM, dir_name_hash(ref->name, ref->name_len));
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct dir_entry d;
	struct dir_iter it;
	int r = cursor_find(other, &key, &what);

	if (r)
		return r == -ENOMEM ? r : r > 0;
	it = dir_first(&other->item);
	while (!(r = dir_next(&it, &d, &what)))
		if (d.name_len == ref->name_len && !memcmp(d.name, ref->name, d.name_len))
			break;
	return r >= 0;
}

/* Describes the entry that a reference of the current item is about. @return 0; -ENOMEM */
static int describe_ref(const struct cursor *c, struct cursor *other, const struct inode_ref *ref,
			struct btrkit_dir_entry *ret)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const uint64_t inode = c->item.key.objectid;
	struct inode_item item;
	const int r = inode_read(other, inode, &item, &what);

	*ret = (struct btrkit_dir_entry){
		.name = (const char *)ref->name,
		.name_len = ref->name_len,
		.root = c->root.id,
		.inode = inode,
		.index = ref->index,
		.type = r ? DT_UNKNOWN : dir_type_to_dirent(dir_type_of_mode(item.mode)),
	};
	return r == -ENOMEM ? r : 0;
}

/* Searches the references of the current item from number l->nth on. @return 0; 1: not there; -ENOMEM */
static int search_refs(const struct cursor *c, struct cursor *other, uint64_t dir, struct dir_lost *l,
		       struct btrkit_dir_entry *ret)
{
	struct inode_ref_iter it = inode_ref_first(&c->item);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_ref ref;

	if (c->item.key.type == KEY_INODE_REF && c->item.key.offset != dir)
		return 1;
	for (unsigned i = 0; !inode_ref_next(&it, &ref, &what); i++) {
		int r;

		if (i < l->nth || ref.parent != dir || c->item.key.objectid == dir)
			continue;
		l->nth = i + 1;
		if (!sweep_lost_has(&l->ranges, ref.index))
			continue;
		r = item_is_lost(other, dir, &ref);
		if (!r)
			r = describe_ref(c, other, &ref, ret);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Gets the next name that has only a reference. @return 0; 1: there are no more; -ENOMEM */
static int next_ref(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		    struct btrkit_error *err)
{
	struct btrkit_key at = l->at.objectid ? l->at : KEY(OID_FIRST_FREE, 0, 0);
	struct cursor other;
	int r;

	cursor_init(&other, c->fs, &c->root);
	r = cursor_next_around(c, &at, true, NULL, NULL, err);
	while (!r) {
		if (key_cmp(&at, &l->at))
			l->nth = 0;
		l->at = at;
		r = at.type == KEY_INODE_REF || at.type == KEY_INODE_EXTREF ? search_refs(c, &other, dir, l, ret) : 1;
		if (r <= 0)
			break;
		r = cursor_next_around(c, &at, false, NULL, NULL, err);
	}
	cursor_release(&other);
	return r == -ENOMEM ? err_nomem(err) : r;
}

/* Whether names are missing by the size of the directory. Moves the cursor. @return 0; 1: no; -ENOMEM */
static int lacks_names(struct cursor *c, uint64_t dir, const struct dir_lost *l, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_item item;
	const int r = inode_read(c, dir, &item, &what);

	if (r == -ENOMEM)
		return err_nomem(err);
	return r || item.size % 2 || item.size / 2 <= l->bytes;
}

/* Gets the next name that has only a reference, if some are missing. @return 0; 1: there are no more; -ENOMEM */
static int find_ref(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		    struct btrkit_error *err)
{
	int r;

	if (l->refs_done)
		return 1;
	r = lacks_names(c, dir, l, err);
	if (!r)
		r = next_ref(c, dir, l, ret, err);
	if (!r) {
		l->by_ref++;
		l->bytes += ret->name_len;
	}
	l->refs_done = r == 1;
	return r;
}

/* The size of a directory is twice the sum of the lengths of its names. Moves the cursor. @return 0; -ENOMEM */
static int add_missing(struct cursor *c, uint64_t dir, const struct dir_lost *l, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_item item;
	const int r = inode_read(c, dir, &item, &what);

	if (r == -ENOMEM)
		return err_nomem(err);
	if (!r && item.size == 2 * l->bytes) {
		text_add(err->message, sizeof(err->message), "; none is missing");
		return 0;
	}
	if (r)
		text_add(err->message, sizeof(err->message), "; how many are missing is unknown");
	else if (item.size < 2 * l->bytes || item.size % 2)
		text_add(err->message, sizeof(err->message),
			 "; the directory's size does not tell how many are missing");
	else
		text_add(err->message, sizeof(err->message), "; names of %" PRIu64 " bytes are still missing",
			 item.size / 2 - l->bytes);
	if (l->unknown)
		text_add(err->message, sizeof(err->message), "; entries without readable reference: %" PRIu64,
			 l->unknown);
	return 0;
}

static int tell(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_error *err)
{
	const int r = err_corrupt(err, NULL,
				  "of directory %" PRIu64 ", %" PRIu64 " names without index were found by DIR_ITEM",
				  dir, l->found);

	if (l->by_ref)
		text_add(err->message, sizeof(err->message), ", %" PRIu64 " by INODE_REF", l->by_ref);
	err_at_tree(err, c->root.id);
	l->done = true;
	return add_missing(c, dir, l, err) ? -ENOMEM : r;
}

int dir_lost_next(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		  struct btrkit_error *err)
{
	int r;

	if (!l->ranges.n || l->done)
		return 1;
	while (l->hash < HASH_END) {
		r = cursor_seek(c, &KEY(dir, KEY_DIR_ITEM, l->hash), err);

		if (r == 1 || (!r && (c->item.key.objectid != dir || c->item.key.type != KEY_DIR_ITEM)))
			break;
		if (!r && c->item.key.offset != l->hash) {
			l->hash = c->item.key.offset;
			l->nth = 0;
		}
		if (!r)
			r = search_item(c, dir, l, ret, err);
		if (!r) {
			l->found++;
			l->bytes += ret->name_len;
		}
		if (r < 0 && r != -ENOMEM) {
			skip(c, dir, l);
			if (l->block && (err->places & BTRKIT_AT_LOGICAL) && err->logical == l->block) {
				*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
				continue;
			}
		}
		if (r <= 0)
			return r;
		l->hash++;
		l->nth = 0;
	}
	l->hash = HASH_END;
	r = find_ref(c, dir, l, ret, err);
	return r == 1 ? tell(c, dir, l, err) : r;
}
