// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_kinds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/dir.h"
#include "lib/space/chunk.h"
#include "txn_data.h"
#include "txn_files.h"

#define BATCH 200

/* An xattr item. */
struct xattr {
	struct btrkit_key key;
	uint32_t size;
	struct {
		struct disk_dir_item d;
		char text[280];
	} __attribute__((packed)) item;
};

static struct xattr xattr_of(uint64_t inode, unsigned number)
{
	struct xattr x = { .item.d.type = FT_XATTR };
	const int name = snprintf(x.item.text, sizeof(x.item.text), "user.crash-%u", number);
	const unsigned value = number * 37 % 250;

	memset(x.item.text + name, 'a' + (int)(number % 26), value);
	x.item.d.name_len = le16_put((uint16_t)name);
	x.item.d.data_len = le16_put((uint16_t)value);
	x.key = KEY(inode, KEY_XATTR_ITEM, dir_name_hash(x.item.text, (size_t)name));
	x.size = (uint32_t)sizeof(x.item.d) + (uint32_t)name + value;
	return x;
}

static int by_key(const void *a, const void *b)
{
	return key_cmp(&((const struct xattr *)a)->key, &((const struct xattr *)b)->key);
}

/* Inserts @n xattrs at once, from number @first on. */
static int put_xattrs(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned first, unsigned n,
		      struct btrkit_error *err)
{
	static struct xattr xattrs[BATCH];
	struct item items[BATCH];
	struct edit_tree *t;
	int ret;

	for (unsigned i = 0; i < n; i++)
		xattrs[i] = xattr_of(inode, first + i);
	qsort(xattrs, n, sizeof(xattrs[0]), by_key);
	for (unsigned i = 0; i < n; i++)
		items[i] = (struct item){ xattrs[i].key, (const uint8_t *)&xattrs[i].item, xattrs[i].size };
	ret = txn_tree(txn, root, &t, err);
	return ret ? ret : edit_insert_many(t, items, n, err);
}

/* Removes xattrs one by one. */
static int drop_xattrs(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned first, unsigned n,
		       struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = txn_tree(txn, root, &t, err);

	for (unsigned i = 0; !ret && i < n; i++) {
		const struct xattr x = xattr_of(inode, first + i);

		ret = edit_delete(t, &x.key, err);
	}
	return ret;
}

/* Commit, or abort after a failure. */
static int finish(struct btrkit_txn *txn, int ret, struct btrkit_error *err)
{
	if (!ret)
		return btrkit_txn_commit(txn, NULL, err);
	btrkit_txn_abort(txn);
	return ret;
}

/* Trees grow by splits and new levels, and shrink again. */
static int edit_one_tree(struct btrkit_fs *fs, struct btrkit_error *err)
{
	for (unsigned i = 0; i < 3; i++) {
		struct btrkit_txn *txn;
		int ret = btrkit_txn_start(fs, &txn, err);

		if (ret)
			return ret;
		if (i < 2)
			ret = put_xattrs(txn, OID_FS_TREE, 256, i * BATCH, BATCH, err);
		else
			ret = drop_xattrs(txn, OID_FS_TREE, 256, 0, 2 * BATCH - 20, err);
		ret = finish(txn, ret, err);
		if (ret)
			return ret;
	}
	return 0;
}

static int few_edits(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct btrkit_txn *txn;
	int ret = btrkit_txn_start(fs, &txn, err);

	if (ret)
		return ret;
	ret = put_xattrs(txn, OID_FS_TREE, 256, 0, 30, err);
	ret = finish(txn, ret, err);
	if (!ret)
		ret = btrkit_txn_start(fs, &txn, err);
	if (ret)
		return ret;
	ret = drop_xattrs(txn, OID_FS_TREE, 256, 10, 15, err);
	return finish(txn, ret, err);
}

/* Different edits in each commit. */
static int more_edits(struct btrkit_fs *fs, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < 2; i++) {
		struct btrkit_txn *txn;

		ret = btrkit_txn_start(fs, &txn, err);
		if (ret)
			return ret;
		ret = put_xattrs(txn, OID_FS_TREE, 256, (unsigned)txn->generation * 100, 30, err);
		ret = finish(txn, ret, err);
	}
	return ret;
}

