// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Conversions of the checksum type and of the fsid in one transaction: whole afterwards, as before after an abort, and
 * in one of both forms wherever writing ends.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/base/csum.h"
#include "lib/commit/conversion.h"
#include "lib/reserve/reserve.h"
#include "tests/unit/written.h"

#define SIZE (200ull << 20)
#define TOP_LEVEL 5u
#define TOP 256u
#define FILES 60u

static struct btrkit_error err;

static void must(int ret)
{
	char line[BTRKIT_ERROR_LINE];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

/* Files without data of their own in extents, in two subvolumes that share blocks. */
static void make(struct written *w, const struct btrkit_mkfs_options *o)
{
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t inode, id;
	char name[16];

	written_make(w, o, SIZE);
	fs = written_open(w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		must(btrkit_txn_create(txn, TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err));
		must(btrkit_txn_write(txn, TOP_LEVEL, inode, 0, name, 8, NULL, &err));
		must(btrkit_txn_xattr_set(txn, TOP_LEVEL, inode, "user.a", name, i % 16, 0, &err));
	}
	must(btrkit_txn_subvolume_create(txn, TOP_LEVEL, TOP, "empty", 5, NULL, NULL, &err));
	written_commit(txn);
	txn = written_start(fs);
	must(btrkit_txn_subvolume_snapshot(txn, TOP_LEVEL, TOP_LEVEL, TOP, "snapshot", 8, NULL, &id, &err));
	must(btrkit_txn_create(txn, id, TOP, "later", 5, NULL, NULL, &err));
	written_commit(txn);
	btrkit_fs_close(fs);
}

static void expect_files(struct btrkit_fs *fs)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct btrkit_inode inode;
		struct btrkit_file *file;
		char name[16] = "", seen[8];
		size_t got;

		snprintf(name, sizeof(name), "file-%u", i);
		must(btrkit_inode_find(fs, TOP_LEVEL, name, &inode, &err));
		must(btrkit_file_open(fs, TOP_LEVEL, inode.inode, &file, &err));
		must(btrkit_file_read(file, 0, seen, sizeof(seen), &got, &err));
		assert_int_equal(got, 8);
		assert_memory_equal(seen, name, 8);
		btrkit_file_close(file);
	}
}

static int convert(struct btrkit_txn *txn, const struct conversion *to)
{
	int ret;

	must(txn_reserve(txn, 400, &err));
	ret = conversion_begin(txn, to, &err);
	if (!ret) {
		/* A second one in the transaction is refused, and takes nothing from the first. */
		assert_int_equal(conversion_begin(txn, to, &err), -EINVAL);
		if (!to->keeps_blocks)
			ret = conversion_copy_blocks(txn, &err);
	}
	return ret;
}

static const uint8_t ids[3][16] = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } };

/* In this order, each begins with what the one before has made. */
static const struct {
	enum btrkit_csum csum;
	int fsid; /* index of @ids; -1: stays */
	bool keeps_blocks;
} steps[] = {
	{ BTRKIT_CSUM_XXHASH64, -1, false }, { BTRKIT_CSUM_SHA256, -1, false }, { BTRKIT_CSUM_BLAKE2B, -1, false },
	{ BTRKIT_CSUM_CRC32C, -1, false }, { BTRKIT_CSUM_CRC32C, 0, false },  { BTRKIT_CSUM_CRC32C, 1, true },
	{ BTRKIT_CSUM_CRC32C, 2, true },   { BTRKIT_CSUM_XXHASH64, -1, false }, { BTRKIT_CSUM_XXHASH64, 0, false },
	{ BTRKIT_CSUM_SHA256, 1, false },  { BTRKIT_CSUM_CRC32C, 2, true },
};

static void run(uint32_t nodesize, bool abort_first)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct written w;

	o.nodesize = nodesize;
	make(&w, &o);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct conversion to = { csum_kind_find((uint16_t)steps[i].csum),
					       steps[i].fsid < 0 ? NULL : ids[steps[i].fsid],
					       steps[i].keeps_blocks };
		struct btrkit_fs *fs = written_open(&w, BTRKIT_OPEN_WRITE);
		const struct csum_kind *before = fs->super.csum;
		struct btrkit_txn *txn;
		struct btrkit_fs_info info;
		/* A new fsid alone may leave the blocks as they are; a new checksum cannot. */
		struct conversion step = to;

		step.keeps_blocks = to.keeps_blocks && to.csum == before;
		if (abort_first) {
			txn = written_start(fs);
			must(convert(txn, &step));
			btrkit_txn_abort(txn);
			assert_true(fs->geometry.csum == before && fs->rules.csum == before && !fs->rules.also);
			assert_memory_equal(fs->rules.fsid, fs->super.metadata_uuid, sizeof(fs->rules.fsid));
			assert_int_equal(fs->items.csum_size, before->size);
			expect_files(fs);
		}
		txn = written_start(fs);
		must(convert(txn, &step));
		written_commit(txn);
		expect_files(fs);
		/* The handle goes on with the new form. */
		txn = written_start(fs);
		must(btrkit_txn_create(txn, TOP_LEVEL, TOP, &"abcdefghijkl"[i], 1, NULL, NULL, &err));
		written_commit(txn);
		btrkit_fs_get_info(fs, &info);
		assert_string_equal(info.csum_name, to.csum->name);
		if (to.fsid)
			assert_memory_equal(info.fsid, to.fsid, sizeof(info.fsid));
		btrkit_fs_close(fs);
		written_verify(&w);
		fs = written_open(&w, 0);
		expect_files(fs);
		btrkit_fs_close(fs);
	}
	written_destroy(&w);
}

