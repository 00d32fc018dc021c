// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items of the root tree, the UUID tree and the quota tree, and the directories of an empty filesystem. */
#include "lib/mkfs/streams.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/root.h"
#include "lib/mkfs/filled/fill.h"

int mkfs_stream_nothing(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err)
{
	(void)p;
	(void)t;
	(void)b;
	(void)err;
	return 0;
}

static struct disk_time time_of(const struct mkfs_plan *p)
{
	return (struct disk_time){ .sec = le64_put((uint64_t)p->opts.time) };
}

/* Adds an empty directory named "..". */
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

int mkfs_stream_top_level(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			  struct btrkit_error *err)
{
	(void)t;
	return add_directory(p, b, OID_FIRST_FREE, OID_FIRST_FREE, err);
}

int mkfs_stream_data_reloc(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			   struct btrkit_error *err)
{
	(void)t;
	return add_directory(p, b, OID_FIRST_FREE, OID_FIRST_FREE, err);
}

/* The subvolume with a UUID. */
struct owner {
	struct btrkit_key key; /* the UUID itself */
	uint64_t id;
};

static const uint8_t *uuid_of(const struct mkfs_plan *p, uint32_t subvolume)
{
	return subvolume ? p->fill->uuids[subvolume] : p->subvolume_uuid;
}

static int by_key(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return key_cmp(&x->key, &y->key);
}

int mkfs_stream_uuids(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err)
{
	const uint32_t n = mkfs_fill_subvolumes(p->fill);
	struct owner *owners = calloc(n, sizeof(*owners));
	int ret = 0;

	(void)t;
	if (!owners)
		return err_nomem(err);
	for (uint32_t i = 0; i < n; i++) {
		le64 half[2];

		memcpy(half, uuid_of(p, i), sizeof(half));
		owners[i] = (struct owner){ KEY(le64_get(half[0]), KEY_UUID_SUBVOL, le64_get(half[1])),
					    mkfs_fill_subvolume_id(i) };
	}
	qsort(owners, n, sizeof(*owners), by_key);
	for (uint32_t i = 0; !ret && i < n; i++) {
		const le64 id = le64_put(owners[i].id);

		ret = bulk_add(b, &owners[i].key, &id, sizeof(id), err);
	}
	free(owners);
	return ret;
}

/* Bytes that a subvolume refers to, and those that no other subvolume refers to. */
struct usage {
	uint64_t referenced, exclusive;
};

/* Contents shared by hard links across subvolumes are exclusive to none of them. */
static void count_contents(const struct mkfs_fill *f, struct usage *usage)
{
	const struct source *s = f->source;

	for (size_t i = 0; i < f->contents->num_extents; i++) {
		const struct mkfs_extent *x = &f->contents->extents[i];
		const struct source_inode *n = &s->inodes[x->inode];

		if (x->in_item)
			continue;
		if (n->next_sharing == SOURCE_NONE)
			usage[n->subvolume].exclusive += x->disk_bytes;
		for (uint32_t at = x->inode; at != SOURCE_NONE; at = s->inodes[at].next_sharing)
			usage[s->inodes[at].subvolume].referenced += x->disk_bytes;
	}
}

