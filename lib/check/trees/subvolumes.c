// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks where subvolumes are, by the root tree and by their directories, and which ones are being deleted. */
#include <stdlib.h>
#include <string.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/subvolumes.h"
#include "lib/check/trees/uuids.h"
#include "lib/format/items/files/dir.h"

/* State while reading the root tree. */
struct subvolumes {
	struct check *c;
	struct cursor refs; /* in the root tree as well */
	struct cursor dirs; /* in the tree of the latest parent */
	uint64_t parent;
	size_t *up; /* for each root, the one-based index of its parent */
};

static void report_subvolume(struct check *c, enum check_code code, const struct btrkit_key *key, const char *field,
			     const char *message)
{
	check_report_at(c, code, &(struct check_location){ OID_ROOT_TREE, 0, key, field }, "%s", message);
}

static bool same_ref(const struct root_ref *a, const struct root_ref *b)
{
	return a->dirid == b->dirid && a->sequence == b->sequence && a->name_len == b->name_len &&
	       !memcmp(a->name, b->name, a->name_len);
}

/* @ref points into the item at the caller's cursor, so another one is used. */
static void check_other_way(struct subvolumes *s, const struct btrkit_key *key, const struct root_ref *ref)
{
	const bool back = key->type == KEY_ROOT_BACKREF;
	const struct btrkit_key other = KEY(key->offset, back ? KEY_ROOT_REF : KEY_ROOT_BACKREF, key->objectid);
	struct root_ref there;
	int ret = check_find(s->c, &s->refs, &other);

	if (ret > 0)
		report_subvolume(s->c, CHECK_ROOT_REF, key, NULL,
				 back ? "ROOT_BACKREF without a matching ROOT_REF" :
					"ROOT_REF without a matching ROOT_BACKREF");
	else if (!ret && !back && !root_ref_decode(&s->refs.item, &there, NULL) && !same_ref(ref, &there))
		report_subvolume(s->c, CHECK_ROOT_REF, key, "name",
				 "ROOT_REF and ROOT_BACKREF differ in directory, index or name");
}

/* Finds the entry of that name in an item. @return whether there is one */
static bool find_entry(const struct item *item, const struct root_ref *ref, struct dir_entry *ret)
{
	struct dir_iter it = dir_first(item);

	while (!dir_next(&it, ret, NULL))
		if (ret->name_len == ref->name_len && !memcmp(ret->name, ref->name, ref->name_len))
			return true;
	return false;
}

/* @return 0: the entry points to the subvolume; 1: it does not, or there is none; <0: unknown */
static int look_at(struct subvolumes *s, const struct btrkit_key *at, uint64_t id, const struct root_ref *ref)
{
	struct dir_entry entry;
	int ret = check_find(s->c, &s->dirs, at);

	if (ret)
		return ret;
	return !find_entry(&s->dirs.item, ref, &entry) || entry.location.objectid != id ||
	       entry.location.type != KEY_ROOT_ITEM;
}

/* Checks the entries for a subvolume in its parent directory. */
static void check_entries(struct subvolumes *s, const struct btrkit_key *key, const struct root_ref *ref)
{
	const struct check_root *parent = check_find_root(s->c, key->objectid);
	const uint64_t hash = dir_name_hash(ref->name, ref->name_len);

	if (!parent || !oid_is_file_tree(key->objectid)) {
		if (!s->c->blocks_lost)
			report_subvolume(s->c, CHECK_ROOT_REF, key, "key.objectid",
					 "parent of the subvolume is not an existing file tree");
		return;
	}
	if (s->parent != key->objectid) {
		cursor_release(&s->dirs);
		cursor_init(&s->dirs, s->c->fs, &parent->root);
		s->parent = key->objectid;
	}
	if (look_at(s, &KEY(ref->dirid, KEY_DIR_ITEM, hash), key->offset, ref) > 0)
		report_subvolume(s->c, CHECK_ROOT_REF_ENTRY, key, "name",
				 "no directory entry with this name points to the subvolume");
	if (look_at(s, &KEY(ref->dirid, KEY_DIR_INDEX, ref->sequence), key->offset, ref) > 0)
		report_subvolume(s->c, CHECK_ROOT_REF_ENTRY, key, "sequence",
				 "no directory entry with this index points to the subvolume");
}