/* Lists the first subvolumes that are not deleted, by number. */
static int list_subvolumes(struct btrkit_fs *fs, uint64_t *ids, size_t max, size_t *n, struct btrkit_error *err)
{
	struct root_item item;
	struct cursor c;
	int ret;

	*n = 0;
	cursor_init(&c, fs, &fs->root_tree);
	for (ret = cursor_seek(&c, &KEY(OID_FIRST_FREE, 0, 0), err); !ret && *n < max; ret = cursor_next(&c, err)) {
		if (c.item.key.type != KEY_ROOT_ITEM || !oid_is_file_tree(c.item.key.objectid))
			continue;
		ret = root_item_decode(&fs->items, &c.item, &item, err);
		if (ret)
			break;
		if (item.refs)
			ids[(*n)++] = c.item.key.objectid;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Adds and removes xattrs in subvolumes that share blocks with snapshots. */
static int edit_shared(struct btrkit_fs *fs, struct btrkit_error *err)
{
	uint64_t ids[4];
	size_t n;
	int ret = list_subvolumes(fs, ids, 4, &n, err);

	for (unsigned i = 0; !ret && i < 4; i++) {
		struct btrkit_txn *txn;

		ret = btrkit_txn_start(fs, &txn, err);
		if (ret)
			return ret;
		for (size_t j = 0; !ret && j < n; j++) {
			const unsigned number = i * 1000 + (unsigned)j * 100;
			uint64_t file;

			/* Alternate between leaves that have been copied already and others. */
			ret = data_find_file(txn, ids[j], 256 + (i + j) % 2 * 9, &file, err);
			if (ret == -ENOENT)
				ret = data_find_file(txn, ids[j], 256, &file, err);
			if (!ret && (i + j) % 2)
				ret = put_xattrs(txn, ids[j], file, number, 12, err);
			else if (!ret)
				ret = put_xattrs(txn, ids[j], 256, number, 40, err);
			if (!ret && i > 1 && !((i + j) % 2))
				ret = drop_xattrs(txn, ids[j], 256, number, 30, err);
		}
		ret = finish(txn, ret, err);
	}
	return ret;
}

/* Adds, clones and removes extents. */
static int edit_data(struct btrkit_fs *fs, uint64_t root, struct btrkit_error *err)
{
	uint64_t file = 0, other = 0;

	for (unsigned i = 0; i < 3; i++) {
		struct btrkit_txn *txn;
		int ret = btrkit_txn_start(fs, &txn, err);

		if (ret)
			return ret;
		if (!i)
			ret = data_find_file(txn, root, 257, &file, err);
		if (!i && !ret)
			ret = data_find_file(txn, root, file + 1, &other, err);
		for (unsigned j = 0; !ret && j < 5; j++)
			ret = data_preallocate(txn, root, file, 8 * i + j, 4096ull << j, err);
		if (!ret && i == 1)
			ret = data_clone(txn, root, other, 0, err);
		if (!ret && i)
			ret = data_punch(txn, root, i == 1 ? file : other, 0, err);
		if (!ret && i == 2)
			ret = data_punch(txn, root, file, 2, err);
		ret = finish(txn, ret, err);
		if (ret)
			return ret;
	}
	return 0;
}

static int edit_data_shared(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return edit_data(fs, OID_FIRST_FREE, err);
}

static int edit_data_alone(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return edit_data(fs, OID_FS_TREE, err);
}

/* Several commits in a row, so that the backup roots wrap around and freed space is reused. */
static int many_commits(struct btrkit_fs *fs, struct btrkit_error *err)
{
	for (unsigned i = 0; i < 7; i++) {
		struct btrkit_txn *txn;
		int ret = btrkit_txn_start(fs, &txn, err);

		if (ret)
			return ret;
		ret = put_xattrs(txn, OID_FIRST_FREE, 256, i, 1, err);
		if (!ret && i > 2)
			ret = drop_xattrs(txn, OID_FIRST_FREE, 256, i - 2, 1, err);
		ret = finish(txn, ret, err);
		if (ret)
			return ret;
	}
	return 0;
}

static int remove_chunk(struct btrkit_txn *txn, uint64_t logical, struct btrkit_error *err)
{
	struct space_group *g = space_group_of(txn->space, logical);

	return g ? chunk_remove(txn->space, g, &txn->super, err) : -ENOENT;
}

/* Creates a chunk, and removes it in the next commit. */
static int come_and_go(struct btrkit_fs *fs, uint64_t type, struct btrkit_error *err)
{
	struct chunk_plan plan = { 0 };
	struct space_group *g;
	struct btrkit_txn *txn;
	int ret = btrkit_txn_start(fs, &txn, err);

	if (ret)
		return ret;
	ret = chunk_plan(txn->space, type, &plan, err);
	if (!ret)
		ret = chunk_create(txn->space, &plan, &txn->super, &g, err);
	if (!ret)
		ret = put_xattrs(txn, OID_FS_TREE, 256, 0, 5, err);
	ret = finish(txn, ret, err);
	if (!ret)
		ret = btrkit_txn_start(fs, &txn, err);
	if (ret)
		return ret;
	ret = remove_chunk(txn, plan.logical, err);
	if (!ret)
		ret = drop_xattrs(txn, OID_FS_TREE, 256, 0, 3, err);
	return finish(txn, ret, err);
}

static int data_chunk(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return come_and_go(fs, BG_DATA, err);
}

static int metadata_chunk(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return come_and_go(fs, BG_METADATA, err);
}

static int system_chunk(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return come_and_go(fs, BG_SYSTEM, err);
}

static int to_v2(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, err);
}

static int to_v1(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V1, NULL, NULL, err);
}

