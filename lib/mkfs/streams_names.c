// SPDX-License-Identifier: LGPL-2.1-or-later
/* The roots of the trees, and the directories that every filesystem begins with. */
#include "lib/mkfs/streams.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/format/feature_bits.h"
#include "lib/format/items/dir.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/root.h"

/* A flag of the inode in a root item: it was set up in full. */
#define INODE_ROOT_ITEM_INIT (1u << 31)
/* Kept for the inode in a root item, which is not one. */
#define ROOT_INODE_SIZE 3

int mkfs_stream_nothing(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	(void)p;
	(void)b;
	(void)err;
	return 0;
}

static struct disk_time time_of(const struct mkfs_plan *p)
{
	return (struct disk_time){ .sec = le64_put((uint64_t)p->opts.time) };
}

/* An empty directory, whose parent is itself. */
static int add_directory(const struct mkfs_plan *p, struct bulk *b, uint64_t inode, uint64_t parent,
			 struct btrkit_error *err)
{
	struct disk_inode_item d = {
		.generation = le64_put(p->generation),
		.nbytes = le64_put(p->opts.nodesize),
		.nlink = le32_put(1),
		.mode = le32_put(S_IFDIR | 0755),
		.atime = time_of(p),
		.ctime = time_of(p),
		.mtime = time_of(p),
		.otime = time_of(p),
	};
	struct {
		struct disk_inode_ref head;
		char name[2];
	} ref = { .head = { .name_len = le16_put(2) }, .name = { '.', '.' } };
	int ret;

	ret = bulk_add(b, &KEY(inode, KEY_INODE_ITEM, 0), &d, sizeof(d), err);
	return ret ? ret : bulk_add(b, &KEY(inode, KEY_INODE_REF, parent), &ref, sizeof(ref), err);
}

int mkfs_stream_top_level(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	return add_directory(p, b, OID_FIRST_FREE, OID_FIRST_FREE, err);
}

int mkfs_stream_data_reloc(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	return add_directory(p, b, OID_FIRST_FREE, OID_FIRST_FREE, err);
}

int mkfs_stream_uuids(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	le64 subvolume = le64_put(OID_FS_TREE), half[2];

	/* The UUID itself is the key. */
	memcpy(half, p->subvolume_uuid, sizeof(half));
	return bulk_add(b, &KEY(le64_get(half[0]), KEY_UUID_SUBVOL, le64_get(half[1])), &subvolume, sizeof(subvolume),
			err);
}

/* The top level has its tree, and nothing else is there to be counted. */
int mkfs_stream_quota(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	const bool simple = p->opts.incompat & INCOMPAT_SIMPLE_QUOTA;
	const le64 bytes = le64_put(mkfs_tree_num_blocks(mkfs_plan_tree(p, OID_FS_TREE)) * p->opts.nodesize);
	const struct disk_qgroup_status status = {
		.version = le64_put(1),
		.generation = le64_put(p->generation),
		.flags = le64_put(QGROUP_STATUS_ON | (simple ? QGROUP_STATUS_SIMPLE_MODE : 0)),
		.enable_gen = le64_put(simple ? p->generation : 0),
	};
	const struct disk_qgroup_info info = { le64_put(p->generation), bytes, bytes, bytes, bytes };
	const struct disk_qgroup_limit limit = { 0 };
	int ret;

	ret = bulk_add(b, &KEY(0, KEY_QGROUP_STATUS, 0), &status, sizeof(status), err);
	if (!ret)
		ret = bulk_add(b, &KEY(0, KEY_QGROUP_INFO, OID_FS_TREE), &info, sizeof(info), err);
	return ret ? ret : bulk_add(b, &KEY(0, KEY_QGROUP_LIMIT, OID_FS_TREE), &limit, sizeof(limit), err);
}

static struct disk_root_item root_item(const struct mkfs_plan *p, const struct mkfs_tree *t)
{
	struct disk_root_item d = {
		.inode = {
			.generation = le64_put(1),
			.size = le64_put(ROOT_INODE_SIZE),
			.nbytes = le64_put(p->opts.nodesize),
			.nlink = le32_put(1),
			.mode = le32_put(S_IFDIR | 0755),
		},
		.generation = le64_put(p->generation),
		.generation_v2 = le64_put(p->generation),
		.bytenr = le64_put(mkfs_tree_root(p, t)),
		.bytes_used = le64_put(mkfs_tree_num_blocks(t) * p->opts.nodesize),
		.refs = le32_put(1),
		.level = mkfs_tree_level(t),
	};

	if (t->owner == OID_FS_TREE || t->owner == OID_DATA_RELOC_TREE)
		d.root_dirid = le64_put(OID_FIRST_FREE);
	if (t->owner == OID_FS_TREE) {
		d.inode.flags = le64_put(INODE_ROOT_ITEM_INIT);
		memcpy(d.uuid, p->subvolume_uuid, sizeof(d.uuid));
		d.ctime = d.otime = time_of(p);
	}
	return d;
}

static int add_root(const struct mkfs_plan *p, struct bulk *b, uint64_t owner, struct btrkit_error *err)
{
	const struct mkfs_tree *t = mkfs_plan_tree(p, owner);
	struct disk_root_item d;

	if (!t)
		return 0;
	d = root_item(p, t);
	return bulk_add(b, &KEY(owner, KEY_ROOT_ITEM, 0), &d, sizeof(d), err);
}

/* The directory of the root tree has one entry, which says what is mounted when nothing else is asked for. */
static int add_default(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	static const char name[7] = { 'd', 'e', 'f', 'a', 'u', 'l', 't' };
	const struct btrkit_key location = KEY(OID_FS_TREE, KEY_ROOT_ITEM, UINT64_MAX);
	struct {
		struct disk_dir_item head;
		char name[sizeof(name)];
	} entry = { .head = {
			    .location = key_put(&location),
			    .transid = le64_put(p->generation),
			    .name_len = le16_put(sizeof(name)),
			    .type = FT_DIR,
		    } };

	memcpy(entry.name, name, sizeof(name));
	return bulk_add(b, &KEY(OID_ROOT_TREE_DIR, KEY_DIR_ITEM, dir_name_hash(name, sizeof(name))), &entry,
			sizeof(entry), err);
}

static int add_default_ref(struct bulk *b, struct btrkit_error *err)
{
	struct {
		struct disk_inode_ref head;
		char name[7];
	} ref = { .head = { .name_len = le16_put(7) }, .name = { 'd', 'e', 'f', 'a', 'u', 'l', 't' } };

	return bulk_add(b, &KEY(OID_FS_TREE, KEY_INODE_REF, OID_ROOT_TREE_DIR), &ref, sizeof(ref), err);
}

int mkfs_stream_roots(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	static const uint64_t behind[] = { OID_CSUM_TREE,	       OID_QUOTA_TREE,	     OID_UUID_TREE,
					   OID_FREE_SPACE_TREE, OID_BLOCK_GROUP_TREE, OID_DATA_RELOC_TREE };
	int ret;

	if ((ret = add_root(p, b, OID_EXTENT_TREE, err)) || (ret = add_root(p, b, OID_DEV_TREE, err)) ||
	    (ret = add_default_ref(b, err)) || (ret = add_root(p, b, OID_FS_TREE, err)) ||
	    (ret = add_directory(p, b, OID_ROOT_TREE_DIR, OID_ROOT_TREE_DIR, err)) || (ret = add_default(p, b, err)))
		return ret;
	for (size_t i = 0; !ret && i < sizeof(behind) / sizeof(behind[0]); i++)
		ret = add_root(p, b, behind[i], err);
	return ret;
}
