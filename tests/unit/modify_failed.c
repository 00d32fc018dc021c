// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What fails before it has changed anything fails alone.
 *
 * A transaction in which something failed that cannot be undone: every later operation fails with the same error and
 * the same location, which includes the state that a commit in between left. If a device has no space, that is reported
 * and not tried again.
 */
#include "tests/unit/unit.h"

#include "lib/commit/txn.h"
#include "lib/format/items/files/dir.h"
#include "lib/reserve/continue.h"
#include "tests/unit/commit_words.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u

/* The objects that all operations are tried on. */
struct doing {
	struct btrkit_txn *txn;
	uint64_t inode, sub, unopened;
};

static uint64_t make(struct btrkit_txn *txn, uint64_t root, const char *name)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;

	written_check(btrkit_txn_create(txn, root, TOP, name, strlen(name), NULL, &inode, &err), &err);
	return inode;
}

static uint64_t make_subvolume(struct btrkit_txn *txn, const char *name)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t id;

	written_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &id, &err),
		      &err);
	return id;
}

/* Makes a filesystem with a file, and with subvolumes, one of which the transaction has not used yet. */
static struct btrkit_fs *begin(struct written *w, struct doing *d)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;

	written_make(w, &o, SIZE);
	fs = written_open_cached(w, BTRKIT_OPEN_WRITE, 1);
	txn = written_start(fs);
	d->inode = make(txn, BTRKIT_TOP_LEVEL, "file");
	d->sub = make_subvolume(txn, "sub");
	d->unopened = make_subvolume(txn, "unopened");
	written_commit(txn);
	d->txn = written_start(fs);
	btrkit_txn_set_may_commit(d->txn, true);
	make(d->txn, BTRKIT_TOP_LEVEL, "new");
	make(d->txn, d->sub, "new");
	return fs;
}

static const uint8_t bytes[20000] = { 1, 2, 3 };

static int look_up(const struct doing *d, struct btrkit_error *err)
{
	struct btrkit_found found;

	return btrkit_txn_lookup(d->txn, BTRKIT_TOP_LEVEL, TOP, "file", 4, &found, err);
}

static int look_up_elsewhere(const struct doing *d, struct btrkit_error *err)
{
	struct btrkit_found found;

	return btrkit_txn_lookup(d->txn, d->unopened, TOP, "file", 4, &found, err);
}

static int get_xattr(const struct doing *d, struct btrkit_error *err)
{
	uint8_t value[8];
	size_t size;

	return btrkit_txn_xattr_get(d->txn, BTRKIT_TOP_LEVEL, d->inode, "user.a", value, sizeof(value), &size, err);
}

static int create(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_create(d->txn, BTRKIT_TOP_LEVEL, TOP, "other", 5, NULL, NULL, err);
}

static int create_elsewhere(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_create(d->txn, d->unopened, TOP, "other", 5, NULL, NULL, err);
}

static int link_it(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_place to = { BTRKIT_TOP_LEVEL, TOP, "link", 4 };

	return btrkit_txn_link(d->txn, BTRKIT_TOP_LEVEL, d->inode, &to, err);
}

static int unlink_it(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_unlink(d->txn, BTRKIT_TOP_LEVEL, TOP, "file", 4, BTRKIT_UNLINK_FILE, err);
}

static int rename_it(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_place from = { BTRKIT_TOP_LEVEL, TOP, "file", 4 },
				  to = { BTRKIT_TOP_LEVEL, TOP, "name", 4 };

	return btrkit_txn_rename(d->txn, &from, &to, 0, err);
}

static int rename_subvolume(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_place from = { BTRKIT_TOP_LEVEL, TOP, "sub", 3 }, to = { d->unopened, TOP, "name", 4 };

	return btrkit_txn_rename(d->txn, &from, &to, 0, err);
}

static int write_it(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_write(d->txn, BTRKIT_TOP_LEVEL, d->inode, 0, bytes, sizeof(bytes), NULL, err);
}