static int to_none(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_NONE, NULL, NULL, err);
}

static int clear_v1(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V1, NULL, NULL, err);
}

static int clear_v2(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, err);
}

static int to_v2_and_none(struct btrkit_fs *fs, struct btrkit_error *err)
{
	int ret = to_v2(fs, err);

	return ret ? ret : to_none(fs, err);
}

/* Adds or removes one-sector extents: number @first, and every @step-th one after it. */
static int change_pieces(struct btrkit_fs *fs, unsigned first, unsigned step, unsigned n, bool come,
			 struct btrkit_error *err)
{
	struct btrkit_txn *txn;
	int ret = btrkit_txn_start(fs, &txn, err);

	if (ret)
		return ret;
	/* When removing, numbers count only the extents that are left. */
	for (unsigned i = 0; !ret && i < n; i++)
		ret = come ? data_preallocate(txn, OID_FS_TREE, FILES_FIRST, first + step * i, 4096, err) :
			     data_punch(txn, OID_FS_TREE, FILES_FIRST, first + (step - 1) * i, err);
	return finish(txn, ret, err);
}

#define PIECES 1200u

/* Makes a block group whose free space items fill more than a leaf, closes to the limit at which a bitmap is used. */
static int make_pieces(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct chunk_plan plan = { 0 };
	struct space_group *g;
	struct btrkit_txn *txn;
	int ret = files_make(fs, err);

	if (!ret)
		ret = btrkit_txn_start(fs, &txn, err);
	if (ret)
		return ret;
	ret = chunk_plan(txn->space, BG_DATA, &plan, err);
	if (!ret)
		ret = chunk_create(txn->space, &plan, &txn->super, &g, err);
	/* Fill the block group made by mkfs, which is small and would soon switch to a bitmap. */
	if (!ret)
		ret = data_preallocate(txn, OID_FS_TREE, FILES_FIRST, 0, 7 << 20, err);
	ret = finish(txn, ret, err);
	if (!ret)
		ret = change_pieces(fs, 10, 1, PIECES, true, err);
	return ret ? ret : change_pieces(fs, 110, 2, 300, false, err);
}

/* The block group switches to bitmaps and back. */
static int edit_pieces(struct btrkit_fs *fs, struct btrkit_error *err)
{
	int ret = change_pieces(fs, 420, 2, 50, false, err);

	if (!ret)
		ret = change_pieces(fs, 2000, 1, 20, true, err);
	if (!ret)
		ret = change_pieces(fs, 480, 2, 60, false, err);
	return ret ? ret : change_pieces(fs, 2100, 1, 200, true, err);
}

static int files_and_none(struct btrkit_fs *fs, struct btrkit_error *err)
{
	int ret = files_make(fs, err);

	return ret ? ret : to_none(fs, err);
}

#define GIB (1ull << 30)

static const struct made three_supers = { .devices = 1, .size = 300 * GIB };
static const struct made raid1 = { BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, 2, GIB, .spare = 1 };
static const struct made raid1_old = {
	BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, 2, GIB, .no_group_tree = true, .spare = 1
};
static const struct made raid1_three = {
	BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, 3, GIB, .nodesize = 4096, .spare = 1
};
static const struct made raid1c3 = { BTRKIT_PROFILE_RAID1C3, BTRKIT_PROFILE_RAID1C3, 3, GIB, .spare = 2 };
static const struct made raid10 = { BTRKIT_PROFILE_RAID10, BTRKIT_PROFILE_RAID10, 4, GIB, .spare = 1 };
static const struct made raid10_old = {
	BTRKIT_PROFILE_RAID10, BTRKIT_PROFILE_RAID10, 4, GIB, .no_group_tree = true, .spare = 1
};
static const struct made raid5 = { BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, 3, GIB, .spare = 1 };
static const struct made raid6 = { BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, 4, GIB, .spare = 2 };
static const struct made raid6_five = {
	BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, 5, GIB, .nodesize = 4096, .spare = 2
};
static const struct made raid6_old = {
	BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, 4, GIB, .no_group_tree = true, .spare = 2
};
static const struct made pieces = { .devices = 1, .size = 5 * GIB / 2, .nodesize = 4096 };