/* The usage of each subvolume consists of its tree and its contents. */
int mkfs_stream_quota(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err)
{
	const bool simple = p->opts.incompat & INCOMPAT_SIMPLE_QUOTA;
	const uint32_t n = mkfs_fill_subvolumes(p->fill);
	struct usage *usage = calloc(n, sizeof(*usage));
	const struct disk_qgroup_status status = {
		.version = le64_put(1),
		.generation = le64_put(p->generation),
		.flags = le64_put(QGROUP_STATUS_ON | (simple ? QGROUP_STATUS_SIMPLE_MODE : 0)),
		.enable_gen = le64_put(simple ? p->generation : 0),
	};
	const struct disk_qgroup_limit limit = { 0 };
	int ret;

	(void)t;
	if (!usage)
		return err_nomem(err);
	if (p->fill)
		count_contents(p->fill, usage);
	ret = bulk_add(b, &KEY(0, KEY_QGROUP_STATUS, 0), &status, sizeof(status), err);
	for (uint32_t i = 0; !ret && i < n; i++) {
		const uint64_t id = mkfs_fill_subvolume_id(i);
		const uint64_t tree = mkfs_tree_num_blocks(mkfs_plan_tree(p, id)) * p->opts.nodesize;
		const le64 referenced = le64_put(usage[i].referenced + tree);
		const le64 exclusive = le64_put(usage[i].exclusive + tree);
		const struct disk_qgroup_info info = { le64_put(p->generation), referenced, referenced, exclusive,
						       exclusive };

		ret = bulk_add(b, &KEY(0, KEY_QGROUP_INFO, id), &info, sizeof(info), err);
	}
	for (uint32_t i = 0; !ret && i < n; i++)
		ret = bulk_add(b, &KEY(0, KEY_QGROUP_LIMIT, mkfs_fill_subvolume_id(i)), &limit, sizeof(limit), err);
	free(usage);
	return ret;
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
	const uint32_t number = mkfs_fill_subvolume_number(t->owner);

	if (!oid_is_file_tree(t->owner)) {
		if (t->owner == OID_DATA_RELOC_TREE)
			d.root_dirid = le64_put(OID_FIRST_FREE);
		return d;
	}
	d.root_dirid = le64_put(OID_FIRST_FREE);
	d.inode.flags = le64_put(INODE_ROOT_ITEM_INIT);
	memcpy(d.uuid, uuid_of(p, number), sizeof(d.uuid));
	d.ctime = d.otime = time_of(p);
	if (number)
		d.otransid = d.ctransid = le64_put(p->generation);
	if (p->fill && p->fill->source->subvolumes[number].readonly)
		d.flags = le64_put(ROOT_SUBVOL_RDONLY);
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

/* Adds the root reference or back reference of a subvolume. */
static int add_root_ref(const struct mkfs_plan *p, struct bulk *b, uint32_t number, bool back, struct btrkit_error *err)
{
	const struct source *s = p->fill->source;
	const struct source_entry *name = &s->entries[s->subvolumes[number].entry];
	const uint64_t parent = mkfs_fill_subvolume_id(s->subvolumes[number].parent);
	const uint64_t id = mkfs_fill_subvolume_id(number);
	struct {
		struct disk_root_ref head;
		char name[SOURCE_NAME_MAX];
	} ref = { .head = { le64_put(mkfs_fill_objectid(&s->inodes[name->parent])), le64_put(name->index),
			    le16_put(name->len) } };

	memcpy(ref.name, name->name, name->len);
	return bulk_add(b, back ? &KEY(id, KEY_ROOT_BACKREF, parent) : &KEY(parent, KEY_ROOT_REF, id), &ref,
			(uint32_t)sizeof(ref.head) + name->len, err);
}

/* Adds the root item of a subvolume, its back reference and the references to its nested subvolumes. */
static int add_subvolume(const struct mkfs_plan *p, struct bulk *b, uint32_t number, struct btrkit_error *err)
{
	int ret = add_root(p, b, mkfs_fill_subvolume_id(number), err);

	if (!ret && number)
		ret = add_root_ref(p, b, number, true, err);
	for (uint32_t i = 1; !ret && i < mkfs_fill_subvolumes(p->fill); i++)
		if (p->fill->source->subvolumes[i].parent == number)
			ret = add_root_ref(p, b, i, false, err);
	return ret;
}

/* Adds the entry "default" of the root tree directory, which names the default subvolume. */
static int add_default(const struct mkfs_plan *p, struct bulk *b, struct btrkit_error *err)
{
	static const char name[7] = { 'd', 'e', 'f', 'a', 'u', 'l', 't' };
	const struct btrkit_key location = KEY(mkfs_fill_default(p->fill), KEY_ROOT_ITEM, UINT64_MAX);
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

int mkfs_stream_roots(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err)
{
	static const uint64_t behind[] = { OID_CSUM_TREE, OID_QUOTA_TREE, OID_UUID_TREE, OID_FREE_SPACE_TREE,
					   OID_BLOCK_GROUP_TREE };
	int ret;

	(void)t;
	if ((ret = add_root(p, b, OID_EXTENT_TREE, err)) || (ret = add_root(p, b, OID_DEV_TREE, err)) ||
	    (ret = add_default_ref(b, err)) || (ret = add_subvolume(p, b, 0, err)) ||
	    (ret = add_directory(p, b, OID_ROOT_TREE_DIR, OID_ROOT_TREE_DIR, err)) || (ret = add_default(p, b, err)))
		return ret;
	for (size_t i = 0; !ret && i < sizeof(behind) / sizeof(behind[0]); i++)
		ret = add_root(p, b, behind[i], err);
	for (uint32_t i = 1; !ret && i < mkfs_fill_subvolumes(p->fill); i++)
		ret = add_subvolume(p, b, i, err);
	return ret ? ret : add_root(p, b, OID_DATA_RELOC_TREE, err);
}
