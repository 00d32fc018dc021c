// SPDX-License-Identifier: LGPL-2.1-or-later
/* False contents of one file or name, which operations must not trust: they must fail, and return no results. */
#include <sys/stat.h>

#include <btrkit/subvolume_modify.h>

#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/fs/data.h"
#include "lib/modify/op.h"
#include "lib/modify/subvolume_remove.h"
#include "tests/unit/session.h"

#define SECTOR 4096u
#define KEPT (2 * SECTOR)
#define SIZE 12000u /* size of an inline extent that fits into a leaf, but not into a sector */

static const struct rig_kind large_nodes = {
	"16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 16384, 0, 1, { 160 }
};

static void put(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size)
{
	int ret = edit_insert(t, key, data, size, &err);

	if (ret == -EEXIST)
		ret = edit_replace(t, key, data, size, &err);
	rig_check(ret, &err);
}

/* Makes a file whose inline extent is longer than a sector, and an empty file. */
static void make_files(uint64_t *file, uint64_t *other)
{
	static uint8_t bytes[FILE_EXTENT_INLINE_START + SIZE];
	const struct disk_file_extent d = { .ram_bytes = le64_put(SIZE), .type = FILE_EXTENT_INLINE };
	struct disk_inode_item item;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "inline", 6, NULL, file, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "other", 5, NULL, other, &err), &err);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, &KEY(*file, KEY_INODE_ITEM, 0), &data, &n, &err), &err);
	memcpy(&item, data, sizeof(item));
	item.size = le64_put(SIZE);
	memcpy(data, &item, sizeof(item));
	memcpy(bytes, &d, FILE_EXTENT_INLINE_START);
	put(t, &KEY(*file, KEY_EXTENT_DATA, 0), bytes, sizeof(bytes));
}

/* None of it may be written or cloned as if it fitted into a sector; but truncation to zero is possible. */
static void test_large_inline(void **state)
{
	static const uint64_t sizes[] = { 5000, 100, 0 };

	(void)state;
	for (unsigned how = 0; how < 5; how++) {
		struct btrkit_clone what = { BTRKIT_TOP_LEVEL, 0, 0, BTRKIT_TOP_LEVEL, 0, how ? 0 : 4096, 0 };
		int ret;

		rig_make(&rig, &large_nodes);
		fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		make_files(&what.from_inode, &what.to_inode);
		if (how < 2)
			ret = btrkit_txn_clone(txn, &what, &err);
		else
			ret = btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, what.from_inode, sizes[how - 2], &err);
		assert_int_equal(ret, how == 4 ? 0 : -EUCLEAN);
		txn = btrkit_txn_abort(txn);
		btrkit_fs_close(fs);
		rig_destroy(&rig);
	}
}

/* The item that says where a subvolume is cannot be decoded: no result may be returned. */
static void test_unread_place(void **state)
{
	struct btrkit_found found = { .root = 1 };
	struct edit_tree *roots;
	uint64_t id;

	(void)state;
	rig_make(&rig, &large_nodes);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &id, &err), &err);
	rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	put(roots, &KEY(BTRKIT_TOP_LEVEL, KEY_ROOT_REF, id), "x", 1);
	assert_int_equal(btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, &found, &err), -EUCLEAN);
	assert_int_equal(found.root, 1);
	txn = btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&rig);
}

/*
 * Tree blocks that seem newer than the last snapshot would be copied without asking who else refers to them. Whatever
 * such a block refers to would lose an owner: files of the snapshot could be overwritten.
 */
static void test_snapshot_unknown(void **state)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_NEW;
	struct disk_root_item item;
	struct edit_tree *roots;
	uint64_t id, snapshot;
	char name[16];
	uint8_t *data;
	uint32_t n;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &id, &err), &err);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		rig_check(btrkit_txn_create(txn, id, TOP, name, strlen(name), NULL, NULL, &err), &err);
	}
	session_commit();
	rig_check(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &snapshot, &err), &err);
	session_commit();
	rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	rig_check(edit_bytes(roots, &KEY(id, KEY_ROOT_ITEM, 0), &data, &n, &err), &err);
	memcpy(&item, data, sizeof(item));
	assert_int_not_equal(le64_get(item.last_snapshot), 0);
	item.last_snapshot = le64_put(0);
	memcpy(data, &item, sizeof(item));
	rig_check(btrkit_txn_create(txn, id, TOP, "another", 7, NULL, NULL, &err), &err);
	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EUCLEAN);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	assert_non_null(strstr(err.message, "is not shared"));
	assert_int_equal(err.tree, OID_EXTENT_TREE);
	btrkit_fs_close(fs);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

