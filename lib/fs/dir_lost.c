// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/dir_lost.h"

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

	err_at_tree(err, c->root.id);
	l->done = true;
	return add_missing(c, dir, l, err) ? -ENOMEM : r;
}

int dir_lost_next(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		  struct btrkit_error *err)
{
	if (!l->ranges.n || l->done)
		return 1;
	while (l->hash < HASH_END) {
		int r = cursor_seek(c, &KEY(dir, KEY_DIR_ITEM, l->hash), err);

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
	return tell(c, dir, l, err);
}