static int write_nothing(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_write(d->txn, BTRKIT_TOP_LEVEL, d->inode, 0, bytes, 0, NULL, err);
}

static int truncate_it(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_truncate(d->txn, BTRKIT_TOP_LEVEL, d->inode, 100, err);
}

static int punch(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_punch(d->txn, BTRKIT_TOP_LEVEL, d->inode, 0, 4096, err);
}

static int prealloc(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_prealloc(d->txn, BTRKIT_TOP_LEVEL, d->inode, 0, 4096, 0, err);
}

static int clone_range(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_clone what = { .from_root = BTRKIT_TOP_LEVEL,
					   .from_inode = d->inode,
					   .to_root = BTRKIT_TOP_LEVEL,
					   .to_inode = d->inode,
					   .to_offset = 8192,
					   .length = 4096 };

	return btrkit_txn_clone(d->txn, &what, err);
}

static int set_attr(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE, .mode = 0600 };

	return btrkit_txn_set_attr(d->txn, BTRKIT_TOP_LEVEL, d->inode, &attr, err);
}

static int set_flags(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_set_flags(d->txn, BTRKIT_TOP_LEVEL, d->inode, 0x40, 0x40, err);
}

static int set_xattr(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_xattr_set(d->txn, BTRKIT_TOP_LEVEL, d->inode, "user.a", bytes, 10, 0, err);
}

static int remove_xattr(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_xattr_remove(d->txn, BTRKIT_TOP_LEVEL, d->inode, "user.a", err);
}

static int clean_orphans(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_orphans_clean(d->txn, BTRKIT_TOP_LEVEL, NULL, err);
}

static int flush(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_flush(d->txn, err);
}

static int create_subvolume(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolume_create(d->txn, BTRKIT_TOP_LEVEL, TOP, "third", 5, NULL, NULL, err);
}

static int snapshot(const struct doing *d, struct btrkit_error *err)
{
	const struct btrkit_new_snapshot how = BTRKIT_NEW_SNAPSHOT_INIT;

	return btrkit_txn_subvolume_snapshot(d->txn, d->unopened, BTRKIT_TOP_LEVEL, TOP, "snap", 4, &how, NULL, err);
}

static int delete_subvolume(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolume_delete(d->txn, d->unopened, err);
}

static int clean_subvolumes(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolumes_clean(d->txn, NULL, err);
}

static int set_default(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolume_set_default(d->txn, d->sub, err);
}

static int set_read_only(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolume_set_read_only(d->txn, d->sub, true, false, err);
}

static int (*const operations[])(const struct doing *d, struct btrkit_error *err) = {
	look_up,	look_up_elsewhere, get_xattr,	create,		  create_elsewhere, link_it,
	unlink_it,	rename_it,	   rename_subvolume, write_it,	  write_nothing,    truncate_it,
	punch,		prealloc,	   clone_range,	set_attr,	  set_flags,	    set_xattr,
	remove_xattr,	clean_orphans,	   flush,	create_subvolume, snapshot,	    delete_subvolume,
	clean_subvolumes, set_default,	   set_read_only,
};

/* The messages must be equal except for what a commit appends about the state. */
static void same_error(const struct btrkit_error *a, const struct btrkit_error *first)
{
	assert_int_equal(a->err, first->err);
	assert_int_equal(a->code, first->code);
	assert_int_equal(a->places, first->places);
	assert_int_equal(a->devid, first->devid);
	assert_int_equal(a->physical, first->physical);
	assert_int_equal(a->logical, first->logical);
	assert_memory_equal(a->message, first->message, strlen(first->message));
}

static void all_say(const struct doing *d, const struct btrkit_error *first)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;

		assert_int_equal(operations[i](d, &err), first->err);
		same_error(&err, first);
		assert_string_equal(err.message, first->message);
		assert_int_equal(operations[i](d, NULL), first->err);
	}
}

/* @return whether the device has what the transaction made */
static bool has_new(struct written *w)
{
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = written_start(fs);
	struct btrkit_found found;
	const int ret = btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, TOP, "new", 3, &found, &err);

	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	if (ret != -ENOENT)
		written_check(ret, &err);
	return !ret;
}