/* Overwrites a field in the root item of a subvolume. */
static void lie_of_root(uint64_t id, size_t at, const void *value, size_t size)
{
	struct edit_tree *roots;
	uint8_t *data;
	uint32_t n;

	rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	rig_check(edit_bytes(roots, &KEY(id, KEY_ROOT_ITEM, 0), &data, &n, &err), &err);
	assert_true(at + size <= n);
	memcpy(data + at, value, size);
}

/* A snapshot must have one reference and no drop progress, whatever the root item of its source says. */
static void test_snapshot_of_lies(void **state)
{
	const struct disk_key progress = key_put(&KEY(256, KEY_INODE_ITEM, 0));
	const le32 many = le32_put(3), one = le32_put(1);
	const uint8_t level = 1, none = 0;
	uint64_t id, snapshot;
	struct root_item item;
	struct tree_root root;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &id, &err), &err);
	session_commit();
	lie_of_root(id, offsetof(struct disk_root_item, refs), &many, sizeof(many));
	lie_of_root(id, offsetof(struct disk_root_item, drop_level), &level, 1);
	rig_check(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &snapshot, &err), &err);
	rig_check(fs_find_root(fs, snapshot, &root, &item, &err), &err);
	assert_int_equal(item.refs, 1);
	assert_int_equal(item.drop_level, 0);
	lie_of_root(id, offsetof(struct disk_root_item, refs), &one, sizeof(one));
	lie_of_root(id, offsetof(struct disk_root_item, drop_level), &none, 1);
	session_commit();
	lie_of_root(id, offsetof(struct disk_root_item, drop_progress), &progress, sizeof(progress));
	assert_int_equal(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, TOP, "t", 1, NULL, NULL, &err),
			 -EUCLEAN);
	assert_string_equal(err.field, "drop_progress");
	assert_int_equal(err.tree, OID_ROOT_TREE);
	txn = btrkit_txn_abort(txn);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

/* Overwrites a field of an item. */
static void lie(const struct btrkit_key *key, size_t at, const void *value, size_t size)
{
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, key, &data, &n, &err), &err);
	assert_true(at + size <= n);
	memcpy(data + at, value, size);
}

/* The file extent at the start of a file. */
static struct disk_file_extent first_extent(uint64_t inode)
{
	struct disk_file_extent d;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, &KEY(inode, KEY_EXTENT_DATA, 0), &data, &n, &err), &err);
	assert_int_equal(n, sizeof(d));
	memcpy(&d, data, sizeof(d));
	return d;
}

/* Commits an inconsistent state. */
static void commit_lies(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

/* Makes a new file "kept" with KEPT preallocated bytes, followed on disk by the data of another file. */
static uint64_t keep_space(void)
{
	static const uint8_t bytes[KEPT] = { 1 };
	uint64_t kept, other, at;

	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "kept", 4, NULL, &kept, &err), &err);
	rig_check(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, kept, 0, KEPT, 0, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "other", 5, NULL, &other, &err), &err);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, other, 0, bytes, KEPT, NULL, &err), &err);
	at = le64_get(first_extent(kept).disk_bytenr);
	assert_int_equal(le64_get(first_extent(other).disk_bytenr), at + KEPT);
	session_commit();
	return kept;
}

