// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Items with false contents, each in an otherwise valid filesystem: operations must report that in an error, or do what
 * was asked for; and they must terminate. tests/damage does this with random damage.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include <btrkit/subvolume_modify.h>

#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/root.h"
#include "lib/modify/op.h"
#include "lib/modify/subvolume_remove.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define FILES 200u
#define SECONDS_EACH 60u

static const struct rig_kind kind = { "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1,
				      { 160 } };

static struct btrkit_error err = BTRKIT_ERROR_INIT;
static struct btrkit_txn *txn;
static struct btrkit_fs *fs;
static struct rig base, rig;
static uint64_t dir, file, sub, snapshot, dead;

static uint64_t create(uint64_t root, uint64_t in, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode };
	uint64_t inode;

	rig_check(btrkit_txn_create(txn, root, in, name, strlen(name), &what, &inode, &err), &err);
	return inode;
}

static void commit(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

static uint64_t take_snapshot(const char *name)
{
	uint64_t id;

	rig_check(btrkit_txn_subvolume_snapshot(txn, sub, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &id, &err),
		  &err);
	return id;
}

/* Makes a directory, a file, a subvolume of several levels with a snapshot, and a subvolume that is partly deleted. */
static int make_base(void **state)
{
	uint8_t bytes[20000];
	struct tree_drop d = { .id = 0 };
	char name[120];
	bool done;

	(void)state;
	memset(bytes, 1, sizeof(bytes));
	rig_make(&base, &kind);
	fs = rig_open(&base, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	dir = create(BTRKIT_TOP_LEVEL, TOP, "dir", S_IFDIR | 0755);
	file = create(BTRKIT_TOP_LEVEL, TOP, "file", S_IFREG | 0644);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 0, bytes, sizeof(bytes), NULL, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &sub, &err), &err);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file-%0100u", i);
		create(sub, TOP, name, S_IFREG | 0644);
	}
	commit();
	snapshot = take_snapshot("snap");
	dead = take_snapshot("dead");
	commit();
	for (unsigned i = 0; i < FILES; i += 9) {
		snprintf(name, sizeof(name), "more-%0100u", i);
		create(dead, TOP, name, S_IFREG | 0644);
	}
	commit();
	rig_check(subvolume_take_name(txn, dead, &err), &err);
	d.id = dead;
	rig_check(subvolume_drop_some(txn, &d, 2, &done, &err), &err);
	assert_false(done);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	return 0;
}

static int free_base(void **state)
{
	(void)state;
	rig_destroy(&base);
	return 0;
}

static void begin(void)
{
	rig_clone(&rig, &base);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	alarm(SECONDS_EACH);
}

static void end(void)
{
	txn = btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&rig);
}

/* Commits the false items, and continues with a new handle. */
static void tell(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

/* Inserts an item, or replaces the one with that key. */
static void put(uint64_t root, const struct btrkit_key *key, const void *data, uint32_t size)
{
	struct edit_tree *t;
	int ret;

	rig_check(txn_tree(txn, root, &t, &err), &err);
	ret = edit_insert(t, key, data, size, &err);
	if (ret == -EEXIST)
		ret = edit_replace(t, key, data, size, &err);
	rig_check(ret, &err);
}

static void change_inode(uint64_t inode, uint32_t nlink, uint64_t size)
{
	struct disk_inode_item item;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, &KEY(inode, KEY_INODE_ITEM, 0), &data, &n, &err), &err);
	memcpy(&item, data, sizeof(item));
	item.nlink = le32_put(nlink);
	item.size = le64_put(size);
	memcpy(data, &item, sizeof(item));
}

static void put_in_top(const struct btrkit_key *key, const void *data, uint32_t size)
{
	struct edit_tree *t;
	int ret;

	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	ret = edit_insert(t, key, data, size, &err);
	if (ret == -EEXIST)
		ret = edit_replace(t, key, data, size, &err);
	rig_check(ret, &err);
}

/* Expects one of two results; a failure must have a message. After -EUCLEAN, start a new transaction. */
static void expect_at(int ret, int wanted, int or, unsigned line)
{
	if (ret != wanted && ret != or)
		fail_msg("line %u: %d: %s", line, ret, ret ? err.message : "done");
	if (ret && !err.message[0])
		fail_msg("%d: and nothing else", ret);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	if (ret == -EUCLEAN) {
		txn = btrkit_txn_abort(txn);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	}
}

#define expect(ret, wanted, or) expect_at(ret, wanted, or, __LINE__)

