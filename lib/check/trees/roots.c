// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects the trees from their root items, and checks the root items. */
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/format/feature_bits.h"
#include "lib/sweep/drop.h"

const struct check_root *check_find_root(const struct check *c, uint64_t id)
{
	const struct check_root *roots = c->roots.at;
	size_t low = CHECK_ROOTS_FIRST, high = c->roots.n;

	/* Find the first one past it. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (roots[mid].root.id <= id)
			low = mid + 1;
		else
			high = mid;
	}
	if (low > CHECK_ROOTS_FIRST && roots[low - 1].root.id == id)
		return &roots[low - 1];
	for (size_t i = 0; i < CHECK_ROOTS_FIRST && i < c->roots.n; i++)
		if (roots[i].root.id == id)
			return &roots[i];
	return NULL;
}

static void report_root(struct check *c, enum check_code code, const struct btrkit_key *key, const char *field,
			const char *message)
{
	check_report_at(c, code, &(struct check_location){ OID_ROOT_TREE, 0, key, field }, "%s", message);
}

static void add(struct check *c, const struct tree_root *root, const struct root_item *item)
{
	struct check_root *to = check_list_add(c, &c->roots, sizeof(*to));

	if (!to)
		return;
	*to = (struct check_root){ .root = *root, .has_item = item };
	if (!item)
		return;
	to->item = *item;
	to->drop = sweep_drop_of(item);
}

/* Checks the drop progress of a subvolume. Linux does not check that the tree has that level. */
static void check_drop(struct check *c, const struct btrkit_key *key, const struct root_item *item)
{
	const bool begun = item->drop_progress.objectid || item->drop_progress.type || item->drop_progress.offset;

	/* Linux resumes a drop if the objectid is non-zero, and crashes if the level is 0. */
	if ((begun && item->drop_level > item->level) || (item->drop_progress.objectid && !item->drop_level))
		report_root(c, CHECK_ROOT_DROP, key, "drop_level", "invalid drop level of a partly dropped tree");
	/* A relocation tree is dropped while it is referenced. */
	else if (begun && item->refs && key->objectid != OID_TREE_RELOC)
		report_root(c, CHECK_ROOT_DROP, key, "drop_progress",
			    "tree has a drop progress, but is still referenced");
	else if (!begun && item->drop_level)
		report_root(c, CHECK_ROOT_DROP, key, "drop_level", "tree has a drop level, but no drop progress");
}

/* Linux does not need this field for the top-level and data relocation trees, but btrfs check does. */
static void check_dir(struct check *c, const struct btrkit_key *key, const struct root_item *item)
{
	const bool has_files = oid_is_file_tree(key->objectid) || key->objectid == OID_DATA_RELOC_TREE;

	if (has_files && item->root_dirid != OID_FIRST_FREE)
		report_root(c, CHECK_ROOT_DIR, key, "root_dirid", "top directory of the subvolume is not inode 256");
}

/* Whether Linux mounts only with this tree, and looks for its root item at offset 0 only. */
static bool is_needed_at_zero(const struct check *c, uint64_t id)
{
	const struct super *s = &c->fs->super;

	switch (id) {
	case OID_EXTENT_TREE:
	case OID_DEV_TREE:
	case OID_CSUM_TREE:
		return true;
	case OID_FREE_SPACE_TREE:
		return s->compat_ro & COMPAT_RO_FREE_SPACE_TREE;
	case OID_BLOCK_GROUP_TREE:
		return s->compat_ro & COMPAT_RO_BLOCK_GROUP_TREE;
	case OID_RAID_STRIPE_TREE:
		return s->incompat & INCOMPAT_RAID_STRIPE_TREE;
	default:
		return false;
	}
}

/* Reports trees that nothing in the filesystem uses, or that Linux does not find. */
static void check_id(struct check *c, const struct btrkit_key *key)
{
	const uint64_t id = key->objectid;
	const struct check_root *before = (const struct check_root *)c->roots.at + c->roots.n - 1;

	if (!oid_is_file_tree(id) && id != OID_TREE_RELOC && id != OID_DATA_RELOC_TREE &&
	    (id < OID_EXTENT_TREE || id > OID_REMAP_TREE || id == OID_CHUNK_TREE || id == OID_ROOT_TREE_DIR))
		report_root(c, CHECK_ROOT_UNKNOWN, key, "key.objectid", "root item of an unknown tree");
	/* Linux searches backwards from this offset for a tree's last root item; an exact match is an error. */
	else if (key->offset == UINT64_MAX)
		report_root(c, CHECK_ROOT_KEY, key, "key.offset",
			    "root item has the largest offset, which Linux refuses");
	/* Linux uses the last one. */
	else if (before->has_item && before->root.id == id && id != OID_TREE_RELOC)
		report_root(c, CHECK_ROOT_TWICE, key, "key.offset",
			    "duplicate root item, another one has a lower offset");
	else if (key->offset && is_needed_at_zero(c, id))
		report_root(c, CHECK_ROOT_KEY, key, "key.offset",
			    "root item has a non-zero offset, so Linux does not find a tree that it needs");
	else if (!oid_is_file_tree(id) && id != OID_TREE_RELOC && id != OID_DATA_RELOC_TREE && key->offset)
		report_root(c, CHECK_ROOT_TWICE, key, "key.offset",
			    "root item has a non-zero offset, so Linux does not find it");
}

static void check_root_item(struct check *c, const struct item *at, const struct root_item *item)
{
	const struct btrkit_key *key = &at->key;

	if (at->size != ROOT_ITEM_SHORT && item->generation_v2 && item->generation_v2 != item->generation)
		report_root(c, CHECK_ROOT_GENERATION, key, "generation_v2",
			    "generation and generation_v2 of the root item differ");
	if (item->generation > c->fs->super.generation)
		report_root(c, CHECK_ROOT_GENERATION, key, "generation", "root item is newer than the superblock");
	check_drop(c, key, item);
	check_dir(c, key, item);
	check_id(c, key);
}

static void take(void *ctx, const struct item *item)
{
	struct check *c = ctx;
	struct root_item root;
	struct tree_root tree;

	if (item->key.type != KEY_ROOT_ITEM)
		return;
	/* leaf.c reports it. */
	if (item_validate(&c->items, item, NULL) || root_item_decode(&c->items, item, &root, NULL)) {
		c->roots_lost = true;
		return;
	}
	tree = tree_root_of(&item->key, &root);
	check_root_item(c, item, &root);
	add(c, &tree, &root);
}

/* Reports missing trees that Linux requires for mounting. */
static void verify_missing(struct check *c)
{
	const struct {
		uint64_t id;
		const char *name;
		bool wanted;
	} trees[] = {
		{ OID_EXTENT_TREE, "extent", true },
		{ OID_DEV_TREE, "device", true },
		{ OID_FS_TREE, "top-level", true },
		{ OID_CSUM_TREE, "checksum", true },
		{ OID_DATA_RELOC_TREE, "data relocation", true },
		{ OID_FREE_SPACE_TREE, "free space", c->fs->super.compat_ro & COMPAT_RO_FREE_SPACE_TREE },
		{ OID_BLOCK_GROUP_TREE, "block group", c->fs->super.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE },
		{ OID_RAID_STRIPE_TREE, "stripe", c->fs->super.incompat & INCOMPAT_RAID_STRIPE_TREE },
	};

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]) && !c->roots_lost; i++)
		if (trees[i].wanted && !check_find_root(c, trees[i].id))
			check_report_at(c, CHECK_TREE_MISSING, &(struct check_location){ .tree = OID_ROOT_TREE },
					"%s tree is missing", trees[i].name);
}

int check_roots(struct check *c)
{
	add(c, &c->fs->root_tree, NULL);
	add(c, &c->fs->chunk_tree, NULL);
	if (!check_each_item(c, &c->fs->root_tree, &c->roots_lost, take, c))
		verify_missing(c);
	c->blocks_lost |= c->roots_lost;
	return c->failed;
}