/* No other transaction can be started, and the error says why. */
static void refuses(struct btrkit_fs *fs, const struct btrkit_error *first)
{
	static const char before[] = "an earlier transaction failed: ";
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;

	assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
	assert_int_equal(err.err, -EROFS);
	assert_int_equal(err.places, first->places);
	assert_int_equal(err.devid, first->devid);
	assert_int_equal(err.physical, first->physical);
	assert_memory_equal(err.message, before, strlen(before));
	assert_memory_equal(err.message + strlen(before), first->message, strlen(first->message));
	assert_int_equal(btrkit_txn_start(fs, &txn, NULL), -EROFS);
}

/* Lets call number @call of a commit in the middle of the transaction fail. @return whether there was such a call */
static bool fail_in_between(uint64_t call, bool no_space, bool ask, unsigned states[3])
{
	struct btrkit_error err = BTRKIT_ERROR_INIT, last = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state state, reached = BTRKIT_COMMIT_UNKNOWN;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;
	uint64_t calls;
	int ret;

	fs = begin(&w, &d);
	w.fail_at = w.calls + call;
	w.failures = 1;
	w.no_space = no_space;
	/* If the error is not asked for here, later operations must still report it. */
	ret = btrkit_txn_commit_and_continue(d.txn, &reached, ask ? &err : NULL);
	w.fail_at = UINT64_MAX;
	calls = w.calls;
	if (ret) {
		assert_int_equal(ret, no_space ? -ENOSPC : -EIO);
		if (!ask)
			assert_int_equal(look_up(&d, &err), ret);
		assert_true(err.places & BTRKIT_AT_DEVID);
		all_say(&d, &err);
		assert_int_equal(btrkit_txn_commit(d.txn, &state, &last), ret);
		same_error(&last, &err);
		assert_string_equal(last.message, err.message);
		expect_words(&last, state);
		assert_int_equal(reached, state);
		/* Nothing is written after that, and the state that the message gives is the real one. */
		assert_int_equal(w.calls, calls);
		if (state != BTRKIT_COMMIT_UNKNOWN)
			assert_int_equal(has_new(&w), state == BTRKIT_COMMIT_NEW);
		states[state]++;
		refuses(fs, &last);
	} else {
		assert_int_equal(reached, BTRKIT_COMMIT_NEW);
		btrkit_txn_abort(d.txn);
	}
	btrkit_fs_close(fs);
	if (!ret)
		assert_true(has_new(&w));
	if (ret)
		written_check_but(&w, has_new(&w) ? AUDIT_MIRRORS : 0);
	written_destroy(&w);
	return ret;
}

static void a_commit_in_between_fails(void **state)
{
	unsigned states[3] = { 0 };
	uint64_t call = 0;

	(void)state;
	while (fail_in_between(call, call % 2, call % 3, states))
		call++;
	assert_true(call > 6);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		assert_true(states[i]);
}

/* The device refuses data. The file has not been changed, so nothing else is lost. */
static void an_operation_fails_alone(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state reached;
	struct btrkit_found found;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;

	(void)state;
	fs = begin(&w, &d);
	w.fail_at = w.calls;
	w.failures = 1;
	assert_int_equal(write_it(&d, &err), -EIO);
	assert_true(err.places & BTRKIT_AT_DEVID && err.places & BTRKIT_AT_PHYSICAL);
	written_check(btrkit_txn_failure(d.txn, &err), &err);
	written_check(create(&d, &err), &err);
	written_check(write_it(&d, &err), &err);
	written_check(btrkit_txn_commit(d.txn, &reached, &err), &err);
	assert_int_equal(reached, BTRKIT_COMMIT_NEW);
	d.txn = written_start(fs);
	written_check(btrkit_txn_lookup(d.txn, BTRKIT_TOP_LEVEL, TOP, "other", 5, &found, &err), &err);
	btrkit_txn_abort(d.txn);
	btrkit_fs_close(fs);
	assert_true(has_new(&w));
	written_verify(&w);
	written_destroy(&w);
}

