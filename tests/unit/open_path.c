// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opening a filesystem by path; resuming the listing of a directory. Nothing remains open after a failure. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <btrkit/btrkit.h>

#define BYTES (128u << 20)
#define FILES 20u

static char path[] = "/tmp/btrkit-unit-open.XXXXXX";
static struct btrkit_error err;

static void need(int ret)
{
	if (ret)
		fail_msg("%s", err.message);
}

/* The number of open files of this process. */
static unsigned num_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void make_filesystem(void)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_mkfs_result result;
	struct btrkit_io *io;

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, BYTES), 0);
	need(btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err));
	need(btrkit_mkfs(&io, 1, &o, &result, &err));
	btrkit_io_close(io);
}

static struct btrkit_fs *open_it(unsigned flags)
{
	const struct btrkit_open_options opts = { .flags = flags };
	struct btrkit_fs *fs = NULL;

	need(btrkit_fs_open_path(path, 0, &opts, &fs, &err));
	return fs;
}

static void one_call_opens_and_one_closes(void **state)
{
	const unsigned before = num_open();
	struct btrkit_fs_info info;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	(void)state;

	make_filesystem();
	need(btrkit_fs_open_path(path, BTRKIT_SCAN_ALL, NULL, &fs, &err));
	btrkit_fs_get_info(fs, &info);
	assert_int_equal(info.num_devices, 1);
	assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
	btrkit_fs_close(fs);
	assert_int_equal(num_open(), before);

	fs = open_it(BTRKIT_OPEN_WRITE);
	need(btrkit_txn_start(fs, &txn, &err));
	need(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "a", 1, NULL, NULL, &err));
	need(btrkit_txn_commit(txn, NULL, &err));
	btrkit_fs_close(fs);
	assert_int_equal(num_open(), before);
}

/* Writing needs a lock of the file, which only one can have. */
static void writers_exclude_each_other(void **state)
{
	const struct btrkit_open_options writing = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_fs *fs, *other;
	unsigned before;
	(void)state;

	fs = open_it(BTRKIT_OPEN_WRITE);
	before = num_open();
	assert_int_equal(btrkit_fs_open_path(path, 0, &writing, &other, &err), -EBUSY);
	assert_int_equal(num_open(), before);
	btrkit_fs_close(fs);
}

static void failures_leave_nothing_open(void **state)
{
	const struct btrkit_open_options unknown = { .flags = 1u << 31 };
	const unsigned before = num_open();
	struct btrkit_fs *fs = NULL;
	(void)state;

	assert_int_equal(btrkit_fs_open_path("/tmp/btrkit-no-such-file", 0, NULL, &fs, &err), -ENOENT);
	assert_int_equal(btrkit_fs_open_path(path, 1u << 7, NULL, &fs, &err), -EINVAL);
	assert_int_equal(btrkit_fs_open_path(path, 0, &unknown, &fs, &err), -EINVAL);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, BYTES), 0);
	assert_int_equal(btrkit_fs_open_path(path, BTRKIT_SCAN_ALL, NULL, &fs, &err), -EMEDIUMTYPE);
	assert_null(fs);
	assert_int_equal(num_open(), before);
}

struct listing {
	unsigned n, max; /* stops after @max entries */
	uint64_t last;
	char names[2 * FILES];
};

static int take(void *ctx, const struct btrkit_dir_entry *e)
{
	struct listing *l = ctx;

	if (l->n == l->max)
		return -EINTR;
	assert_true(e->index > l->last);
	l->names[l->n++] = e->name[0];
	l->last = e->index;
	return 0;
}

static void make_files(struct btrkit_fs *fs)
{
	struct btrkit_txn *txn;

	need(btrkit_txn_start(fs, &txn, &err));
	for (unsigned i = 0; i < FILES; i++)
		need(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, &"abcdefghijklmnopqrst"[i], 1, NULL,
				       NULL, &err));
	need(btrkit_txn_commit(txn, NULL, &err));
}

static int list_after(struct btrkit_fs *fs, struct listing *l)
{
	return btrkit_inode_entries_after(fs, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, l->last, take, l, &err);
}

/* However many entries are taken at a time, each comes once; what was removed does not matter, what is new follows. */
static void listings_resume(void **state)
{
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct listing l;
	(void)state;

	make_filesystem();
	fs = open_it(BTRKIT_OPEN_WRITE);
	make_files(fs);
	for (unsigned step = 1; step <= FILES; step++) {
		l = (struct listing){ .max = step };
		for (unsigned calls = 0; list_after(fs, &l) == -EINTR; calls++) {
			assert_true(calls <= FILES);
			l.max += step;
		}
		assert_int_equal(l.n, FILES);
		assert_memory_equal(l.names, "abcdefghijklmnopqrst", FILES);
	}

	l = (struct listing){ .max = 5 };
	assert_int_equal(list_after(fs, &l), -EINTR);
	need(btrkit_txn_start(fs, &txn, &err));
	for (unsigned i = 3; i < 7; i++)
		need(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, &"abcdefg"[i], 1, BTRKIT_UNLINK_FILE,
				       &err));
	need(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "e", 1, NULL, NULL, &err));
	need(btrkit_txn_commit(txn, NULL, &err));
	l.max = 2 * FILES;
	need(list_after(fs, &l));
	assert_int_equal(l.n, 5 + 14);
	assert_memory_equal(l.names, "abcdehijklmnopqrste", l.n);
	btrkit_fs_close(fs);
}

static void listings_end(void **state)
{
	struct listing l = { .max = FILES };
	struct btrkit_fs *fs = open_it(0);
	(void)state;

	l.last = UINT64_MAX;
	need(list_after(fs, &l));
	assert_int_equal(l.n, 0);
	assert_int_equal(btrkit_inode_entries_after(fs, BTRKIT_TOP_LEVEL, 257, 0, take, &l, &err), -ENOTDIR);
	assert_int_equal(btrkit_inode_entries_after(fs, BTRKIT_TOP_LEVEL, 9999, UINT64_MAX, take, &l, &err), -ENOENT);
	btrkit_fs_close(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call_opens_and_one_closes), cmocka_unit_test(writers_exclude_each_other),
		cmocka_unit_test(failures_leave_nothing_open),	 cmocka_unit_test(listings_resume),
		cmocka_unit_test(listings_end),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 99;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