/* Preallocated space is written in place only if its extent agrees with the extent tree. */
static void test_kept_space(void **state)
{
	static const uint8_t bytes[2 * KEPT] = { 2 };
	static const struct {
		size_t at, size;
		uint64_t value; /* little endian */
		const char *field;
	} rows[] = {
		{ offsetof(struct disk_file_extent, num_bytes), 8, 2 * KEPT, "disk_num_bytes" },
		{ offsetof(struct disk_file_extent, offset), 8, KEPT, "disk_num_bytes" },
		{ offsetof(struct disk_file_extent, disk_num_bytes), 8, 2 * KEPT, NULL },
		{ offsetof(struct disk_file_extent, compression), 1, COMPRESS_ZLIB, "compression" },
		{ offsetof(struct disk_file_extent, other_encoding), 2, 1, "compression" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const le64 value = le64_put(rows[i].value);
		uint64_t inode;

		session_begin();
		inode = keep_space();
		lie(&KEY(inode, KEY_EXTENT_DATA, 0), rows[i].at, &value, rows[i].size);
		if (!rows[i].field)
			lie(&KEY(inode, KEY_EXTENT_DATA, 0), offsetof(struct disk_file_extent, num_bytes), &value, 8);
		assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, 2 * KEPT, NULL, &err),
				 -EUCLEAN);
		if (rows[i].field)
			assert_string_equal(err.field, rows[i].field);
		assert_int_equal(err.tree, rows[i].field ? BTRKIT_TOP_LEVEL : OID_EXTENT_TREE);
		txn = btrkit_txn_abort(txn);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		session_end();
	}
}

/* A field that no kernel uses stays as it is when a part of an extent is removed, as in Linux. */
static void test_other_encoding_stays(void **state)
{
	static const uint8_t bytes[KEPT] = { 2 };
	const le16 encoding = le16_put(7);
	uint64_t inode;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "coded", 5, NULL, &inode, &err), &err);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, KEPT, NULL, &err), &err);
	lie(&KEY(inode, KEY_EXTENT_DATA, 0), offsetof(struct disk_file_extent, other_encoding), &encoding, 2);
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, SECTOR, &err), &err);
	assert_int_equal(le64_get(first_extent(inode).num_bytes), SECTOR);
	assert_int_equal(le16_get(first_extent(inode).other_encoding), 7);
	txn = btrkit_txn_abort(txn);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

/* Preallocated space that has checksums has been written to, and must not be overwritten. */
static void test_kept_and_written(void **state)
{
	static const uint8_t bytes[KEPT] = { 3 }, sums[4];

	(void)state;
	for (unsigned i = 0; i < KEPT / SECTOR; i++) {
		uint64_t inode, at;
		struct edit_tree *t;

		session_begin();
		inode = keep_space();
		at = le64_get(first_extent(inode).disk_bytenr);
		rig_check(txn_tree(txn, OID_CSUM_TREE, &t, &err), &err);
		put(t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, at + i * SECTOR), sums, sizeof(sums));
		commit_lies();
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, KEPT, NULL, &err), &err);
		assert_int_not_equal(le64_get(first_extent(inode).disk_bytenr), at);
		session_end();
	}
}

/* Counts bytes of data with checksums from @from on. Fails if checksum items overlap. */
static uint64_t count_summed(uint64_t from)
{
	uint64_t bytes = 0, end = from;
	struct edit_tree *t;
	int ret;

	rig_check(txn_tree(txn, OID_CSUM_TREE, &t, &err), &err);
	for (ret = cursor_seek(&t->c, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, from), &err); !ret;
	     ret = cursor_next(&t->c, &err)) {
		assert_true(t->c.item.key.offset >= end);
		bytes += t->c.item.size / 4 * SECTOR;
		end = t->c.item.key.offset + t->c.item.size / 4 * SECTOR;
	}
	assert_int_equal(ret, 1);
	return bytes;
}