static void conversions_are_complete(void **state)
{
	(void)state;
	UNIT_NEEDS(UNIT_SUMS);
	run(16384, false);
	run(4096, true);
}

/* Wherever writing fails, the filesystem is in its old form or in the new one. */
static void failures_leave_one_of_both_forms(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	unsigned forms[2] = { 0 };
	int ret = -EIO;
	(void)state;

	UNIT_NEEDS(UNIT_SUMS);
	for (uint64_t at = 0; ret; at += 1 + at / 8) {
		const struct conversion to = { csum_kind_find(BTRKIT_CSUM_XXHASH64), ids[0], false };
		struct btrkit_fs_info info;
		struct btrkit_txn *txn;
		struct btrkit_fs *fs;
		struct written w;

		make(&w, &o);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		txn = written_start(fs);
		must(convert(txn, &to));
		w.fail_at = w.calls + at;
		ret = btrkit_txn_commit(txn, NULL, &err);
		w.fail_at = UINT64_MAX;
		btrkit_fs_close(fs);
		fs = written_open(&w, 0);
		btrkit_fs_get_info(fs, &info);
		forms[!strcmp(info.csum_name, to.csum->name)]++;
		assert_int_equal(!strcmp(info.csum_name, to.csum->name), !memcmp(info.fsid, ids[0], 16));
		expect_files(fs);
		btrkit_fs_close(fs);
		written_destroy(&w);
	}
	assert_true(forms[0] && forms[1]);
}

static void data_sums_are_not_forgotten(void **state)
{
	const struct conversion to = { csum_kind_find(BTRKIT_CSUM_XXHASH64), NULL, false };
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	static uint8_t bytes[8192];
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t inode;
	(void)state;

	UNIT_NEEDS(UNIT_SUMS);
	make(&w, &o);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	must(btrkit_txn_create(txn, TOP_LEVEL, TOP, "data", 4, NULL, &inode, &err));
	must(btrkit_txn_write(txn, TOP_LEVEL, inode, 0, bytes, sizeof(bytes), NULL, &err));
	written_commit(txn);
	txn = written_start(fs);
	assert_int_equal(conversion_begin(txn, &to, &err), -EOPNOTSUPP);
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

/* A crash between the superblocks would leave devices with different fsids. Checksum types may differ. */
static void several_devices_keep_their_fsid(void **state)
{
	const struct conversion refused[] = { { NULL, ids[0], false },
					      { NULL, ids[0], true },
					      { csum_kind_find(BTRKIT_CSUM_XXHASH64), ids[0], false } };
	const struct conversion csum = { csum_kind_find(BTRKIT_CSUM_XXHASH64), NULL, false };
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_fs_info before, after;
	struct btrkit_io *ios[2];
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	(void)state;

	UNIT_NEEDS(UNIT_SUMS);
	for (size_t i = 0; i < ARRAY_SIZE(ios); i++)
		must(btrkit_io_memory(SIZE, &ios[i], &err));
	must(btrkit_mkfs(ios, ARRAY_SIZE(ios), &o, NULL, &err));
	must(btrkit_fs_open(ios, ARRAY_SIZE(ios), &opts, &fs, &err));
	btrkit_fs_get_info(fs, &before);
	txn = written_start(fs);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_int_equal(conversion_begin(txn, &refused[i], &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.message, "fsid is not supported with 2 devices"));
		assert_true(!txn->converting && !fs->rules.also);
	}
	must(convert(txn, &csum));
	written_commit(txn);
	btrkit_fs_get_info(fs, &after);
	assert_memory_equal(after.fsid, before.fsid, sizeof(after.fsid));
	assert_string_equal(after.csum_name, csum.csum->name);
	must(audit_own(fs, AUDIT_ITEMS, &err));
	btrkit_fs_close(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversions_are_complete),
		cmocka_unit_test(failures_leave_one_of_both_forms),
		cmocka_unit_test(data_sums_are_not_forgotten),
		cmocka_unit_test(several_devices_keep_their_fsid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
