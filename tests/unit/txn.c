// SPDX-License-Identifier: LGPL-2.1-or-later
/* Transactions on filesystems in memory: exactly what was committed is there, and everything is consistent. */
#include "tests/unit/unit.h"

#include "lib/base/err.h"
#include "lib/commit/settle.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/super.h"
#include "lib/reserve/reserve.h"
#include "lib/volume/volume.h"
#include "tests/unit/written.h"
#include "tests/random.h"

#define SIZE (160ull << 20)
#define KEYS 4000u
#define TYPE 99u /* of items that are not in the registry */

/* The model: which of the keys exist. */
static bool model[KEYS];
static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	random_step(&seed);
	return (uint32_t)(seed >> 33) % n;
}

static struct btrkit_key key_of(uint32_t i)
{
	return KEY(1000 + i / 7, TYPE, i);
}

/* Inserts or deletes @n items of the top-level subvolume. */
static void toggle(struct btrkit_txn *txn, uint32_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL;
	uint8_t bytes[600];

	written_check(txn_tree(txn, OID_FS_TREE, &t, &err), &err);
	while (n--) {
		const uint32_t i = rnd(KEYS);
		const struct btrkit_key key = key_of(i);

		memset(bytes, (int)i, sizeof(bytes));
		if (model[i])
			written_check(edit_delete(t, &key, &err), &err);
		else
			written_check(edit_insert(t, &key, bytes, i % sizeof(bytes), &err), &err);
		model[i] = !model[i];
	}
}