static void test_numbers(void **state)
{
	static const uint64_t wrong[] = { 0, 1, 4711, UINT64_MAX, 2 };
	uint64_t id;

	(void)state;
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const uint64_t root = wrong[i];
		const struct btrkit_place a = { root, TOP, "file", 4 }, b = { BTRKIT_TOP_LEVEL, TOP, "new", 3 };
		const struct btrkit_clone from = { root, file, 0, BTRKIT_TOP_LEVEL, file, 0, 4096 };

		expect(btrkit_txn_create(txn, root, TOP, "new", 3, NULL, NULL, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_unlink(txn, root, TOP, "file", 4, BTRKIT_UNLINK_FILE, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_rename(txn, &a, &b, 0, &err), -ENOENT, -EXDEV);
		expect(btrkit_txn_rename(txn, &b, &a, 0, &err), -ENOENT, -EXDEV);
		expect(btrkit_txn_link(txn, root, file, &b, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, file, &a, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_write(txn, root, file, 0, "x", 1, NULL, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_truncate(txn, root, file, 0, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_clone(txn, &from, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_orphans_clean(txn, root, NULL, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_create(txn, root, TOP, "new", 3, NULL, &id, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_snapshot(txn, root, BTRKIT_TOP_LEVEL, TOP, "new", 3, NULL, &id, &err),
		       -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_snapshot(txn, sub, root, TOP, "new", 3, NULL, &id, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_delete(txn, root, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_set_default(txn, root, &err), -ENOENT, -ENOENT);
		expect(btrkit_txn_subvolume_set_read_only(txn, root, true, false, &err), -ENOENT, -ENOENT);
	}
	end();
}

/* The drop progress of a subvolume that is being deleted. */
static void test_drop_progress(void **state)
{
	static const struct btrkit_key keys[] = { { 0, 0, 0 },
						  { 1, 0, 0 },
						  { 256, KEY_INODE_ITEM, 0 },
						  { 300, 0, 0 },
						  { UINT64_MAX, UINT8_MAX, UINT64_MAX } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		for (unsigned level = 0; level < 8; level++) {
			struct roots_item item;
			uint64_t n;

			begin();
			sync_lock_trees(&txn->sync);
			rig_check(roots_get_dead(txn, dead, &item, &err), &err);
			item.d.drop_progress = key_put(&keys[i]);
			item.d.drop_level = (uint8_t)level;
			rig_check(roots_put(txn, &item, &err), &err);
			sync_unlock_trees(&txn->sync);
			tell();
			expect(btrkit_txn_subvolumes_clean(txn, &n, &err), 0, -EUCLEAN);
			end();
		}
}

/* Inode items with impossible contents. */
static void test_inodes(void **state)
{
	static const uint32_t nlinks[] = { 0, 1, 65535, UINT32_MAX };
	static const uint64_t sizes[] = { 0, 1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX - 4096, UINT64_MAX };
	const struct btrkit_place a = { BTRKIT_TOP_LEVEL, TOP, "file", 4 }, b = { BTRKIT_TOP_LEVEL, dir, "moved", 5 };
	const struct btrkit_place link = { BTRKIT_TOP_LEVEL, dir, "link", 4 };
	const struct btrkit_clone what = { BTRKIT_TOP_LEVEL, file, 0, BTRKIT_TOP_LEVEL, file, 65536, 0 };
	int ret;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nlinks); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			begin();
			change_inode(file, nlinks[i], sizes[k]);
			tell();
			ret = btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, file, &link, &err);
			expect(ret, nlinks[i] >= 65535 ? -EMLINK : 0, nlinks[i] ? 0 : -ENOENT);
			ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 100, "bytes", 5, NULL, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 1u << 20, "bytes", 5, NULL, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			ret = btrkit_txn_punch(txn, BTRKIT_TOP_LEVEL, file, 100, 9000, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			ret = btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, file, 1u << 20, 100000, 0, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			ret = btrkit_txn_clone(txn, &what, &err);
			expect(ret, sizes[k] > INT64_MAX ? -EUCLEAN : -EINVAL, ret == -EFBIG ? ret : 0);
			ret = btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, file, 1u << 22, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			ret = btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, file, 5000, &err);
			expect(ret, 0, sizes[k] > INT64_MAX ? -EUCLEAN : 0);
			expect(btrkit_txn_rename(txn, &a, &b, 0, &err), 0, 0);
			ret = btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, dir, "moved", 5, BTRKIT_UNLINK_FILE, &err);
			expect(ret, 0, nlinks[i] ? 0 : -EUCLEAN);
			end();
		}
}

/* Expects the first @n bytes of the original file, then zeros up to @size, except for @len bytes of 'x' at @at. */
static void check_zeros(uint64_t n, uint64_t size, uint64_t at, size_t len)
{
	uint8_t *bytes = malloc(size + 1);
	struct btrkit_file *f;
	size_t got;

	assert_non_null(bytes);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, file, &f, &err), &err);
	rig_check(btrkit_file_read(f, 0, bytes, size + 1, &got, &err), &err);
	btrkit_file_close(f);
	assert_int_equal(got, size);
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] != (i >= at && i < at + len ? 'x' : i < n))
			fail_msg("byte %" PRIu64 " of %" PRIu64 " is %u", i, size, bytes[i]);
	free(bytes);
}

static uint64_t reservations(void)
{
	struct btrkit_reserve_stats stats;

	btrkit_txn_get_reserve_stats(txn, &stats);
	return stats.reservations;
}

/* Data that a crash left past the end of a file must never become readable, however the file grows. */
static void test_behind(void **state)
{
	static const uint64_t ends[] = { 0, 1, 4096, 5000 };
	static const char bytes[40000] = "";
	const uint64_t other = 65536;
	struct btrkit_clone what = { BTRKIT_TOP_LEVEL, 0, 0, BTRKIT_TOP_LEVEL, file, other, 4096 };
	char x[5000];

	(void)state;
	memset(x, 'x', sizeof(x));
	for (size_t i = 0; i < 2 * ARRAY_SIZE(ends); i++)
		for (unsigned how = 0; how < 6; how++) {
			const uint64_t size = ends[i / 2];

			begin();
			fs->super.incompat ^= i % 2 ? INCOMPAT_NO_HOLES : 0;
			/* Several extents, one of which crosses the end of the file. */
			rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 28672, x, 4096, NULL, &err), &err);
			what.from_inode = create(BTRKIT_TOP_LEVEL, dir, "zeros", S_IFREG | 0644);
			rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, what.from_inode, 0, bytes, sizeof(bytes),
						   NULL, &err),
				  &err);
			rig_check(btrkit_txn_flush(txn, &err), &err);
			change_inode(file, 1, size);
			switch (how) {
			case 0:
				rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, file, 50000, &err), &err);
				check_zeros(size, 50000, 0, 0);
				break;
			case 1:
				rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, other, x, 5000, NULL, &err),
					  &err);
				check_zeros(size, other + 5000, other, 5000);
				break;
			case 2:
				rig_check(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, file, other, 5000, 0, &err), &err);
				check_zeros(size, other + 5000, 0, 0);
				break;
			case 3:
				rig_check(btrkit_txn_clone(txn, &what, &err), &err);
				check_zeros(size, other + 4096, 0, 0);
				break;
			case 4:
				rig_check(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, file, 0, 50000, 0, &err), &err);
				check_zeros(size, 50000, 0, 0);
				break;
			case 5:
				/* Write at the end, then extend the file past what that wrote. */
				rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, size, x, 100, NULL, &err),
					  &err);
				rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, file, 50000, &err), &err);
				check_zeros(size, 50000, size, 100);
				break;
			}
			end();
		}
}