const struct kind kinds[] = {
	{ "edits", "good-nodesize-4k", edit_one_tree, .faults = true },
	{ "edits, nodes of 64 KiB", "good-nodesize-64k", edit_one_tree },
	{ "edits, long extent items", "good-not-skinny", edit_one_tree },
	{ "edits, one copy of metadata", "good-single", few_edits },
	{ "edits, a cache v1", "good-cache-v1", few_edits },
	{ "edits, quotas", "good-quota", few_edits },
	{ "edits, three superblocks", NULL, few_edits, .made = &three_supers },
	{ "edits, shared", "good-generations", edit_shared },
	{ "edits, shared nodes", "good-levels", edit_shared, .faults = true },
	{ "edits, shared by keyed references", "good-keyed-references", edit_shared },
	{ "edits, a dying subvolume", "good-half-dropped", edit_shared },
	{ "data", "good-clones", edit_data_alone, .faults = true },
	{ "data, shared", "good-generations", edit_data_shared },
	{ "data, a cache v1", "good-cache-v1", edit_data_alone },
	{ "data, two copies", "good-dup-data", edit_data_alone },
	{ "many commits", "good-generations", many_commits },
	{ "a chunk of data", "good-default", data_chunk },
	{ "a chunk of metadata", "good-default", metadata_chunk, .faults = true },
	{ "a chunk of the system", "good-default", system_chunk },
	{ "a chunk of data, a cache v1", "good-cache-v1", data_chunk },
	{ "v1 to v2", "good-cache-v1", to_v2, NULL, .again = true, .faults = true },
	{ "none to v2", "good-cache-v1", to_v2, to_none, .again = true },
	{ "v2 to v1", "good-cache-v1", to_v1, to_v2, .again = true },
	{ "v2 to none", "good-cache-v1", to_none, to_v2, .again = true },
	{ "none to v2 to none", "good-cache-v1", to_v2_and_none, to_none, .again = true },
	{ "clear v1", "good-cache-v1", clear_v1, NULL, .again = true },
	{ "clear v2", "good-cache-v1", clear_v2, to_v2, .again = true },
	{ "much free space in pieces", NULL, edit_pieces, make_pieces, .made = &pieces },
	{ "raid1, edits", NULL, edit_one_tree, files_make, .made = &raid1 },
	{ "raid1, data", NULL, edit_data_alone, files_make, .made = &raid1 },
	{ "raid1, a chunk of data", NULL, data_chunk, files_make, .made = &raid1_three },
	{ "raid1, a chunk of the system", NULL, system_chunk, files_make, .made = &raid1_three },
	{ "raid1, none to v2", NULL, to_v2, files_and_none, .made = &raid1_old, .again = true },
	{ "raid1c3, edits", NULL, few_edits, files_make, .made = &raid1c3 },
	{ "raid10, edits", NULL, edit_one_tree, files_make, .made = &raid10 },
	{ "raid10, data", NULL, edit_data_alone, files_make, .made = &raid10 },
	{ "raid10, a chunk of metadata", NULL, metadata_chunk, files_make, .made = &raid10 },
	{ "raid10, v2 to none", NULL, to_none, files_make, .made = &raid10_old, .again = true },
	{ "raid5, edits", NULL, edit_one_tree, files_make, .made = &raid5 },
	{ "raid5, data", NULL, edit_data_alone, files_make, .made = &raid5 },
	{ "raid6, edits", NULL, edit_one_tree, files_make, .made = &raid6 },
	{ "raid6, data", NULL, edit_data_alone, files_make, .made = &raid6 },
	{ "raid6, a chunk of data", NULL, data_chunk, files_make, .made = &raid6_five },
	{ "raid6, a chunk of metadata", NULL, metadata_chunk, files_make, .made = &raid6 },
	{ "raid6, none to v2", NULL, to_v2, files_and_none, .made = &raid6_old, .again = true },
	{ "edits after a crash", NULL, more_edits, files_make, .made = &three_supers, .behind = true },
	{ "raid1, edits after a crash", NULL, more_edits, files_make, .made = &raid1, .behind = true },
	{ "raid10, edits after a crash", NULL, more_edits, files_make, .made = &raid10, .behind = true },
	{ "raid6, edits after a crash", NULL, more_edits, files_make, .made = &raid6, .behind = true },
};
const struct effort efforts[3] = { { 4, 15, 1 }, { 32, 1, 1 }, { 1, 60, 4 } };
const unsigned num_kinds = sizeof(kinds) / sizeof(kinds[0]);

const struct kind *kind_find(const char *name)
{
	for (unsigned i = 0; i < num_kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}