/* Checksums exist where there is no data, and data is then written there. */
static void test_left_checksums(void **state)
{
	static const uint8_t bytes[4 * SECTOR] = { 4 };
	/* In sectors, counted from the space before the new data. */
	static const struct {
		unsigned start, n;
	} rows[] = { { 2, 4 }, { 2, 1 }, { 5, 1 }, { 3, 2 }, { 4, 6 }, { 2, 8 }, { 0, 2 }, { 6, 3 }, { 1, 1 },
		     { 1, 2 }, { 1, 5 }, { 0, 9 }, { 0, 3 } };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		static const uint8_t sums[4 * 16] = { 1 };
		uint64_t kept, inode, at, outside = 0;
		uint8_t there[sizeof(bytes)];
		struct data_reader r;
		struct edit_tree *t;
		struct range rest;

		session_begin();
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "kept", 4, NULL, &kept, &err), &err);
		rig_check(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, kept, 0, KEPT, 0, &err), &err);
		at = le64_get(first_extent(kept).disk_bytenr);
		session_commit();
		rig_check(txn_tree(txn, OID_CSUM_TREE, &t, &err), &err);
		put(t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, at + rows[i].start * SECTOR), sums, 4 * rows[i].n);
		commit_lies();
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "new", 3, NULL, &inode, &err), &err);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, sizeof(bytes), NULL, &err), &err);
		assert_int_equal(le64_get(first_extent(inode).disk_bytenr), at + KEPT);
		commit_lies();
		for (unsigned k = rows[i].start; k < rows[i].start + rows[i].n; k++)
			outside += k < 2 || k >= 6;
		assert_int_equal(count_summed(at), sizeof(bytes) + outside * SECTOR);
		rig_check(data_reader_init(&r, fs, &err), &err);
		rig_check(data_read(&r, at + KEPT, there, sizeof(there), true, &err), &err);
		data_reader_release(&r);
		assert_memory_equal(there, bytes, sizeof(bytes));
		rest = (struct range){ at, KEPT };
		rig_check(csums_trim(txn, &rest, &err), &err);
		rest = (struct range){ at + KEPT + sizeof(bytes), 16 * SECTOR };
		rig_check(csums_trim(txn, &rest, &err), &err);
		session_end();
	}
}

static void reopen(void)
{
	btrkit_fs_close(fs);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

/*
 * Without a free space tree, an item of the extent tree is moved elsewhere: used space seems free, but data there must
 * not be overwritten.
 */
static void test_moved_extent(void **state)
{
	static const struct rig_kind kinds[] = {
		{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 220 }, true },
		{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 220 }, true },
	};
	static const uint8_t bytes[4 * SECTOR] = { 5 };

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
		const bool writes = i % 2, mixed = kinds[i / 2].mixed;
		uint8_t *data, item[100];
		struct edit_tree *t;
		uint64_t inode, at;
		char name[16];
		uint32_t n;
		unsigned k;
		int ret;

		rig_make(&rig, &kinds[i / 2]);
		fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "there", 5, NULL, &inode, &err), &err);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, sizeof(bytes), NULL, &err), &err);
		at = le64_get(first_extent(inode).disk_bytenr);
		session_commit();
		rig_check(txn_tree(txn, OID_EXTENT_TREE, &t, &err), &err);
		rig_check(edit_bytes(t, &KEY(at, KEY_EXTENT_ITEM, sizeof(bytes)), &data, &n, &err), &err);
		assert_true(n <= sizeof(item));
		memcpy(item, data, n);
		rig_check(edit_delete(t, &KEY(at, KEY_EXTENT_ITEM, sizeof(bytes)), &err), &err);
		put(t, &KEY(at + (1u << 20), KEY_EXTENT_ITEM, sizeof(bytes)), item, n);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		reopen();
		rig_hold(&rig);
		for (ret = k = 0; !ret && k < 300; k++) {
			snprintf(name, sizeof(name), "new %u", k);
			ret = btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err);
		}
		if (!ret && writes) {
			ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, sizeof(bytes), NULL, &err);
			/* Only the write fails. */
			if (!mixed)
				rig_check(btrkit_txn_failure(txn, &err), &err);
		}
		if (!writes && !mixed) {
			rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		} else {
			if (!ret)
				ret = btrkit_txn_commit(txn, NULL, &err);
			else
				txn = btrkit_txn_abort(txn);
			assert_int_equal(ret, -EUCLEAN);
			assert_int_equal(err.tree, OID_CSUM_TREE);
			assert_non_null(strstr(err.message, "extent item may be missing"));
		}
		btrkit_fs_close(fs);
		rig_destroy(&rig);
	}
}