#define KEPT 300u

/* Preallocated extents past the end, with gaps that become hole extents: this takes as many operations as it needs. */
static void test_behind_kept(void **state)
{
	(void)state;
	for (unsigned holes = 0; holes < 2; holes++) {
		uint64_t before;

		begin();
		fs->super.incompat |= INCOMPAT_NO_HOLES;
		for (uint64_t i = 1; i <= KEPT; i++)
			rig_check(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, file, 8192 * (5 + i), 4096,
						      BTRKIT_PREALLOC_KEEP_SIZE, &err),
				  &err);
		fs->super.incompat ^= holes ? INCOMPAT_NO_HOLES : 0;
		before = reservations();
		rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, file, 8192 * KEPT, &err), &err);
		assert_in_range(reservations() - before, holes ? KEPT / 32 : 1, holes ? KEPT / 32 + 3 : 1);
		check_zeros(20000, 8192 * KEPT, 0, 0);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 8192 * (KEPT + 2), "x", 1, NULL, &err), &err);
		check_zeros(20000, 8192 * (KEPT + 2) + 1, 8192 * (KEPT + 2), 1);
		end();
	}
}

/* Directory indexes after which no number is left, and entries that lead to something else. */
static void test_entries(void **state)
{
	static const uint64_t indexes[] = { 1ull << 63, UINT64_MAX - 1, UINT64_MAX };
	const uint64_t inodes[] = { TOP, dir, 5000, 1ull << 47 };
	const struct btrkit_place a = { BTRKIT_TOP_LEVEL, dir, "lies", 4 }, b = { BTRKIT_TOP_LEVEL, TOP, "moved", 5 };
	const uint64_t hash = dir_name_hash("lies", 4);
	struct {
		struct disk_dir_item d;
		char name[4];
	} entry = { .name = { 'l', 'i', 'e', 's' } };
	struct btrkit_found found;
	int ret;

	(void)state;
	entry.d.name_len = le16_put(4);
	entry.d.type = FT_REG;
	for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
		begin();
		entry.d.location = (struct disk_key){ .objectid = le64_put(file), .type = KEY_INODE_ITEM };
		put_in_top(&KEY(dir, KEY_DIR_INDEX, indexes[i]), &entry, sizeof(entry));
		tell();
		ret = btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "new", 3, NULL, NULL, &err);
		expect(ret, i == 2 ? -EUCLEAN : 0, i == 2 ? -EUCLEAN : 0);
		/* The previous one got the last number. */
		ret = btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "newer", 5, NULL, NULL, &err);
		expect(ret, i ? -EUCLEAN : 0, i ? -EUCLEAN : 0);
		expect(btrkit_txn_flush(txn, &err), 0, -EUCLEAN);
		end();
	}
	for (size_t i = 0; i < ARRAY_SIZE(inodes); i++)
		for (unsigned type = 0; type < 2; type++) {
			static const uint8_t types[] = { KEY_INODE_ITEM, KEY_ROOT_ITEM };

			begin();
			entry.d.location = (struct disk_key){ .objectid = le64_put(inodes[i]), .type = types[type] };
			entry.d.type = (uint8_t)(1 + type);
			put_in_top(&KEY(dir, KEY_DIR_INDEX, 77), &entry, sizeof(entry));
			put_in_top(&KEY(dir, KEY_DIR_ITEM, hash), &entry, sizeof(entry));
			tell();
			ret = btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, dir, "lies", 4, &found, &err);
			expect(ret, 0, ret == -ENOENT ? ret : -EUCLEAN);
			for (unsigned what = 0; what < 2; what++) {
				ret = btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, dir, "lies", 4, what, &err);
				/*
				 * If the subvolume is not at this entry, the entry may be an empty stub of one, which
				 * can be removed.
				 */
				if (ret != -ENOENT && ret != -EISDIR && ret != -ENOTDIR && ret != -ENOTEMPTY)
					expect(ret, -EUCLEAN, type && what == BTRKIT_UNLINK_DIR ? 0 : -EUCLEAN);
			}
			ret = btrkit_txn_rename(txn, &a, &b, 0, &err);
			if (ret != -ENOENT && ret != -EINVAL)
				expect(ret, -EUCLEAN, type ? 0 : -EUCLEAN);
			end();
		}
}

