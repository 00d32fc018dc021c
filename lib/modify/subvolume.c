// SPDX-License-Identifier: LGPL-2.1-or-later
/* Creation of subvolumes and snapshots. */
#include <btrkit/subvolume_modify.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/names/inherit.h"
#include "lib/modify/roots.h"

/* A subvolume or snapshot to create. */
struct adding {
	struct op op;
	struct roots_place place;
	struct op_inode dir;
	uint8_t uuid[16];
	uint64_t id, key_offset; /* of the ROOT_ITEM, as in the directory entry */
	struct inherited from_dir;
	struct disk_inode_item inode;
};

/* The entry and its index, the directory, and one attribute of the new subvolume. */
static const struct ticket_need entry_need = {
	.items = 5,
	.bytes = 2 * (sizeof(struct disk_dir_item) + NAME_LEN_MAX + sizeof(struct disk_item)) + 512,
};

/* Checks everything that does not depend on the filesystem, and chooses the UUID. */
static int prepare(struct adding *a, const struct btrkit_txn *txn, const uint8_t *uuid, struct btrkit_error *err)
{
	int ret = name_check(&a->place.name, err);

	if (!ret)
		ret = roots_check_quotas(txn, err);
	if (!ret && !uuid)
		ret = base_uuid_random(a->uuid, err);
	else if (!ret)
		memcpy(a->uuid, uuid, sizeof(a->uuid));
	return ret;
}

/* Checks whether the name can be added to the directory, and gets its index. */
static int check_place(struct adding *a, struct btrkit_error *err)
{
	int ret;

	ret = op_inode_get(&a->op, a->place.dir, &a->dir, err);
	if (!ret)
		ret = name_check_new(&a->op, &a->dir, &a->place.name, err);
	if (!ret)
		ret = name_fits(&a->op, &a->dir, &a->place.name, err);
	if (!ret)
		ret = delayed_next_index(a->op.t, &a->op.reader, a->place.dir, &a->place.index, err);
	return ret;
}

/* Adds the directory entry, once the tree exists. */
static int add_entry(struct adding *a, struct btrkit_error *err)
{
	const struct name_entry entry = { KEY(a->id, KEY_ROOT_ITEM, a->key_offset), FT_DIR };
	int ret = name_add(&a->op, &a->dir, &a->place.name, &entry, a->place.index, err);

	return ret ? ret : op_inode_put(&a->op, &a->dir, err);
}

/*
 * Collects what the root directory inherits. As in Linux that is the compression of the parent subvolume's root
 * directory, and the permissions as reduced by the default ACL of the parent directory, but not that ACL itself, nor
 * any flags.
 */
static int find_inherited(struct adding *a, struct btrkit_error *err)
{
	struct inherited *h = &a->from_dir;
	struct op_inode top;
	int ret;

	ret = inherit_acls(&a->op, &a->dir, h, err);
	free(h->access);
	free(h->standard);
	h->access = h->standard = NULL;
	if (!ret)
		ret = op_inode_get(&a->op, OID_FIRST_FREE, &top, err);
	if (!ret)
		ret = property_inherited(&a->op, &top, &h->compression, err);
	return ret < 0 ? ret : 0;
}

static void make_inode(struct adding *a, const struct btrkit_new_subvolume *what)
{
	const struct disk_time time = what->time ? op_put_time(what->time) : a->op.now;

	a->inode = (struct disk_inode_item){
		.generation = le64_put(a->op.txn->generation),
		.transid = le64_put(a->op.txn->generation),
		.nlink = le32_put(1),
		.uid = le32_put(what->uid),
		.gid = le32_put(what->gid),
		.mode = le32_put(a->from_dir.mode),
		.atime = time,
		.ctime = time,
		.mtime = time,
		.otime = time,
	};
	inherit_property(&a->op, &a->from_dir, &a->inode);
}

/* Inserts the root directory, with its reference to itself. */
static int fill_tree(const struct adding *a, struct edit_tree *t, struct btrkit_error *err)
{
	static const char name[] = { '.', '.' };
	const struct disk_inode_ref ref = { .name_len = le16_put(sizeof(name)) };
	uint8_t bytes[sizeof(ref) + sizeof(name)];
	int ret;

	memcpy(bytes, &ref, sizeof(ref));
	memcpy(bytes + sizeof(ref), name, sizeof(name));
	ret = edit_insert(t, &KEY(OID_FIRST_FREE, KEY_INODE_ITEM, 0), &a->inode, sizeof(a->inode), err);
	if (!ret)
		ret = edit_insert(t, &KEY(OID_FIRST_FREE, KEY_INODE_REF, OID_FIRST_FREE), bytes, sizeof(bytes), err);
	return ret;
}

