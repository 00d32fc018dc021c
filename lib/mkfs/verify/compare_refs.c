// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares the references from inodes and subvolumes back to their names. Linux uses them to find paths, and to delete
 * names.
 */
#include "lib/mkfs/verify/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/tree/cursor.h"

/* State while the references of an inode to its names are compared. */
struct comparing_refs {
	struct compare *c;
	uint32_t inode;
	const struct mkfs_link *links; /* expected names; NULL: only the inode's first name */
	bool *met;
};

/* Returns expected entry number @i. */
static const struct source_entry *wanted_ref(const struct comparing_refs *k, uint32_t i)
{
	const struct source *s = k->c->fill->source;

	return &s->entries[k->links ? k->links[i].entry : s->inodes[k->inode].name];
}

/* Finds the expected name in directory @parent with @index. Returns the number of names if there is none. */
static uint32_t find_ref(const struct comparing_refs *k, uint64_t parent, uint64_t index)
{
	const struct source *s = k->c->fill->source;
	const uint32_t nlink = s->inodes[k->inode].nlink;
	uint32_t low = 0, high = nlink;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct source_entry *e = wanted_ref(k, middle);
		const uint64_t dir = mkfs_fill_objectid(&s->inodes[e->parent]);

		if (dir == parent && e->index == index)
			return middle;
		if (dir < parent || (dir == parent && e->index < index))
			low = middle + 1;
		else
			high = middle;
	}
	return nlink;
}

static void take_ref(const struct comparing_refs *k, const struct btrkit_key *key, const struct inode_ref *ref)
{
	const struct source_inode *n = &k->c->fill->source->inodes[k->inode];
	const uint32_t i = n->number ? find_ref(k, ref->parent, ref->index) : 0;
	const struct source_entry *e = n->number && i < n->nlink ? wanted_ref(k, i) : NULL;
	char name[COMPARE_NAME_SHOWN];
	bool same;

	/* The root directory of a subvolume has only the name ".." in itself. */
	if (!n->number)
		same = ref->parent == mkfs_fill_objectid(n) && !ref->index && ref->name_len == 2 &&
		       !memcmp(ref->name, "..", 2);
	else
		same = e && ref->name_len == e->len && !memcmp(ref->name, e->name, e->len);
	if (!same || k->met[i]) {
		source_escape((const char *)ref->name, ref->name_len, name, sizeof(name));
		compare_differs(k->c, k->inode,
				"wrong back reference with index %" PRIu64 " in directory %" PRIu64 " and name %s",
				ref->index, ref->parent, name);
		return;
	}
	k->met[i] = true;
	/* Linux finds the item by this hash. */
	if (key->type == KEY_INODE_EXTREF && key->offset != crc32c((uint32_t)ref->parent, ref->name, ref->name_len))
		compare_name_differs(k->c, e->parent, e->name, e->len,
				     "extended reference has the wrong hash");
}

static int read_refs(const struct comparing_refs *k, struct btrkit_error *why)
{
	const struct source_inode *n = &k->c->fill->source->inodes[k->inode];
	const struct btrkit_key first = KEY(mkfs_fill_objectid(n), KEY_INODE_REF, 0);
	struct tree_root root;
	struct cursor cursor;
	int ret;

	ret = fs_find_root(k->c->fs, mkfs_fill_root(n), &root, NULL, why);
	if (ret)
		return ret;
	cursor_init(&cursor, k->c->fs, &root);
	ret = cursor_seek(&cursor, &first, why);
	while (!ret && cursor.item.key.objectid == first.objectid && cursor.item.key.type <= KEY_INODE_EXTREF) {
		struct inode_ref_iter it = inode_ref_first(&cursor.item);
		struct inode_ref ref;

		while (!(ret = inode_ref_next(&it, &ref, why)))
			take_ref(k, &cursor.item.key, &ref);
		ret = ret < 0 ? cursor_blame(&cursor, ret, why) : cursor_next(&cursor, why);
	}
	cursor_release(&cursor);
	return ret < 0 ? ret : 0;
}

/* Compares the reference and the back reference of a subvolume. @return 0; <0: they cannot be read */
static int compare_subvolume_name(struct compare *c, uint32_t inode, struct btrkit_error *why)
{
	const struct source *s = c->fill->source;
	const struct source_subvolume *v = &s->subvolumes[s->inodes[inode].subvolume];
	const struct source_entry *e = &s->entries[v->entry];
	const uint64_t id = mkfs_fill_root(&s->inodes[inode]), parent = mkfs_fill_subvolume_id(v->parent);
	const struct btrkit_key keys[] = { KEY(parent, KEY_ROOT_REF, id), KEY(id, KEY_ROOT_BACKREF, parent) };
	static const char *const name[] = { "reference", "back reference" };
	struct root_ref ref;
	struct cursor cursor;
	int ret = 0;

	cursor_init(&cursor, c->fs, &c->fs->root_tree);
	for (unsigned i = 0; ret >= 0 && i < 2; i++) {
		ret = cursor_find(&cursor, &keys[i], why);
		if (!ret)
			ret = cursor_blame(&cursor, root_ref_decode(&cursor.item, &ref, why), why);
		if (ret == 1)
			compare_differs(c, inode, "subvolume %" PRIu64 " has no %s", id, name[i]);
		else if (!ret && (ref.dirid != mkfs_fill_objectid(&s->inodes[e->parent]) || ref.sequence != e->index ||
				  ref.name_len != e->len || memcmp(ref.name, e->name, e->len) != 0))
			compare_differs(c, inode, "the %s of subvolume %" PRIu64 " does not match its name", name[i],
					id);
	}
	cursor_release(&cursor);
	return ret < 0 ? ret : 0;
}

int compare_refs(struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *n = &c->fill->source->inodes[inode];
	struct comparing_refs k = { c, inode, n->nlink > 1 ? mkfs_fill_links(c->fill, inode) : NULL, NULL };
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	int ret;

	k.met = calloc(n->nlink, sizeof(bool));
	if (!k.met)
		return err_nomem(err);
	ret = read_refs(&k, &why);
	for (uint32_t i = 0; !ret && i < n->nlink; i++) {
		const struct source_entry *e = n->number ? wanted_ref(&k, i) : NULL;

		if (!k.met[i] && e)
			compare_name_differs(c, e->parent, e->name, e->len, "inode has no back reference to this name");
		else if (!k.met[i])
			compare_differs(c, inode, "root directory of a subvolume has no reference to itself");
	}
	free(k.met);
	if (!ret && !n->number && n->subvolume)
		ret = compare_subvolume_name(c, inode, &why);
	return compare_unreadable(c, inode, ret, "back references to names", &why, err);
}
