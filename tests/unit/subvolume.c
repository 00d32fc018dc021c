// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random plans that create, change, snapshot and delete subvolumes, compared with a model in memory: with snapshots of
 * snapshots within a transaction, and changes before and after. The whole filesystem is audited after each commit.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "lib/format/feature_bits.h"
#include "lib/format/items/extent.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/roots.h"
#include "lib/modify/subvolume_remove.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define SUBVOLUMES_MAX 12u
#define FILES 150u
#define BYTES_MAX 6000u
#define FILLING 4u

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 220 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 300 } },
	{ "64k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 65536, 0, 1, { 300 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 220 } },
#ifdef HAVE_ISAL
	{ "raid6", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 4096, 2, 4, { 220, 220, 220, 220 } },
#endif
};

/* Contents of a file: @size bytes generated from @seed. */
struct contents {
	bool there;
	uint64_t inode;
	uint32_t size, seed;
};

struct model {
	uint64_t id; /* 0: unused */
	uint64_t parent_in; /* the subvolume that contains it; itself for the top level */
	char name[16];
	bool read_only;
	struct contents files[FILES];
};

struct plan {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t seed, serial;
	struct model all[SUBVOLUMES_MAX]; /* [0] is the top level */
	unsigned snapshots, created, deleted, steps, in_one, most_in_one;
};

static unsigned pick(struct plan *p, unsigned below)
{
	random_step(&p->seed);
	return (unsigned)((p->seed >> 33) % below);
}

static uint8_t byte_of(const struct contents *f, uint32_t at)
{
	return (uint8_t)(f->seed * 31 + at * (f->seed | 1) / 7);
}

static void file_name(unsigned i, char name[16])
{
	snprintf(name, 16, "file-%u", i);
}

static struct model *some(struct plan *p)
{
	struct model *m;

	do
		m = &p->all[pick(p, SUBVOLUMES_MAX)];
	while (!m->id);
	return m;
}

static struct model *free_slot(struct plan *p)
{
	for (unsigned i = 0; i < SUBVOLUMES_MAX; i++)
		if (!p->all[i].id)
			return &p->all[i];
	return NULL;
}

static void change_one(struct plan *p, struct model *m, unsigned which, unsigned kind)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct contents *f = &m->files[which];
	uint8_t bytes[BYTES_MAX];
	char name[16];
	int ret;

	file_name(which, name);
	if (m->read_only) {
		ret = btrkit_txn_create(p->txn, m->id, TOP, "no", 2, NULL, NULL, &err);
		assert_int_equal(ret, -EROFS);
		return;
	}
	if (f->there && (!kind || f->size > BYTES_MAX / 2)) {
		rig_check(btrkit_txn_unlink(p->txn, m->id, TOP, name, strlen(name), BTRKIT_UNLINK_FILE, &err), &err);
		f->there = false;
		return;
	}
	if (!f->there) {
		rig_check(btrkit_txn_create(p->txn, m->id, TOP, name, strlen(name), NULL, &f->inode, &err), &err);
		f->there = true;
	}
	rig_check(btrkit_txn_truncate(p->txn, m->id, f->inode, 0, &err), &err);
	f->seed = pick(p, 1u << 30);
	f->size = 1 + (kind == FILLING ? 1900 : pick(p, kind == 1 ? BYTES_MAX : 900));
	for (uint32_t i = 0; i < f->size; i++)
		bytes[i] = byte_of(f, i);
	rig_check(btrkit_txn_write(p->txn, m->id, f->inode, 0, bytes, f->size, NULL, &err), &err);
}

static void change_file(struct plan *p)
{
	struct model *m = some(p);

	change_one(p, m, pick(p, FILES), pick(p, 4));
}

static void add(struct plan *p, bool snapshot)
{
	struct btrkit_new_snapshot how = BTRKIT_NEW_SNAPSHOT_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct model *to = free_slot(p), *from = some(p), *in = some(p), made = { 0 };
	size_t len;
	int ret;

	if (!to)
		return;
	snprintf(made.name, sizeof(made.name), "sub-%" PRIu64, ++p->serial);
	len = strlen(made.name);
	if (snapshot) {
		how.flags = pick(p, 4) ? 0 : BTRKIT_NEW_SNAPSHOT_READ_ONLY;
		ret = btrkit_txn_subvolume_snapshot(p->txn, from->id, in->id, TOP, made.name, len, &how, &made.id,
						    &err);
	} else {
		ret = btrkit_txn_subvolume_create(p->txn, in->id, TOP, made.name, len, NULL, &made.id, &err);
	}
	if (in->read_only) {
		assert_int_equal(ret, -EROFS);
		return;
	}
	rig_check(ret, &err);
	if (snapshot)
		memcpy(made.files, from->files, sizeof(made.files));
	made.read_only = how.flags;
	made.parent_in = in->id;
	*to = made;
	p->snapshots += snapshot;
	p->created += !snapshot;
	p->most_in_one = ++p->in_one > p->most_in_one ? p->in_one : p->most_in_one;
	assert_int_equal(btrkit_txn_subvolume_create(p->txn, in->id, TOP, made.name, len, NULL, NULL, &err), -EEXIST);
	assert_int_equal(btrkit_txn_subvolume_snapshot(p->txn, 77777, in->id, TOP, "x", 1, NULL, NULL, &err), -ENOENT);
}