static void check_ref(struct subvolumes *s, const struct item *item)
{
	const uint64_t child = item->key.type == KEY_ROOT_REF ? item->key.offset : item->key.objectid;
	struct root_ref ref;

	if (root_ref_decode(item, &ref, NULL))
		return;
	if (!check_find_root(s->c, child) && !s->c->blocks_lost)
		report_subvolume(s->c, CHECK_ROOT_REF, &item->key, "key.offset",
				 "reference to a subvolume that does not exist");
	check_other_way(s, &item->key, &ref);
	if (item->key.type == KEY_ROOT_REF)
		check_entries(s, &item->key, &ref);
}

/* Counts the parents of a subvolume that are not deleted. *up: the last one. @return at most 2; <0: unknown */
static int num_parents(struct subvolumes *s, uint64_t id, size_t *up)
{
	int n = 0, ret = check_seek(s->c, &s->refs, &KEY(id, KEY_ROOT_BACKREF, 0));

	for (; !ret && n < 2; ret = check_next(s->c, &s->refs)) {
		const struct btrkit_key *at = &s->refs.item.key;
		const struct check_root *parent;

		if (at->objectid != id || at->type != KEY_ROOT_BACKREF)
			return n;
		parent = check_find_root(s->c, at->offset);
		if (!parent || !parent->item.refs)
			continue;
		*up = (size_t)(parent - (const struct check_root *)s->c->roots.at) + 1;
		n++;
	}
	return ret < 0 ? ret : n;
}

static void check_subvolume(struct subvolumes *s, const struct btrkit_key *key, uint32_t refs, size_t *up)
{
	const int parents = num_parents(s, key->objectid, up);

	if (refs > 1)
		report_subvolume(s->c, CHECK_ROOT_REFS, key, "refs",
				 "reference count of the subvolume is higher than 1");
	else if (parents > 1)
		report_subvolume(s->c, CHECK_ROOT_REFS, key, "refs", "subvolume is in more than one tree");
	else if (!refs && parents > 0)
		report_subvolume(s->c, CHECK_ROOT_REFS, key, "refs",
				 "subvolume has reference count 0, but is still in a tree");
	if (refs && !parents && !s->c->blocks_lost)
		report_subvolume(s->c, CHECK_ROOT_LOST, key, NULL, "subvolume is not in any directory");
	/* Linux cleans up deleted subvolumes that have an orphan item. */
	if (!refs && check_find(s->c, &s->refs, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, key->objectid)) > 0)
		report_subvolume(s->c, CHECK_ROOT_ORPHAN, key, "refs", "deleted subvolume has no orphan item");
}

static void verify_root(struct subvolumes *s, const struct check_root *root, size_t *up)
{
	const struct btrkit_key key = KEY(root->root.id, KEY_ROOT_ITEM, root->root.key_offset);

	/* Linux does not accept these two if they are deleted. */
	if (key.objectid == OID_FS_TREE && root->item.refs != 1)
		report_subvolume(s->c, CHECK_ROOT_REFS, &key, "refs",
				 "reference count of the top-level subvolume is not 1");
	else if (key.objectid == OID_DATA_RELOC_TREE && !root->item.refs)
		report_subvolume(s->c, CHECK_ROOT_REFS, &key, "refs",
				 "reference count of the data relocation tree is 0");
	else if (key.objectid != OID_FS_TREE && oid_is_file_tree(key.objectid))
		check_subvolume(s, &key, root->item.refs, up);
}