/* A new inode whose item already exists in the tree: the error must name that item. */
static void test_there_already(void **state)
{
	const struct ticket_need need = { .items = 1, .bytes = 200 };
	const struct disk_inode_item item = { .nlink = le32_put(1) };
	const uint64_t inode = file;
	struct delayed_locks locks;
	struct delayed_tree *t;

	(void)state;
	begin();
	rig_check(delayed_tree(txn->delayed, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(ticket_enter(txn, &need, &err), &err);
	delayed_lock(t, &inode, 1, &locks);
	rig_check(delayed_new_inode(t, file, &err), &err);
	rig_check(delayed_insert(t, &KEY(file, KEY_INODE_ITEM, 0), &item, sizeof(item), NULL, &err), &err);
	delayed_unlock(&locks);
	sync_leave(&txn->sync);
	assert_int_equal(btrkit_txn_flush(txn, &err), -EUCLEAN);
	assert_int_equal(err.places, BTRKIT_AT_TREE | BTRKIT_AT_KEY);
	assert_int_equal(err.tree, BTRKIT_TOP_LEVEL);
	assert_int_equal(err.key.objectid, file);
	assert_int_equal(err.key.type, KEY_INODE_ITEM);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	end();
}

/* A subvolume in itself, in something that is not a directory, in two places, or without a back reference. */
static void test_places(void **state)
{
	const uint64_t parents[] = { 0, 1, 2, sub, snapshot, dead, 4711, UINT64_MAX };
	struct {
		struct disk_root_ref d;
		char name[3];
	} ref = { .name = { 's', 'u', 'b' } };
	const struct btrkit_place a = { BTRKIT_TOP_LEVEL, TOP, "sub", 3 }, b = { BTRKIT_TOP_LEVEL, dir, "moved", 5 };

	(void)state;
	ref.d.dirid = le64_put(TOP);
	ref.d.sequence = le64_put(UINT64_MAX);
	ref.d.name_len = le16_put(3);
	for (size_t i = 0; i < ARRAY_SIZE(parents); i++)
		for (unsigned both = 0; both < 2; both++) {
			int ret;

			begin();
			put(OID_ROOT_TREE, &KEY(sub, KEY_ROOT_BACKREF, parents[i]), &ref, sizeof(ref));
			if (both)
				put(OID_ROOT_TREE, &KEY(parents[i], KEY_ROOT_REF, sub), &ref, sizeof(ref));
			tell();
			ret = btrkit_txn_rename(txn, &a, &b, 0, &err);
			expect(ret, 0, -EUCLEAN);
			ret = btrkit_txn_subvolume_delete(txn, sub, &err);
			if (ret != -ENOENT && ret != -ENOTEMPTY)
				expect(ret, 0, -EUCLEAN);
			ret = btrkit_txn_subvolume_delete(txn, snapshot, &err);
			if (ret != -ENOTEMPTY)
				expect(ret, 0, -EUCLEAN);
			expect(btrkit_txn_subvolumes_clean(txn, NULL, &err), 0, -EUCLEAN);
			end();
		}
}

/*
 * The directory names the subvolume, but its back reference is missing: operations must not stop half way, or report a
 * missing name.
 */
static void test_one_sided(void **state)
{
	const struct btrkit_place a = { BTRKIT_TOP_LEVEL, TOP, "sub", 3 }, b = { BTRKIT_TOP_LEVEL, dir, "moved", 5 };
	const struct btrkit_place other = { BTRKIT_TOP_LEVEL, TOP, "snap", 4 };
	struct edit_tree *roots;

	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		begin();
		rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
		rig_check(edit_delete(roots, &KEY(sub, KEY_ROOT_BACKREF, BTRKIT_TOP_LEVEL), &err), &err);
		tell();
		switch (how) {
		case 0:
			expect(btrkit_txn_rename(txn, &a, &b, 0, &err), -EUCLEAN, -EUCLEAN);
			break;
		case 1:
			expect(btrkit_txn_rename(txn, &other, &a, BTRKIT_RENAME_EXCHANGE, &err), -EUCLEAN, -EUCLEAN);
			break;
		case 2:
			expect(btrkit_txn_subvolume_delete(txn, sub, &err), -ENOENT, -ENOENT);
			break;
		case 3:
			expect(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, BTRKIT_UNLINK_DIR, &err),
			       -ENOENT, -ENOENT);
			break;
		}
		rig_check(btrkit_txn_rename(txn, &(struct btrkit_place){ BTRKIT_TOP_LEVEL, TOP, "file", 4 }, &b, 0,
					    &err),
			  &err);
		end();
	}
}