/* Makes the entry of the file claim that it is a directory. */
static void damage_entry(struct btrkit_txn *txn)
{
	const struct btrkit_key key = { TOP, KEY_DIR_ITEM, dir_name_hash((const uint8_t *)"file", 4) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *tree;
	uint32_t size;
	uint8_t *data;

	written_check(txn_tree(txn, BTRKIT_TOP_LEVEL, &tree, &err), &err);
	written_check(edit_bytes(tree, &key, &data, &size, &err), &err);
	data[offsetof(struct disk_dir_item, type)] = 2;
}

/* Operations that need the damaged entry fail; all others go on, and can be committed. */
static void damage_fails_what_needs_it(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_found found;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;

	(void)state;
	fs = begin(&w, &d);
	written_check(btrkit_txn_flush(d.txn, &err), &err);
	damage_entry(d.txn);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(look_up(&d, &err), -EUCLEAN);
		assert_int_equal(unlink_it(&d, &err), -EUCLEAN);
		assert_int_equal(rename_it(&d, &err), -EUCLEAN);
		written_check(btrkit_txn_failure(d.txn, &err), &err);
		if (!i)
			written_check(create(&d, &err), &err);
		written_check(write_it(&d, &err), &err);
		written_check(set_xattr(&d, &err), &err);
		written_check(btrkit_txn_commit(d.txn, NULL, &err), &err);
		d.txn = written_start(fs);
	}
	written_check(btrkit_txn_lookup(d.txn, BTRKIT_TOP_LEVEL, TOP, "other", 5, &found, &err), &err);
	btrkit_txn_abort(d.txn);
	btrkit_fs_close(fs);
	assert_true(has_new(&w));
	written_destroy(&w);
}

static int set_read_only_unopened(const struct doing *d, struct btrkit_error *err)
{
	return btrkit_txn_subvolume_set_read_only(d->txn, d->unopened, true, false, err);
}

/* Operations that change trees directly, and whether they read much themselves, after they have reserved space. */
static const struct {
	int (*operation)(const struct doing *d, struct btrkit_error *err);
	bool reads;
} exclusive[] = {
	{ create_subvolume, true }, { snapshot, true },	      { rename_subvolume, true },
	{ set_default, false },	    { set_read_only, false }, { set_read_only_unopened, false },
	{ delete_subvolume, true },
};

/*
 * Lets all reads of an exclusive operation fail from the @nth on. If it fails alone, it has changed nothing: it
 * succeeds later, and everything is consistent. Otherwise nothing can be committed.
 * @return 0: it did not read as much; 1: it failed alone; 2: it failed halfway
 */
static int fail_exclusive(int (*operation)(const struct doing *d, struct btrkit_error *err), uint64_t nth)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state reached;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;
	int ret, result = 0;

	fs = begin(&w, &d);
	written_commit(d.txn);
	btrkit_fs_close(fs);
	fs = written_open_cached(&w, BTRKIT_OPEN_WRITE, 1);
	d.txn = written_start(fs);
	w.fail_read_at = w.reads + nth;
	ret = operation(&d, &err);
	w.fail_read_at = UINT64_MAX;
	assert_true(!ret || ret == -EIO);
	if (ret)
		result = btrkit_txn_failure(d.txn, NULL) ? 2 : 1;
	if (result == 1)
		written_check(operation(&d, &err), &err);
	assert_int_equal(btrkit_txn_commit(d.txn, &reached, &err), result == 2 ? -EIO : 0);
	assert_int_equal(reached, result == 2 ? BTRKIT_COMMIT_OLD : BTRKIT_COMMIT_NEW);
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
	return result;
}