static void drop(struct plan *p)
{
	struct btrkit_clone clone = { .to_root = BTRKIT_TOP_LEVEL, .from_inode = TOP, .to_inode = TOP, .length = 1 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct model *m = some(p), *in = &p->all[0];
	int wanted = 0, ret;

	for (unsigned i = 0; i < SUBVOLUMES_MAX; i++) {
		if (p->all[i].id == m->parent_in)
			in = &p->all[i];
		if (p->all[i].id && p->all[i].parent_in == m->id && &p->all[i] != m)
			wanted = -ENOTEMPTY;
	}
	if (!wanted && in->read_only)
		wanted = -EROFS;
	if (m == &p->all[0])
		wanted = -EINVAL;
	ret = btrkit_txn_subvolume_delete(p->txn, m->id, &err);
	if (ret != wanted)
		rig_check(ret, &err);
	assert_int_equal(ret, wanted);
	if (wanted)
		return;
	assert_int_equal(btrkit_txn_subvolume_delete(p->txn, m->id, &err), -ENOENT);
	assert_int_equal(btrkit_txn_create(p->txn, m->id, TOP, "no", 2, NULL, NULL, &err), -ENOENT);
	clone.from_root = m->id;
	assert_int_equal(btrkit_txn_clone(p->txn, &clone, &err), -ENOENT);
	m->id = 0;
	p->deleted++;
}

static void check_file(struct btrkit_fs *fs, const struct model *m, const struct contents *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[BYTES_MAX + 1];
	struct btrkit_file *file;
	size_t got;

	rig_check(btrkit_file_open(fs, m->id, f->inode, &file, &err), &err);
	rig_check(btrkit_file_read(file, 0, bytes, sizeof(bytes), &got, &err), &err);
	btrkit_file_close(file);
	assert_int_equal(got, f->size);
	for (uint32_t i = 0; i < f->size; i++)
		assert_int_equal(bytes[i], byte_of(f, i));
}

static void check_model(struct btrkit_fs *fs, const struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct subvolume s;

	rig_check(subvolume_get(fs, m->id, &s, &err), &err);
	assert_int_equal(!!(s.item.flags & 1), m->read_only);
	for (unsigned i = 0; i < FILES; i++)
		if (m->files[i].there)
			check_file(fs, m, &m->files[i]);
}

static void check_ref(struct btrkit_fs *fs, const struct btrkit_key *key, const struct extent_ref *ref)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct subvolume s;

	if ((ref->type == KEY_TREE_BLOCK_REF || ref->type == KEY_EXTENT_DATA_REF) && oid_is_file_tree(ref->root) &&
	    subvolume_get(fs, ref->root, &s, &err))
		fail_msg("extent %" PRIu64 " has a reference of tree %" PRIu64 ", which is gone", key->objectid,
			 ref->root);
}

/* No extent reference may name a deleted subvolume, and nothing else of one may be left. */
static void verify_names(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct cursor c;
	int ret;

	rig_check(fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		struct extent_item x;
		struct extent_ref ref;

		if (c.item.key.type == KEY_EXTENT_ITEM || c.item.key.type == KEY_METADATA_ITEM) {
			rig_check(extent_item_decode(&fs->items, &c.item, &x, &err), &err);
			while (!(ret = extent_item_next_ref(&x, &ref, &err)))
				check_ref(fs, &c.item.key, &ref);
			assert_int_equal(ret, 1);
		} else if (c.item.key.type == KEY_TREE_BLOCK_REF || c.item.key.type == KEY_EXTENT_DATA_REF) {
			rig_check(extent_keyed_ref_decode(&c.item, &ref, &err), &err);
			check_ref(fs, &c.item.key, &ref);
		}
	}
	assert_int_equal(ret, 1);
	cursor_release(&c);
	cursor_init(&c, fs, &fs->root_tree);
	ret = cursor_seek(&c, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, 0), &err);
	assert_true(ret == 1 || c.item.key.objectid != OID_ORPHAN);
	cursor_release(&c);
}