static int make_tree(struct adding *a, const struct btrkit_new_subvolume *what, struct btrkit_error *err)
{
	struct btrkit_txn *txn = a->op.txn;
	struct disk_root_item d = {
		.inode = {
			.generation = le64_put(1),
			.size = le64_put(ROOT_INODE_SIZE),
			.nbytes = le64_put(txn->fs->geometry.nodesize),
			.nlink = le32_put(1),
			.mode = le32_put(S_IFDIR | 0755),
			.flags = le64_put(INODE_ROOT_ITEM_INIT),
		},
		.root_dirid = le64_put(OID_FIRST_FREE),
		.refs = le32_put(1),
		.ctransid = le64_put(txn->generation),
		.otransid = le64_put(txn->generation),
		.ctime = a->op.now,
		.otime = what->time ? op_put_time(what->time) : a->op.now,
	};
	struct edit_tree *t;
	int ret;

	memcpy(d.uuid, a->uuid, sizeof(d.uuid));
	ret = roots_take_id(txn, &a->id, err);
	if (!ret)
		ret = overlay_new_tree(txn->overlay, a->id, &t, err);
	if (!ret)
		ret = fill_tree(a, t, err);
	if (!ret)
		ret = roots_insert(txn, t, &d, err);
	return ret ? ret : roots_link(txn, a->id, &a->place, err);
}

/* Ends a part that edits trees directly, or adds the entry for that: any failure halfway is fatal. */
static int ended_in_trees(const struct adding *a, int ret, const struct btrkit_error *err)
{
	if (ret && op_has_changed(&a->op))
		failure_note(a->op.txn->failure, ret, err);
	return ret;
}

/* Adds the inherited attributes to the root directory. */
static int put_inherited(const struct adding *a, struct btrkit_error *err)
{
	struct op own;
	int ret = op_join(&a->op, a->id, &own, err);

	if (!ret)
		ret = inherit_put(&own, OID_FIRST_FREE, &a->from_dir, err);
	delayed_reader_release(&own.reader);
	return ret;
}

static int make_subvolume(struct adding *a, const struct btrkit_new_subvolume *what, struct btrkit_error *err)
{
	int ret = check_place(a, err);

	a->from_dir.mode = S_IFDIR | what->mode;
	if (!ret)
		ret = find_inherited(a, err);
	if (ret)
		return ret;
	make_inode(a, what);
	sync_lock_trees(&a->op.txn->sync);
	ret = ended_in_trees(a, make_tree(a, what, err), err);
	sync_unlock_trees(&a->op.txn->sync);
	if (!ret)
		ret = ended_in_trees(a, put_inherited(a, err), err);
	return ret ? ret : ended_in_trees(a, add_entry(a, err), err);
}