static void an_exclusive_operation_fails_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(exclusive); i++) {
		unsigned results[3] = { 0 };

		for (uint64_t nth = 0; !results[0]; nth++)
			results[fail_exclusive(exclusive[i].operation, nth)]++;
		printf("operation %zu: failed alone %u times, half way %u times\n", i, results[1], results[2]);
		assert_true(results[1] > exclusive[i].reads);
	}
}

/* An exclusive operation inserts what others have delayed. If that fails, so does everything. */
static void an_operation_fails(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT, last = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state reached;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;
	uint64_t calls;

	(void)state;
	fs = begin(&w, &d);
	calls = w.calls;
	w.fail_read_at = w.reads;
	assert_int_equal(create_subvolume(&d, &err), -EIO);
	w.fail_read_at = UINT64_MAX;
	assert_true(err.places & BTRKIT_AT_DEVID && err.places & BTRKIT_AT_PHYSICAL);
	assert_int_equal(btrkit_txn_failure(d.txn, NULL), -EIO);
	all_say(&d, &err);
	assert_int_equal(btrkit_txn_commit(d.txn, &reached, &last), -EIO);
	same_error(&last, &err);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	expect_words(&last, reached);
	assert_int_equal(w.calls, calls);
	refuses(fs, &last);
	btrkit_fs_close(fs);
	assert_false(has_new(&w));
	written_verify(&w);
	written_destroy(&w);
}

/*
 * Checksums of earlier operations cannot be inserted when a later one reads data. They are lost, so that what these
 * operations have written must not be committed.
 */
static void checksums_are_lost(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state reached;
	struct edit_tree *roots;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;

	(void)state;
	fs = begin(&w, &d);
	written_check(txn_tree(d.txn, OID_ROOT_TREE, &roots, &err), &err);
	written_check(edit_delete(roots, &KEY(OID_CSUM_TREE, KEY_ROOT_ITEM, 0), &err), &err);
	written_check(btrkit_txn_write(d.txn, BTRKIT_TOP_LEVEL, d.inode, 0, bytes, 4 * 4096, NULL, &err), &err);
	assert_int_equal(btrkit_txn_write(d.txn, BTRKIT_TOP_LEVEL, d.inode, 1, "x", 1, NULL, &err), -ENOENT);
	assert_int_not_equal(btrkit_txn_commit(d.txn, &reached, &err), 0);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	btrkit_fs_close(fs);
	assert_false(has_new(&w));
	written_verify(&w);
	written_destroy(&w);
}

/* The device has no space, although the filesystem does: a commit would not help, and must not be tried. */
static void a_device_has_no_space(void **state)
{
	struct btrkit_write_stats before, after;
	struct btrkit_fs *fs;
	struct written w;
	struct doing d;

	(void)state;
	fs = begin(&w, &d);
	for (size_t i = 0; i < 2; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;

		/* The second operation punches a hole within a sector, which has to write that sector. */
		btrkit_fs_get_write_stats(fs, &before);
		w.fail_at = w.calls;
		w.failures = 1;
		w.no_space = true;
		assert_int_equal(i ? btrkit_txn_punch(d.txn, BTRKIT_TOP_LEVEL, d.inode, 100, 50, &err) :
				     write_it(&d, &err),
				 -ENOSPC);
		assert_true(err.places & BTRKIT_AT_DEVID && err.places & BTRKIT_AT_PHYSICAL);
		assert_int_equal(err.code, BTRKIT_NO_SPACE);
		btrkit_fs_get_write_stats(fs, &after);
		assert_int_equal(after.commits, before.commits);
		w.fail_at = UINT64_MAX;
		written_check(write_it(&d, &err), &err);
	}
	written_commit(d.txn);
	btrkit_fs_close(fs);
	assert_true(has_new(&w));
	written_verify(&w);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_in_between_fails),
		cmocka_unit_test(an_operation_fails_alone),
		cmocka_unit_test(damage_fails_what_needs_it),
		cmocka_unit_test(an_exclusive_operation_fails_alone),
		cmocka_unit_test(an_operation_fails),
		cmocka_unit_test(checksums_are_lost),
		cmocka_unit_test(a_device_has_no_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