static void check_all(struct plan *p, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_subvolume s;
	unsigned there = 0, found = 0;
	uint64_t after = 0;
	int ret;

	for (unsigned i = 0; i < SUBVOLUMES_MAX; i++) {
		if (!p->all[i].id)
			continue;
		there++;
		check_model(fs, &p->all[i]);
	}
	while (!(ret = btrkit_subvolume_next(fs, after, &s, &err))) {
		after = s.id;
		found++;
	}
	assert_int_equal(ret, 1);
	assert_int_equal(found, there);
	verify_names(fs);
}

/* A random subvolume that may be deleted, or NULL. */
static struct model *deletable(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	for (unsigned i = 1; i < SUBVOLUMES_MAX; i++) {
		struct btrkit_subvolume_deletion d = { .id = p->all[i].id };

		if (d.id && !btrkit_subvolumes_deletable(p->fs, &d, 1, &err) && d.hold == BTRKIT_SUBVOLUME_DELETABLE)
			return &p->all[i];
	}
	return NULL;
}

/* Deletes a subvolume in small steps, each in its own transaction, as if there had been a crash after each. */
static void drop_slowly(struct plan *p, struct rig *r)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct model *m = deletable(p);
	struct tree_drop d = { 0 };
	bool done = false;
	unsigned steps = 0;

	if (!m)
		return;
	rig_check(btrkit_txn_start(p->fs, &p->txn, &err), &err);
	rig_check(subvolume_take_name(p->txn, m->id, &err), &err);
	rig_check(btrkit_txn_commit(p->txn, NULL, &err), &err);
	rig_verify(r);
	for (; !done; steps++) {
		if (pick(p, 2))
			d = (struct tree_drop){ .id = m->id };
		rig_check(btrkit_txn_start(p->fs, &p->txn, &err), &err);
		d.id = m->id;
		rig_check(subvolume_drop_some(p->txn, &d, 1 + pick(p, 12), &done, &err), &err);
		rig_check(btrkit_txn_commit(p->txn, NULL, &err), &err);
		rig_verify(r);
		assert_true(steps < 2000);
	}
	m->id = 0;
	p->steps += steps;
	check_all(p, p->fs);
}

static void run(const struct rig_kind *kind, uint64_t seed)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct plan *p = calloc(1, sizeof(*p));
	struct btrkit_fs *fs;
	struct rig r;

	rig_make(&r, kind);
	p->seed = seed;
	p->all[0] = (struct model){ .id = BTRKIT_TOP_LEVEL, .parent_in = BTRKIT_TOP_LEVEL };
	p->fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned round = 0; round < 5; round++) {
		rig_check(btrkit_txn_start(p->fs, &p->txn, &err), &err);
		p->in_one = 0;
		/* With small nodes this makes a tree of three levels. */
		for (unsigned i = 0; !round && i < FILES; i++)
			change_one(p, &p->all[0], i, FILLING);
		for (unsigned i = 0; i < 120; i++) {
			const unsigned what = pick(p, 24);

			if (what < 2)
				add(p, true);
			else if (what < 3)
				add(p, false);
			else if (what < 5)
				drop(p);
			else if (what < 6)
				rig_check(btrkit_txn_flush(p->txn, &err), &err);
			else
				change_file(p);
		}
		rig_check(btrkit_txn_commit(p->txn, NULL, &err), &err);
		check_all(p, p->fs);
		rig_verify(&r);
		if (round > 1)
			drop_slowly(p, &r);
	}
	btrkit_fs_close(p->fs);
	fs = rig_open(&r, 0, 0);
	check_all(p, fs);
	btrkit_fs_close(fs);
	assert_true(p->snapshots > 1 && p->created && p->deleted && p->steps && p->most_in_one > 3);
	rig_destroy(&r);
	free(p);
}

static void test_plans(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (uint64_t seed = 1; seed < (i ? 3 : 9); seed++)
			run(&kinds[i], seed * 1000 + i);
}

/* Marks a subvolume as received. */
static void receive(struct btrkit_txn *txn, uint64_t id)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct roots_item item;

	rig_check(roots_get(txn, id, &item, &err), &err);
	memset(item.d.received_uuid, 0x77, sizeof(item.d.received_uuid));
	item.d.stransid = le64_put(3);
	rig_check(roots_put(txn, &item, &err), &err);
	rig_check(roots_add_uuids(txn, id, &item.d, &err), &err);
}