/* Orphan items for inodes that do not exist, that have impossible numbers, or that still have names. */
static void test_orphans(void **state)
{
	const uint64_t inodes[] = { 0, 1, TOP, 5000, 999, OID_ORPHAN, UINT64_MAX - 1, UINT64_MAX };
	uint64_t n;

	(void)state;
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(inodes); i++)
		put_in_top(&KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, inodes[i]), "", 0);
	put_in_top(&KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, dir), "", 0);
	put(OID_ROOT_TREE, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, 4711), "", 0);
	put(OID_ROOT_TREE, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, sub), "", 0);
	put(OID_ROOT_TREE, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, UINT64_MAX), "", 0);
	tell();
	rig_check(btrkit_txn_orphans_clean(txn, BTRKIT_TOP_LEVEL, &n, &err), &err);
	assert_int_equal(n, ARRAY_SIZE(inodes) + 1);
	rig_check(btrkit_txn_subvolumes_clean(txn, &n, &err), &err);
	assert_int_equal(n, 1);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	txn = NULL;
	/* The subvolume stays, and so does the orphan item that claims that it is being deleted. */
	rig_check_but(&rig, AUDIT_LEFTOVERS);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_drop_progress), cmocka_unit_test(test_inodes),
		cmocka_unit_test(test_behind),	cmocka_unit_test(test_behind_kept),   cmocka_unit_test(test_entries),
		cmocka_unit_test(test_places),	cmocka_unit_test(test_one_sided),     cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_there_already),
	};

	return cmocka_run_group_tests(tests, make_base, free_base);
}
