// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the subvolumes and directories. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/sweep/block.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaves.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_dirs.h"
#include "lib/usage/paths/paths_read.h"

uint64_t paths_add_name(struct array *names, const void *name, size_t len)
{
	const size_t at = names->n;
	size_t room = names->room ? names->room : 4096;

	while (room - at < len)
		room *= 2;
	if (room != names->room) {
		void *more = realloc(names->at, room);

		if (!more)
			return UINT64_MAX;
		names->at = more;
		names->room = room;
	}
	if (name)
		memcpy((char *)names->at + at, name, len);
	names->n += len;
	return at;
}

/* Subvolumes */

struct root_reader {
	struct paths_work *pw;
	struct array subvolumes; /* struct paths_subvolume */
};

static struct paths_subvolume *last_of(const struct array *l)
{
	return l->n ? (struct paths_subvolume *)l->at + l->n - 1 : NULL;
}

static int take_root(struct root_reader *r, const struct item *item, struct btrkit_error *err)
{
	struct paths_subvolume *to = last_of(&r->subvolumes);
	struct root_item ri;
	int ret;

	if (!oid_is_file_tree(item->key.objectid))
		return 0;
	ret = root_item_decode(&r->pw->w.fs->items, item, &ri, err);
	if (ret || !ri.refs)
		return ret;
	/* If there are several, the last one is valid. */
	if (!to || to->root.id != item->key.objectid)
		to = array_add(&r->subvolumes, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = (struct paths_subvolume){ .root = tree_root_of(&item->key, &ri), .top = PATHS_NONE };
	return 0;
}

static int take_backref(struct root_reader *r, const struct item *item, struct btrkit_error *err)
{
	struct paths_subvolume *s = last_of(&r->subvolumes);
	struct root_ref ref;
	int ret;

	if (!s || s->root.id != item->key.objectid || s->placed || s->root.id == OID_FS_TREE)
		return 0;
	ret = root_ref_decode(item, &ref, err);
	if (ret)
		return ret;
	s->name = paths_add_name(&r->pw->p->names, ref.name, ref.name_len);
	if (s->name == UINT64_MAX)
		return err_nomem(err);
	s->name_len = ref.name_len;
	s->parent = item->key.offset;
	s->dirid = ref.dirid;
	s->index = ref.sequence;
	s->placed = true;
	return 0;
}

static int take_root_leaf(void *ctx, const struct node *leaf, struct btrkit_error *err)
{
	struct root_reader *r = ctx;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (item.key.type == KEY_ROOT_ITEM)
			ret = take_root(r, &item, &what);
		else if (item.key.type == KEY_ROOT_BACKREF)
			ret = take_backref(r, &item, &what);
		if (ret) {
			err_at_tree(&what, OID_ROOT_TREE);
			err_at_logical(&what, leaf->bytenr);
			err_at_item(&what, i, &item.key);
			ret = usage_damage(&r->pw->w, ret, &what, err);
		}
	}
	return ret;
}

int paths_find_subvolumes(struct paths_work *pw, struct btrkit_error *err)
{
	struct root_reader r = { .pw = pw };
	int ret = usage_each_leaf(&pw->w, &pw->w.fs->root_tree, take_root_leaf, &r, err);

	pw->subvolumes = r.subvolumes.at;
	pw->num_subvolumes = r.subvolumes.n;
	return ret;
}

/* Directories */

static struct paths_found *last_found(const struct paths_batch *b)
{
	return b->found.n ? (struct paths_found *)b->found.at + b->found.n - 1 : NULL;
}