static bool uuid_known(struct btrkit_fs *fs)
{
	const struct btrkit_key key = KEY(0x7777777777777777, KEY_UUID_RECEIVED_SUBVOL, 0x7777777777777777);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct cursor c;
	int ret;

	rig_check(fs_find_root(fs, OID_UUID_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	ret = cursor_find(&c, &key, &err);
	cursor_release(&c);
	assert_true(ret >= 0);
	return !ret;
}

static void test_read_only(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct subvolume s;
	struct btrkit_new_inode node = BTRKIT_NEW_INODE_INIT;
	uint64_t id, pipe;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[0]);
	node.mode = S_IFIFO | 0644;
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "a", 1, NULL, &id, &err), &err);
	rig_check(btrkit_txn_create(txn, id, TOP, "f", 1, NULL, NULL, &err), &err);
	rig_check(btrkit_txn_create(txn, id, TOP, "p", 1, &node, &pipe, &err), &err);
	assert_int_equal(btrkit_txn_subvolume_set_read_only(txn, 4711, true, false, &err), -ENOENT);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, id, true, false, &err), &err);
	assert_int_equal(btrkit_txn_create(txn, id, TOP, "g", 1, NULL, NULL, &err), -EROFS);
	assert_int_equal(btrkit_txn_write(txn, id, TOP + 1, 0, "", 0, NULL, &err), -EROFS);
	/* An unknown prefix gives EROFS first, as in Linux; a special file accepts the property even here. */
	assert_int_equal(btrkit_txn_xattr_set(txn, id, TOP + 1, "none", "", 0, 0, &err), -EROFS);
	assert_int_equal(btrkit_txn_xattr_set(txn, id, TOP + 1, "system.x", "", 0, 0, &err), -EOPNOTSUPP);
	rig_check(btrkit_txn_xattr_set(txn, id, pipe, "btrfs.compression", "lzo", 3, 0, &err), &err);
	receive(txn, id);
	assert_int_equal(btrkit_txn_subvolume_set_read_only(txn, id, false, false, &err), -EPERM);
	assert_int_equal(btrkit_txn_create(txn, id, TOP, "g", 1, NULL, NULL, &err), -EROFS);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&r);
	assert_true(uuid_known(fs));
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	assert_int_equal(btrkit_txn_create(txn, id, TOP, "g", 1, NULL, NULL, &err), -EROFS);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, id, false, true, &err), &err);
	rig_check(btrkit_txn_create(txn, id, TOP, "g", 1, NULL, NULL, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&r);
	assert_false(uuid_known(fs));
	rig_check(subvolume_get(fs, id, &s, &err), &err);
	assert_int_equal(s.item.flags, 0);
	assert_int_equal(s.item.received_uuid[0], 0);
	assert_int_equal(s.item.stransid, 0);
	assert_int_equal(s.item.rtransid, s.item.ctransid);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

/* The generation of the last change of a subvolume that was snapshotted earlier in the same transaction. */
static void test_changed(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct subvolume s, copy;
	uint64_t id, snapshot;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[0]);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "a", 1, NULL, &id, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &snapshot, &err), &err);
	rig_check(btrkit_txn_create(txn, id, TOP, "f", 1, NULL, NULL, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(subvolume_get(fs, id, &s, &err), &err);
	rig_check(subvolume_get(fs, snapshot, &copy, &err), &err);
	assert_int_equal(s.item.ctransid, fs->super.generation);
	assert_int_equal(copy.item.ctransid, s.item.otransid);
	btrkit_fs_close(fs);
	rig_verify(&r);
	rig_destroy(&r);
}

static void test_default(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t id, snapshot, found;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[1]);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "a", 1, NULL, &id, &err), &err);
	rig_check(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &snapshot, &err), &err);
	assert_int_equal(btrkit_txn_subvolume_set_default(txn, 4711, &err), -ENOENT);
	rig_check(btrkit_txn_subvolume_set_default(txn, snapshot, &err), &err);
	assert_int_equal(btrkit_txn_subvolume_delete(txn, snapshot, &err), -EPERM);
	rig_check(btrkit_txn_subvolume_delete(txn, id, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	rig_verify(&r);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(subvolume_default(fs, &found, &err), &err);
	assert_int_equal(found, snapshot);
	assert_true(fs->super.incompat & INCOMPAT_DEFAULT_SUBVOL);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_set_default(txn, BTRKIT_TOP_LEVEL, &err), &err);
	rig_check(btrkit_txn_subvolume_delete(txn, snapshot, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(subvolume_default(fs, &found, &err), &err);
	assert_int_equal(found, BTRKIT_TOP_LEVEL);
	btrkit_fs_close(fs);
	rig_verify(&r);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