int btrkit_txn_subvolume_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
				const struct btrkit_new_subvolume *what, uint64_t *id, struct btrkit_error *err)
{
	static const struct btrkit_new_subvolume plain = BTRKIT_NEW_SUBVOLUME_INIT;
	static const struct ticket_exclusive exclusive = { .blocks = 8 * ROOTS_BLOCKS };
	struct adding a = { .place = { .parent = root, .dir = dir, .name = { name, len } } };
	int ret;

	if (!what)
		what = &plain;
	if (what->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", what->flags);
	if (what->mode & ~07777u)
		return err_set(err, BTRKIT_INVALID, "invalid permissions 0%o", what->mode);
	ret = op_check_owner(what->uid, what->gid, err);
	if (!ret && what->time)
		ret = op_check_time(what->time, err);
	if (!ret)
		ret = prepare(&a, txn, what->uuid, err);
	if (!ret)
		ret = op_begin_exclusive(&a.op, txn, root, &entry_need, &exclusive, err);
	if (ret)
		return ret;
	ret = op_end_exclusive(&a.op, make_subvolume(&a, what, err), err);
	ret = name_in_the_way(txn, root, dir, &a.place.name, ret, err);
	if (!ret && id)
		*id = a.id;
	return ret;
}

/* Turns the root item of the source into that of the snapshot. */
static void derive_root(const struct adding *a, struct disk_root_item *d, bool read_only)
{
	uint64_t flags = le64_get(d->flags);

	memcpy(d->parent_uuid, d->uuid, sizeof(d->parent_uuid));
	memcpy(d->uuid, a->uuid, sizeof(d->uuid));
	/* Root items of old kernels have no valid flags and limit. */
	if (!(le64_get(d->inode.flags) & INODE_ROOT_ITEM_INIT)) {
		d->inode.flags = le64_put(le64_get(d->inode.flags) | INODE_ROOT_ITEM_INIT);
		d->byte_limit = le64_put(0);
		flags = 0;
	}
	d->flags = le64_put(read_only ? flags | ROOT_SUBVOL_RDONLY : flags & ~ROOT_SUBVOL_RDONLY);
	if (!read_only) {
		memset(d->received_uuid, 0, sizeof(d->received_uuid));
		d->stransid = d->rtransid = le64_put(0);
		d->stime = d->rtime = (struct disk_time){ le64_put(0), le32_put(0) };
	}
	d->otransid = le64_put(a->op.txn->generation);
	d->otime = a->op.now;
	d->refs = le32_put(1);
	memset(&d->drop_progress, 0, sizeof(d->drop_progress));
	d->drop_level = 0;
}

/* With drop_progress set, readers would regard a part of the tree as dropped. */
static int check_source(const struct subvolume *s, struct btrkit_error *err)
{
	const struct btrkit_key *at = &s->item.drop_progress;

	if (!at->objectid && !at->type && !at->offset)
		return 0;
	err_corrupt(err, "drop_progress", "subvolume %" PRIu64 " is being dropped, but still referenced", s->root.id);
	err_at_tree(err, OID_ROOT_TREE);
	err_at_key(err, &KEY(s->root.id, KEY_ROOT_ITEM, s->root.key_offset));
	return -EUCLEAN;
}

static int make_snapshot(struct adding *a, uint64_t source, bool read_only, struct btrkit_error *err)
{
	struct btrkit_txn *txn = a->op.txn;
	struct edit_tree *from, *to;
	struct roots_item item;
	struct subvolume s;
	int ret;

	ret = subvolume_get(txn->fs, source, &s, err);
	if (!ret)
		ret = check_source(&s, err);
	if (!ret)
		ret = txn_tree(txn, source, &from, err);
	if (!ret)
		ret = roots_take_id(txn, &a->id, err);
	if (!ret)
		ret = overlay_snapshot(from, a->id, &to, err);
	if (!ret)
		ret = roots_get(txn, source, &item, err);
	if (ret)
		return ret;
	a->key_offset = UINT64_MAX;
	item.d.last_snapshot = le64_put(txn->generation);
	ret = roots_put(txn, &item, err);
	derive_root(a, &item.d, read_only);
	if (!ret)
		ret = roots_insert(txn, to, &item.d, err);
	return ret ? ret : roots_link(txn, a->id, &a->place, err);
}

int btrkit_txn_subvolume_snapshot(struct btrkit_txn *txn, uint64_t source, uint64_t root, uint64_t dir,
				  const char *name, size_t len, const struct btrkit_new_snapshot *what, uint64_t *id,
				  struct btrkit_error *err)
{
	static const struct btrkit_new_snapshot plain = BTRKIT_NEW_SNAPSHOT_INIT;
	/* Everything that the root block refers to gets another reference. */
	const uint64_t refs = txn->fs->geometry.nodesize / sizeof(struct disk_key_ptr);
	const struct ticket_exclusive exclusive = { .blocks = 8 * ROOTS_BLOCKS + 2, .refs = refs };
	struct adding a = { .place = { .parent = root, .dir = dir, .name = { name, len } } };
	int ret;

	if (!what)
		what = &plain;
	if (what->flags & ~(unsigned)BTRKIT_NEW_SNAPSHOT_READ_ONLY)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", what->flags);
	ret = prepare(&a, txn, what->uuid, err);
	if (!ret)
		ret = op_begin_exclusive(&a.op, txn, root, &entry_need, &exclusive, err);
	if (ret)
		return ret;
	ret = check_place(&a, err);
	if (!ret) {
		sync_lock_trees(&a.op.txn->sync);
		ret = ended_in_trees(&a, make_snapshot(&a, source, what->flags & BTRKIT_NEW_SNAPSHOT_READ_ONLY, err),
				     err);
		sync_unlock_trees(&a.op.txn->sync);
	}
	if (!ret)
		ret = ended_in_trees(&a, add_entry(&a, err), err);
	ret = name_in_the_way(txn, root, dir, &a.place.name, op_end_exclusive(&a.op, ret, err), err);
	if (!ret && id)
		*id = a.id;
	return ret;
}