/* The tree and the model must have the same items. */
static void compare(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct cursor c;
	uint32_t found = 0, expected = 0;
	int ret;

	written_check(fs_find_root(fs, OID_FS_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(1000, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		const uint32_t i = (uint32_t)c.item.key.offset;

		assert_true(c.item.key.type == TYPE && i < KEYS && model[i]);
		assert_int_equal(c.item.size, i % 600);
		for (uint32_t j = 0; j < c.item.size; j++)
			assert_int_equal(c.item.data[j], (uint8_t)i);
		found++;
	}
	cursor_release(&c);
	assert_int_equal(ret, 1);
	for (uint32_t i = 0; i < KEYS; i++)
		expected += model[i];
	assert_int_equal(found, expected);
}

static void reopen_and_compare(struct written *w)
{
	struct btrkit_fs *fs = written_open(w, 0);

	compare(fs);
	btrkit_fs_close(fs);
	written_verify(w);
}

/* Features and sizes that change what a commit has to write. */
static struct btrkit_mkfs_options variant(unsigned i)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	o.nodesize = i & 1 ? 4096 : 16384;
	if (i & 2)
		o.incompat &= ~(uint64_t)INCOMPAT_SKINNY_METADATA;
	o.mixed = i & 4;
	if (o.mixed)
		o.nodesize = o.sectorsize = 4096, o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	if (i & 8)
		o.compat_ro = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;
	if (i & 16)
		o.compat_ro = 0;
	return o;
}
#define VARIANTS 32u

static void committed_items_are_there(void **state)
{
	(void)state;
	for (unsigned v = 0; v < VARIANTS; v++) {
		const struct btrkit_mkfs_options o = variant(v);
		struct written w;
		struct btrkit_fs *fs;

		seed = v;
		memset(model, 0, sizeof(model));
		written_make(&w, &o, SIZE);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		for (unsigned i = 0; i < 4; i++) {
			struct btrkit_txn *txn = written_start(fs);

			toggle(txn, i ? 700 : 3000);
			compare(fs);
			written_commit(txn);
			compare(fs);
			reopen_and_compare(&w);
		}
		btrkit_fs_close(fs);
		written_destroy(&w);
	}
}

static void what_is_aborted_leaves_no_trace(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	bool before[KEYS];
	struct written w;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t calls;

	(void)state;
	memset(model, 0, sizeof(model));
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	toggle(txn, 1000);
	written_commit(txn);
	memcpy(before, model, sizeof(model));
	calls = w.calls;
	txn = written_start(fs);
	toggle(txn, 1000);
	assert_null(btrkit_txn_abort(txn));
	memcpy(model, before, sizeof(model));
	compare(fs);
	/* With references applied, and by closing instead of aborting. */
	txn = written_start(fs);
	toggle(txn, 500);
	assert_int_equal(txn_run_refs(txn, NULL), 0);
	btrkit_txn_abort(txn);
	txn = written_start(fs);
	memcpy(model, before, sizeof(model));
	compare(fs);
	toggle(txn, 500);
	btrkit_fs_close(fs);
	assert_int_equal(w.calls, calls);
	memcpy(model, before, sizeof(model));
	reopen_and_compare(&w);
	written_destroy(&w);
}

static void what_cannot_begin(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_write_stats stats;
	struct btrkit_txn *txn, *second = NULL;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	written_make(&w, &o, SIZE);
	fs = written_open(&w, 0);
	assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
	btrkit_fs_get_write_stats(fs, &stats);
	assert_int_equal(stats.commits, 0);
	btrkit_fs_close(fs);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	assert_int_equal(btrkit_txn_start(fs, &second, &err), -EBUSY);
	/* Without changes, nothing is written. */
	written_commit(txn);
	assert_int_equal(w.calls, 0);
	txn = written_start(fs);
	failure_note(txn->failure, -EINVAL, NULL);
	assert_int_equal(btrkit_txn_commit(txn, NULL, &err), -EINVAL);
	assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
	assert_null(btrkit_txn_abort(NULL));
	btrkit_fs_close(fs);
	written_destroy(&w);
}

/* Compares the primary superblock with a mirror: they may differ only in location. */
static struct disk_super get_super(struct written *w)
{
	struct disk_super primary, mirror;

	assert_int_equal(btrkit_io_read(w->bytes, super_offset(0), &primary, SUPER_SIZE, NULL), 0);
	assert_int_equal(btrkit_io_read(w->bytes, super_offset(1), &mirror, SUPER_SIZE, NULL), 0);
	mirror.bytenr = primary.bytenr;
	memcpy(mirror.csum, primary.csum, sizeof(mirror.csum));
	assert_memory_equal(&primary, &mirror, sizeof(primary));
	return primary;
}

static void backup_roots_rotate(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	memset(model, 0, sizeof(model));
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	/* mkfs wrote slot 0 with generation 1. */
	for (uint64_t generation = 2; generation < 12; generation++) {
		struct btrkit_txn *txn = written_start(fs);
		struct disk_super s;
		const struct disk_root_backup *b;

		toggle(txn, 5);
		written_commit(txn);
		s = get_super(&w);
		b = &s.backups[(generation - 1) % SUPER_BACKUPS];
		assert_int_equal(le64_get(s.generation), generation);
		assert_int_equal(le64_get(b->tree_root_gen), generation);
		assert_memory_equal(&b->tree_root, &s.root, sizeof(s.root));
		assert_memory_equal(&b->chunk_root, &s.chunk_root, sizeof(s.chunk_root));
		assert_memory_equal(&b->bytes_used, &s.bytes_used, sizeof(s.bytes_used));
		assert_int_equal(le64_get(b->fs_root_gen), generation);
		assert_int_equal(le64_get(b->extent_root_gen), generation);
		assert_int_equal(le64_get(b->dev_root_gen), 1);
		assert_int_equal(le64_get(b->num_devices), 1);
		if (generation > SUPER_BACKUPS)
			assert_int_equal(le64_get(s.backups[generation % SUPER_BACKUPS].tree_root_gen), generation - 3);
		/* A new handle continues where the previous one stopped. */
		if (generation == 6) {
			btrkit_fs_close(fs);
			fs = written_open(&w, BTRKIT_OPEN_WRITE);
		}
	}
	btrkit_fs_close(fs);
	written_destroy(&w);
}

/* A change to the superblock alone is committed too, and copies the root tree. */
static void superblock_alone(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct written w;
	struct btrkit_fs *fs;
	struct disk_super s;

	(void)state;
	memset(model, 0, sizeof(model));
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	s = get_super(&w);
	txn = written_start(fs);
	txn->super.label[0] = 'x';
	txn->super.uuid_tree_generation = s.generation;
	written_commit(txn);
	assert_int_equal(fs->root_tree.generation, 2);
	txn = written_start(fs);
	toggle(txn, 1);
	txn->super.cache_generation = le64_put(2);
	written_commit(txn);
	s = get_super(&w);
	assert_string_equal(s.label, "x");
	assert_int_equal(le64_get(s.generation), 3);
	assert_int_equal(le64_get(s.uuid_tree_generation), 3);
	assert_int_equal(fs->root_tree.generation, 3);
	/* uuid_tree_generation is updated if it was up to date before, cache_generation never. */
	txn = written_start(fs);
	txn->super.uuid_tree_generation = le64_put(1);
	toggle(txn, 1);
	written_commit(txn);
	s = get_super(&w);
	assert_int_equal(le64_get(s.uuid_tree_generation), 1);
	assert_int_equal(le64_get(s.cache_generation), 2);
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

static void room_is_made_for_blocks(void **state)
{
	(void)state;
	for (unsigned v = 0; v < VARIANTS; v += 4) {
		const struct btrkit_mkfs_options o = variant(v);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_txn *txn;
		struct written w;
		struct btrkit_fs *fs;
		size_t chunks;

		seed = v;
		memset(model, 0, sizeof(model));
		written_make(&w, &o, SIZE);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		chunks = volume_num_chunks(fs->volume);
		txn = written_start(fs);
		written_check(txn_reserve(txn, 10, &err), &err);
		assert_int_equal(volume_num_chunks(fs->volume), chunks);
		written_check(txn_reserve(txn, (34ull << 20) / o.nodesize, &err), &err);
		assert_true(volume_num_chunks(fs->volume) > chunks);
		btrkit_txn_abort(txn);
		assert_int_equal(volume_num_chunks(fs->volume), chunks);
		/* The new chunk is kept, and the next handle finds it. */
		txn = written_start(fs);
		written_check(txn_reserve(txn, (34ull << 20) / o.nodesize, &err), &err);
		toggle(txn, 2000);
		written_commit(txn);
		reopen_and_compare(&w);
		/* If more is reserved than there is, that fails, and nothing is lost. */
		txn = written_start(fs);
		toggle(txn, 100);
		assert_int_equal(txn_reserve(txn, SIZE / 4096, &err), -ENOSPC);
		assert_non_null(strstr(err.message, "tree blocks may be needed"));
		toggle(txn, 100);
		written_commit(txn);
		compare(fs);
		btrkit_fs_close(fs);
		reopen_and_compare(&w);
		written_destroy(&w);
	}
}

static struct disk_root_item get_root_item(struct btrkit_fs *fs, uint64_t id, uint32_t *size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disk_root_item d = { .level = 0 };
	struct cursor c;

	cursor_init(&c, fs, &fs->root_tree);
	written_check(cursor_find(&c, &KEY(id, KEY_ROOT_ITEM, 0), &err), &err);
	*size = c.item.size;
	memcpy(&d, c.item.data, c.item.size);
	cursor_release(&c);
	return d;
}

/* Linux before 3.6 wrote short root items, and left the new fields of long ones stale. */
static void old_root_items_become_new_ones(void **state)
{
	(void)state;
	for (unsigned shortened = 0; shortened < 2; shortened++) {
		const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct edit_tree *roots = NULL;
		struct btrkit_txn *txn;
		struct disk_root_item d;
		struct written w;
		struct btrkit_fs *fs;
		uint32_t size;

		memset(model, 0, sizeof(model));
		written_make(&w, &o, SIZE);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		d = get_root_item(fs, OID_FS_TREE, &size);
		d.generation_v2 = le64_put(0);
		d.ctransid = le64_put(77);
		memset(d.received_uuid, 7, sizeof(d.received_uuid));
		txn = written_start(fs);
		written_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
		written_check(edit_replace(roots, &KEY(OID_FS_TREE, KEY_ROOT_ITEM, 0), &d,
					   shortened ? ROOT_ITEM_SHORT : sizeof(d), &err),
			      &err);
		written_commit(txn);
		txn = written_start(fs);
		toggle(txn, 100);
		written_commit(txn);
		d = get_root_item(fs, OID_FS_TREE, &size);
		assert_int_equal(size, sizeof(d));
		assert_int_equal(le64_get(d.generation), 3);
		assert_int_equal(le64_get(d.generation_v2), 3);
		assert_int_equal(le64_get(d.ctransid), 0);
		assert_int_equal(d.received_uuid[3], 0);
		btrkit_fs_close(fs);
		reopen_and_compare(&w);
		written_destroy(&w);
	}
}

struct verified {
	struct btrkit_fs *fs;
	unsigned calls;
	int ret;
};

/* Reads during verification must not see private blocks. */
static int verify(void *ctx, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct verified *v = ctx;

	(void)txn;
	v->calls++;
	assert_null(v->fs->overlay);
	compare(v->fs);
	return v->ret ? err_set(err, BTRKIT_CORRUPT, "does not please") : 0;
}

static void what_was_written_can_be_verified(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	enum btrkit_commit_state reached = BTRKIT_COMMIT_NEW;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct verified v = { 0 };
	bool before[KEYS];
	struct btrkit_txn *txn;
	struct written w;

	(void)state;
	memset(model, 0, sizeof(model));
	written_make(&w, &o, SIZE);
	v.fs = written_open(&w, BTRKIT_OPEN_WRITE);
	for (int i = 0; i < 3; i++) {
		txn = written_start(v.fs);
		memcpy(before, model, sizeof(model));
		toggle(txn, 500);
		txn->verify = verify;
		txn->verify_ctx = &v;
		v.ret = i == 2;
		if (!v.ret)
			written_commit(txn);
	}
	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EUCLEAN);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	assert_string_equal(err.message, "does not please; the filesystem is unchanged");
	assert_int_equal(v.calls, 3);
	memcpy(model, before, sizeof(model));
	compare(v.fs);
	assert_int_equal(btrkit_txn_start(v.fs, &txn, &err), -EROFS);
	btrkit_fs_close(v.fs);
	reopen_and_compare(&w);
	written_destroy(&w);
}

/* Makes a quota tree as `btrfs quota enable` does, as far as transactions look at it. */
static void enable_quota(struct btrkit_fs *fs, uint64_t flags, uint64_t generation)
{
	const struct disk_qgroup_status status = { .version = le64_put(1),
						   .generation = le64_put(generation),
						   .flags = le64_put(flags) };
	struct disk_root_item root = { .refs = le32_put(1) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = written_start(fs);
	struct edit_tree *t = NULL, *roots = NULL;

	written_check(overlay_new_tree(txn->overlay, OID_QUOTA_TREE, &t, &err), &err);
	written_check(edit_insert(t, &KEY(0, KEY_QGROUP_STATUS, 0), &status, sizeof(status), &err), &err);
	written_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	written_check(edit_insert(roots, &KEY(OID_QUOTA_TREE, KEY_ROOT_ITEM, 0), &root, sizeof(root), &err), &err);
	if (flags & QGROUP_STATUS_SIMPLE_MODE)
		txn->super.incompat_flags = le64_put(le64_get(txn->super.incompat_flags) | INCOMPAT_SIMPLE_QUOTA);
	written_commit(txn);
}

static struct qgroup_status get_quota(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct qgroup_status status = { 0 };
	struct tree_root root;
	struct cursor c;

	written_check(fs_find_root(fs, OID_QUOTA_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	written_check(cursor_find(&c, &KEY(0, KEY_QGROUP_STATUS, 0), &err), &err);
	written_check(qgroup_status_decode(&c.item, &status, &err), &err);
	cursor_release(&c);
	return status;
}

/* Changes a tree that is not subject to quotas. */
static void change_device_tree(struct btrkit_txn *txn)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL;

	written_check(txn_tree(txn, OID_DEV_TREE, &t, &err), &err);
	written_check(edit_insert(t, &KEY(5, TYPE, txn->generation), "x", 1, &err), &err);
}

static void quotas_are_marked(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	memset(model, 0, sizeof(model));
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	enable_quota(fs, QGROUP_STATUS_ON | QGROUP_STATUS_RESCAN, 2);
	txn = written_start(fs);
	change_device_tree(txn);
	written_commit(txn);
	assert_int_equal(get_quota(fs).generation, 3);
	assert_int_equal(get_quota(fs).flags, QGROUP_STATUS_ON | QGROUP_STATUS_RESCAN);
	txn = written_start(fs);
	toggle(txn, 5);
	written_commit(txn);
	assert_int_equal(get_quota(fs).generation, 4);
	assert_int_equal(get_quota(fs).flags, QGROUP_STATUS_ON | QGROUP_STATUS_INCONSISTENT);
	btrkit_fs_close(fs);
	/* Expected, since there are no qgroups. */
	written_check_but(&w, AUDIT_LEFTOVERS);
	written_destroy(&w);
}

/* The quotas were inconsistent already, by their generation; that must be kept. */
static void wrong_quotas_stay_wrong(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	enable_quota(fs, QGROUP_STATUS_ON, 1);
	txn = written_start(fs);
	change_device_tree(txn);
	written_commit(txn);
	assert_int_equal(get_quota(fs).generation, 3);
	assert_int_equal(get_quota(fs).flags, QGROUP_STATUS_ON | QGROUP_STATUS_INCONSISTENT);
	btrkit_fs_close(fs);
	written_destroy(&w);
}

static void simple_quotas_forbid_changes_of_files(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL;
	struct btrkit_txn *txn;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	enable_quota(fs, QGROUP_STATUS_ON | QGROUP_STATUS_SIMPLE_MODE, 2);
	txn = written_start(fs);
	change_device_tree(txn);
	written_commit(txn);
	assert_int_equal(get_quota(fs).generation, 2);
	assert_int_equal(get_quota(fs).flags, QGROUP_STATUS_ON | QGROUP_STATUS_SIMPLE_MODE);
	txn = written_start(fs);
	written_check(txn_tree(txn, OID_FS_TREE, &t, &err), &err);
	assert_int_equal(edit_insert(t, &KEY(1000, TYPE, 0), "x", 1, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "simple quotas"));
	btrkit_txn_abort(txn);
	txn = written_start(fs);
	change_device_tree(txn);
	written_commit(txn);
	btrkit_fs_close(fs);
	/* Expected, since there are no qgroups. */
	written_check_but(&w, AUDIT_LEFTOVERS);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(committed_items_are_there),
		cmocka_unit_test(what_is_aborted_leaves_no_trace),
		cmocka_unit_test(what_cannot_begin),
		cmocka_unit_test(backup_roots_rotate),
		cmocka_unit_test(superblock_alone),
		cmocka_unit_test(old_root_items_become_new_ones),
		cmocka_unit_test(room_is_made_for_blocks),
		cmocka_unit_test(what_was_written_can_be_verified),
		cmocka_unit_test(quotas_are_marked),
		cmocka_unit_test(wrong_quotas_stay_wrong),
		cmocka_unit_test(simple_quotas_forbid_changes_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