static int take_inode(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	const struct disk_inode_item *d = (const struct disk_inode_item *)item->data;
	struct paths_found *to;

	if (item->size < sizeof(*d))
		return err_corrupt(err, "item_size", "inode item of %" PRIu32 " bytes", item->size);
	if (!S_ISDIR(le32_get(d->mode)) || item->key.offset || item->key.objectid < OID_FIRST_FREE ||
	    item->key.objectid > OID_LAST_FREE)
		return 0;
	to = array_add(&b->found, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = (struct paths_found){ .inode = item->key.objectid, .linked = le32_get(d->nlink) };
	return 0;
}

/*
 * Takes the name of a directory, which has only one. The root directory of a subvolume has its name in the root tree.
 */
static int take_name(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	struct paths_found *to = last_found(b);
	struct inode_ref_iter it = inode_ref_first(item);
	struct inode_ref ref;
	int ret;

	if (!to || to->inode != item->key.objectid || to->named || to->inode == OID_FIRST_FREE)
		return 0;
	ret = inode_ref_next(&it, &ref, err);
	if (ret)
		return ret < 0 ? ret : 0;
	to->name = paths_add_name(&b->names, ref.name, ref.name_len);
	if (to->name == UINT64_MAX)
		return err_nomem(err);
	to->name_len = ref.name_len;
	to->parent = ref.parent;
	to->index = ref.index;
	to->named = true;
	return 0;
}

static int read_leaf(struct paths_batch *b, const uint8_t *leaf, struct btrkit_error *err)
{
	const struct disk_item *items = block_items(leaf);
	const uint32_t n = block_nritems(leaf);
	int ret = 0;

	for (uint32_t i = 0; !ret && i < n; i++) {
		const uint8_t type = items[i].key.type;
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct item item;

		if (type != KEY_INODE_ITEM && type != KEY_INODE_REF && type != KEY_INODE_EXTREF)
			continue;
		item = block_item(leaf, i);
		ret = type == KEY_INODE_ITEM ? take_inode(b, &item, &what) : take_name(b, &item, &what);
		ret = paths_report_item(b, leaf, i, ret, &what, err);
	}
	return ret;
}

/* Completes a batch: the name of the last directory may be in the next leaf. */
static int read_end(struct paths_batch *b, struct btrkit_error *err)
{
	const struct paths_found *last = last_found(b);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct cursor c;
	int ret;

	if (!last || last->named || last->inode == OID_FIRST_FREE)
		return 0;
	cursor_init(&c, b->pw->w.fs, &b->subvolume->root);
	ret = paths_seek(b, &c, last->inode, KEY_INODE_REF, err);
	if (!ret && (c.item.key.type == KEY_INODE_REF || c.item.key.type == KEY_INODE_EXTREF)) {
		ret = take_name(b, &c.item, &what);
		if (ret) {
			(void)cursor_blame(&c, ret, &what);
			ret = usage_damage(&b->pw->w, ret, &what, err);
		}
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int gather_one(struct paths_batch *b, const struct paths_found *f, uint64_t names, struct btrkit_error *err)
{
	struct array *l = &b->pw->found;
	const struct paths_found *before = l->n ? (const struct paths_found *)l->at + l->n - 1 : NULL;
	struct paths_found *to;

	/* A directory that was deleted while it was open is empty and has no name. */
	if (!f->linked && !f->named && f->inode != OID_FIRST_FREE)
		return 0;
	/* The order was only verified within each leaf. */
	if (b->subvolume->num && before->inode >= f->inode) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		err_corrupt(&what, "key", "keys are out of order");
		err_at_key(&what, &KEY(f->inode, KEY_INODE_ITEM, 0));
		return paths_report(b->pw, b->subvolume->root.id, &what, err);
	}
	if (l->n == PATHS_NONE - 1)
		return err_set(err, BTRKIT_UNSUPPORTED, "there are more than %" PRIu32 " directories", PATHS_NONE - 1);
	to = array_add(l, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = *f;
	to->name += names;
	b->subvolume->num++;
	return 0;
}

static int gather(struct paths_batch *b, struct btrkit_error *err)
{
	const struct paths_found *found = b->found.at;
	uint64_t names = 0;
	int ret = 0;

	if (b->names.n)
		names = paths_add_name(&b->pw->p->names, b->names.at, b->names.n);
	if (names == UINT64_MAX)
		return err_nomem(err);
	for (size_t i = 0; !ret && i < b->found.n; i++)
		ret = gather_one(b, &found[i], names, err);
	return ret;
}

int paths_find_dirs(struct paths_work *pw, struct btrkit_error *err)
{
	int ret = paths_read(pw, &(struct paths_reader){ read_leaf, read_end, gather }, err);
	uint32_t first = 0;

	if (!ret && pw->counted.reported.n)
		ret = paths_find_lost(pw, err);
	for (size_t i = 0; i < pw->num_subvolumes; i++) {
		pw->subvolumes[i].first = first;
		first += pw->subvolumes[i].num;
	}
	return ret;
}

uint32_t paths_find_dir(const struct paths_work *pw, const struct paths_subvolume *s, uint64_t inode, uint32_t *hint)
{
	uint32_t low = s->first, high = s->first + s->num;

	if (*hint >= low && *hint < high && pw->dirs[*hint].inode == inode)
		return *hint;
	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (pw->dirs[mid].inode < inode)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->first + s->num || pw->dirs[low].inode != inode)
		return PATHS_NONE;
	*hint = low;
	return low;
}
