// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/lost_names.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"

/* Finds the index of a name in the references that have that key. @return 0; 1: there is no such reference; <0 */
static int index_in(struct cursor *c, const struct btrkit_key *key, uint64_t dir, const void *name, size_t len,
		    uint64_t *ret, struct btrkit_error *err)
{
	struct inode_ref_iter it;
	struct inode_ref ref;
	int r = cursor_find(c, key, err);

	if (r)
		return r;
	it = inode_ref_first(&c->item);
	while (!(r = inode_ref_next(&it, &ref, err)))
		if (ref.parent == dir && ref.name_len == len && !memcmp(ref.name, name, len)) {
			*ret = ref.index;
			break;
		}
	return r;
}

static int find_index(struct cursor *c, uint64_t inode, uint64_t dir, const void *name, size_t len, uint64_t *ret,
		      struct btrkit_error *err)
{
	const int r = index_in(c, &KEY(inode, KEY_INODE_REF, dir), dir, name, len, ret, err);
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int extended;

	if (!r || r == -ENOMEM)
		return r;
	/* The two may be in different leaves. */
	extended = index_in(c, &KEY(inode, KEY_INODE_EXTREF, crc32c((uint32_t)dir, name, len)), dir, name, len, ret,
			    &own);
	if (extended < 0)
		return err_pass(err, &own, extended);
	if (!extended && err)
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return extended ? r : 0;
}

int inode_name_index(struct btrkit_fs *fs, const struct tree_root *root, uint64_t inode, uint64_t dir,
		     const void *name, size_t len, uint64_t *ret, struct btrkit_error *err)
{
	struct cursor c;
	int r;

	cursor_init(&c, fs, root);
	r = find_index(&c, inode, dir, name, len, ret, err);
	cursor_release(&c);
	return r;
}

struct search {
	struct cursor c, other; /* @other looks up single items */
	uint64_t inode;
	lost_name_fn fn;
	void *ctx;
};

static bool is_same(const struct dir_entry *a, const struct dir_entry *b)
{
	return a->location.objectid == b->location.objectid && a->location.type == b->location.type &&
	       a->name_len == b->name_len && !memcmp(a->name, b->name, a->name_len);
}

/* Whether the DIR_ITEM of an entry can be read, too. @return 0; 1: no; -ENOMEM */
static int has_dir_item(struct search *s, const struct dir_entry *d, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(s->c.item.key.objectid, KEY_DIR_ITEM, dir_name_hash(d->name, d->name_len));
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct dir_entry found;
	struct dir_iter it;
	int r = cursor_find(&s->other, &key, &what);

	if (r)
		return r == -ENOMEM ? err_nomem(err) : 1;
	it = dir_first(&s->other.item);
	while (!dir_next(&it, &found, &what))
		if (is_same(&found, d))
			return 0;
	return 1;
}

/* @return 0; what @fn returned; -ENOMEM */
static int take_entry(struct search *s, const struct dir_entry *d, struct btrkit_error *err)
{
	const struct lost_name found = { d->location.objectid, s->c.item.key.objectid, d->name, d->name_len };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	uint64_t index;
	int r;

	if (d->location.type != KEY_INODE_ITEM || (s->inode ? found.inode != s->inode : d->type != FT_DIR))
		return 0;
	r = find_index(&s->other, found.inode, found.dir, d->name, d->name_len, &index, &what);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r >= 0)
		return 0;
	if (s->c.item.key.type == KEY_DIR_INDEX) {
		r = has_dir_item(s, d, err);
		if (r <= 0)
			return r;
	} else if (dir_name_hash(d->name, d->name_len) != s->c.item.key.offset) {
		return 0;
	}
	return s->fn(s->ctx, &found);
}

static int take_item(struct search *s, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct dir_iter it = dir_first(&s->c.item);
	struct dir_entry d;
	int r = 0;

	while (!r && !dir_next(&it, &d, &what))
		r = take_entry(s, &d, err);
	return r;
}

int lost_names_each(struct btrkit_fs *fs, const struct tree_root *root, uint64_t inode, lost_name_fn fn, void *ctx,
		    struct btrkit_error *err)
{
	struct search s = { .inode = inode, .fn = fn, .ctx = ctx };
	struct btrkit_key at = KEY(OID_FIRST_FREE, 0, 0);
	bool first = true;
	int r;

	cursor_init(&s.c, fs, root);
	cursor_init(&s.other, fs, root);
	s.c.scan = true;
	while (!(r = cursor_next_around(&s.c, &at, first, NULL, NULL, err))) {
		first = false;
		if (at.type != KEY_DIR_ITEM && at.type != KEY_DIR_INDEX)
			continue;
		r = take_item(&s, err);
		if (r)
			break;
	}
	cursor_release(&s.other);
	cursor_release(&s.c);
	return r == 1 ? 0 : r;
}