/* Removing a name must not remove an inode that has other names or belongs to another name. */
static void test_others_stay(void **state)
{
	static const struct {
		const char *name;
		enum btrkit_unlink_what what;
		size_t at, size;
		uint8_t type;
		uint64_t value; /* little endian */
		const char *field;
	} rows[] = {
		{ "a", BTRKIT_UNLINK_FILE, offsetof(struct disk_inode_item, nlink), 4, KEY_INODE_ITEM, 1, "nlink" },
		{ "dir", BTRKIT_UNLINK_DIR, offsetof(struct disk_inode_item, size), 8, KEY_INODE_ITEM, 0, "size" },
		{ "a", BTRKIT_UNLINK_FILE, offsetof(struct disk_inode_ref, index), 8, KEY_INODE_REF, 4, NULL },
		{ "a", BTRKIT_UNLINK_FILE, offsetof(struct disk_inode_ref, index), 8, KEY_INODE_REF, 400, NULL },
	};
	struct btrkit_new_inode directory = BTRKIT_NEW_INODE_INIT;

	(void)state;
	directory.mode = S_IFDIR | 0755;
	/* With few attributes and entries, and with so many that they are removed step by step. */
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const unsigned many = i % 2 ? 8 : 0, row = i / 2;
		const le64 value = le64_put(rows[row].value);
		const struct btrkit_place b = { BTRKIT_TOP_LEVEL, TOP, "b", 1 };
		uint64_t dir, inode, other;
		char name[16];

		session_begin();
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &directory, &dir, &err), &err);
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "a", 1, NULL, &inode, &err), &err);
		rig_check(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, inode, &b, &err), &err);
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "child", 5, NULL, &other, &err), &err);
		for (unsigned k = 0; k < many; k++) {
			snprintf(name, sizeof(name), "user.%u", k);
			rig_check(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, inode, name, "x", 1, 0, &err), &err);
			rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, name, strlen(name), NULL, NULL, &err),
				  &err);
		}
		session_commit();
		inode = rows[row].what == BTRKIT_UNLINK_DIR ? dir : inode;
		lie(&KEY(inode, rows[row].type, rows[row].type == KEY_INODE_REF ? TOP : 0), rows[row].at, &value,
		    rows[row].size);
		assert_int_equal(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, rows[row].name, strlen(rows[row].name),
						   rows[row].what, &err),
				 -EUCLEAN);
		assert_int_equal(err.tree, BTRKIT_TOP_LEVEL);
		if (rows[row].field)
			assert_string_equal(err.field, rows[row].field);
		assert_int_equal(btrkit_txn_commit(txn, NULL, &err), -EUCLEAN);
		btrkit_fs_close(fs);
		fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		session_end();
	}
}

/* Says in the extent item of a tree block how many references it has. */
static void set_refs(uint64_t bytenr, uint64_t refs)
{
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(txn_tree(txn, OID_EXTENT_TREE, &t, &err), &err);
	rig_check(edit_bytes(t, &KEY(bytenr, KEY_METADATA_ITEM, 0), &data, &n, &err), &err);
	((struct disk_extent_item *)data)->refs = le64_put(refs);
}

/* The root of a deleted subvolume seems to be in use elsewhere. Nothing is dropped, but the rest can be committed. */
static void test_drop_alone(void **state)
{
	struct tree_root root;
	uint64_t id, inode;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &id, &err), &err);
	session_commit();
	rig_check(subvolume_take_name(txn, id, &err), &err);
	session_commit();
	rig_check(fs_find_root(fs, id, &root, NULL, &err), &err);
	set_refs(root.bytenr, 5);
	assert_int_equal(btrkit_txn_subvolumes_clean(txn, NULL, &err), -EUCLEAN);
	rig_check(btrkit_txn_failure(txn, &err), &err);
	set_refs(root.bytenr, 0);
	assert_int_equal(btrkit_txn_subvolumes_clean(txn, NULL, &err), -EUCLEAN);
	rig_check(btrkit_txn_failure(txn, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "new", 3, NULL, &inode, &err), &err);
	set_refs(root.bytenr, 1);
	rig_check(btrkit_txn_subvolumes_clean(txn, NULL, &err), &err);
	session_commit();
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_alone),
		cmocka_unit_test(test_large_inline),
		cmocka_unit_test(test_unread_place),
		cmocka_unit_test(test_snapshot_unknown),
		cmocka_unit_test(test_snapshot_of_lies),
		cmocka_unit_test(test_others_stay),
		cmocka_unit_test(test_kept_space),
		cmocka_unit_test(test_other_encoding_stays),
		cmocka_unit_test(test_kept_and_written),
		cmocka_unit_test(test_left_checksums),
		cmocka_unit_test(test_moved_extent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