/* Follows the parents of each subvolume up to one that was visited: if in the same round, there is a cycle. */
static void verify_circles(struct subvolumes *s, size_t *round)
{
	const struct check_root *roots = s->c->roots.at;

	for (size_t i = 0; i < s->c->roots.n; i++) {
		size_t at = i;

		while (s->up[at] && !round[at]) {
			round[at] = i + 1;
			at = s->up[at] - 1;
		}
		if (round[at] == i + 1)
			report_subvolume(s->c, CHECK_ROOT_LOST,
					 &KEY(roots[at].root.id, KEY_ROOT_ITEM, roots[at].root.key_offset), NULL,
					 "subvolume is inside itself");
	}
}

/* The v1 cache files in the root tree may have orphan items too. */
static void check_orphan(struct subvolumes *s, const struct btrkit_key *key)
{
	const struct check_root *root = check_find_root(s->c, key->offset);

	if ((root && root->has_item && !root->item.refs) || s->c->blocks_lost)
		return;
	if (check_find(s->c, &s->refs, &KEY(key->offset, KEY_INODE_ITEM, 0)) > 0)
		report_subvolume(s->c, CHECK_ROOT_ORPHAN_STRAY, key, "key.offset",
				 "orphan item does not refer to a deleted subvolume");
}

/* If the entry is missing, Linux never unlocks the block it searched, and deleting any subvolume hangs. */
static void check_default(struct subvolumes *s, bool lost)
{
	static const char name[] = "default";
	const struct root_ref ref = { .name = (const uint8_t *)name, .name_len = sizeof(name) - 1 };
	const struct btrkit_key key = KEY(OID_ROOT_TREE_DIR, KEY_DIR_ITEM, dir_name_hash(name, sizeof(name) - 1));
	const struct check_root *root;
	struct dir_entry entry;
	const int ret = check_find(s->c, &s->refs, &key);

	if (ret < 0)
		return;
	if (ret || !find_entry(&s->refs.item, &ref, &entry)) {
		if (!lost)
			report_subvolume(s->c, CHECK_ROOT_DEFAULT, &key, NULL,
					 "no directory entry for the default subvolume");
		return;
	}
	root = check_find_root(s->c, entry.location.objectid);
	if (entry.location.type != KEY_ROOT_ITEM || !root || !oid_is_file_tree(root->root.id) || !root->item.refs)
		report_subvolume(s->c, CHECK_ROOT_DEFAULT, &key, "location",
				 "entry for the default subvolume does not point to an existing one");
}

static void take_item(void *ctx, const struct item *item)
{
	struct subvolumes *s = ctx;

	if (item->key.type == KEY_ROOT_REF || item->key.type == KEY_ROOT_BACKREF)
		check_ref(s, item);
	else if (item->key.type == KEY_ORPHAN_ITEM && item->key.objectid == OID_ORPHAN)
		check_orphan(s, &item->key);
}

static void walk(struct subvolumes *s)
{
	const struct check_root *roots = s->c->roots.at;
	bool lost = false; /* already reported */

	if (check_each_item(s->c, &s->c->fs->root_tree, &lost, take_item, s))
		return;
	for (size_t i = CHECK_ROOTS_FIRST; i < s->c->roots.n && !check_failed(s->c); i++)
		verify_root(s, &roots[i], &s->up[i]);
	check_default(s, lost || s->c->roots_lost);
}

int check_subvolumes(struct check *c)
{
	/* The second half holds the round in which each root was visited. */
	struct subvolumes s = { .c = c, .up = calloc(2 * c->roots.n, sizeof(*s.up)) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (!s.up)
		return check_fail(c, err_nomem(&err), &err);
	cursor_init(&s.refs, c->fs, &c->fs->root_tree);
	cursor_init(&s.dirs, c->fs, &c->fs->root_tree);
	walk(&s);
	verify_circles(&s, s.up + c->roots.n);
	cursor_release(&s.refs);
	cursor_release(&s.dirs);
	free(s.up);
	return c->failed ? c->failed : check_uuids(c);
}
