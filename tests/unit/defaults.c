// SPDX-License-Identifier: LGPL-2.1-or-later
/* What btrkit.h promises for all functions: NULL options, NULL results, and callbacks that cancel. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/print/check.h"
#include "lib/print/ls.h"
#include "lib/print/mkfs.h"
#include "lib/print/space.h"
#include "lib/print/stat.h"
#include "lib/print/subvolumes.h"
#include "lib/print/usage.h"
#include "lib/print/usage_html.h"

#define SIZE (256u << 20)

static int swallow(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(uint64_t *)ctx += len;
	return 0;
}

static struct btrkit_io *made(const struct btrkit_mkfs_options *opts, struct btrkit_mkfs_result *result)
{
	struct btrkit_io *io;

	assert_int_equal(btrkit_io_memory(SIZE, &io, NULL), 0);
	assert_int_equal(btrkit_mkfs(&io, 1, opts, result, NULL), 0);
	return io;
}

static struct btrkit_fs *opened(void)
{
	struct btrkit_io *io = made(NULL, NULL);
	struct btrkit_fs *fs;

	assert_int_equal(btrkit_fs_open(&io, 1, NULL, &fs, NULL), 0);
	return fs;
}

static void a_filesystem_is_made_without_options(void **state)
{
	struct btrkit_mkfs_options defaults = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_mkfs_result by_null, by_macro;
	uint64_t least, wanted, bytes = 0;
	const char *name = "memory";

	(void)state;
	assert_int_equal(btrkit_mkfs_min_size(NULL, 1, &least, NULL), 0);
	assert_int_equal(btrkit_mkfs_min_size(&defaults, 1, &wanted, NULL), 0);
	assert_int_equal(least, wanted);
	btrkit_io_close(made(NULL, &by_null));
	btrkit_io_close(made(&defaults, &by_macro));
	assert_int_equal(by_null.nodesize, by_macro.nodesize);
	assert_int_equal(by_null.incompat, by_macro.incompat);
	assert_int_equal(by_null.compat_ro, by_macro.compat_ro);
	assert_int_equal(print_mkfs_result(NULL, &by_null, &name, 1, swallow, &bytes, NULL), 0);
	assert_true(bytes);
}

static void whatever_takes_options_does_without(void **state)
{
	struct btrkit_fs *fs = opened();
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *paths;
	struct usage_printer *printer;
	const char *top[] = { "/" };
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(print_ls(fs, 5, NULL, 0, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(print_ls(fs, 5, top, 1, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(print_stat(fs, 5, top, 1, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(print_subvolumes(fs, NULL, BTRKIT_FORMAT_TEXT, NULL, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(btrkit_dump_tree(fs, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(btrkit_dump_scan(fs, NULL, NULL, swallow, &bytes, NULL), 0);
	assert_int_equal(btrkit_check(fs, NULL, NULL, NULL), 0);
	assert_int_equal(print_check(fs, NULL, BTRKIT_FORMAT_TEXT, swallow, &bytes, NULL, NULL), 0);
	assert_int_equal(btrkit_space_status(fs, NULL, NULL, NULL), 0);
	assert_int_equal(print_space_status(fs, BTRKIT_FORMAT_TEXT, swallow, &bytes, NULL, NULL), 0);
	assert_int_equal(btrkit_usage_load(fs, NULL, &usage, NULL), 0);
	assert_int_equal(btrkit_usage_paths_load(fs, usage, NULL, &paths, NULL), 0);
	assert_int_equal(usage_printer_create(fs, usage, NULL, swallow, &bytes, &printer, NULL), 0);
	assert_int_equal(usage_printer_finish(printer), 0);
	assert_int_equal(print_usage_html(fs, usage, paths, NULL, swallow, &bytes, NULL), 0);
	btrkit_usage_paths_free(paths);
	btrkit_usage_free(usage);
	btrkit_fs_close(fs);
}

static void files_come_out_without_options(void **state)
{
	char folder[] = "/tmp/btrkit-defaults-XXXXXX";
	struct btrkit_fs *fs = opened();
	uint64_t bytes = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(btrkit_extract(fs, 5, NULL, 0, folder, NULL, NULL, NULL), 0);
	assert_int_equal(rmdir(folder), 0);
#ifdef HAVE_ARCHIVE
	assert_int_equal(btrkit_extract_tar(fs, 5, NULL, 0, swallow, &bytes, NULL, NULL, NULL), 0);
	assert_true(bytes);
#else
	assert_int_equal(btrkit_extract_tar(fs, 5, NULL, 0, swallow, &bytes, NULL, NULL, NULL), -EOPNOTSUPP);
#endif
	btrkit_fs_close(fs);
}

/* An option that makes no sense with the others must not be ignored silently. */
static void a_level_is_of_a_compression(void **state)
{
	struct btrkit_mkfs_options how = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_open_options writing = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_write_options write = BTRKIT_WRITE_OPTIONS_INIT;
	struct btrkit_io *io = made(NULL, NULL);
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t least, inode;

	(void)state;
	how.compression_level = 3;
	assert_int_equal(btrkit_mkfs_min_size(&how, 1, &least, NULL), -EINVAL);
	assert_int_equal(btrkit_mkfs(&io, 1, &how, NULL, NULL), -EINVAL);
	writing.flags = BTRKIT_OPEN_WRITE;
	assert_int_equal(btrkit_fs_open(&io, 1, &writing, &fs, NULL), 0);
	assert_int_equal(btrkit_txn_start(fs, &txn, NULL), 0);
	assert_int_equal(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "a", 1, NULL, &inode, NULL), 0);
	write.level = 3;
	assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, "a", 1, &write, NULL), -EINVAL);
	write.level = 0;
	assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, "a", 1, &write, NULL), 0);
	/* This also aborts the transaction. */
	btrkit_fs_close(fs);
}

static int refuse(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)done;
	(void)total;
	return -ECANCELED;
}

/* A callback that cancels may fill in the error; that must not be overwritten. */
static void an_error_of_the_caller_stays(void **state)
{
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_error err = { .code = BTRKIT_SYSTEM, .err = -ECANCELED, .message = "of the caller" };
	struct btrkit_fs *fs = opened();

	(void)state;
	opts.progress = refuse;
	assert_int_equal(btrkit_check(fs, &opts, NULL, &err), -ECANCELED);
	assert_int_equal(err.code, BTRKIT_SYSTEM);
	assert_string_equal(err.message, "of the caller");
	btrkit_fs_close(fs);
}

/* Attempts that fail inside a successful call must leave nothing in the error. */
static void a_success_leaves_no_error(void **state)
{
	struct btrkit_open_options writing = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_error err = { .message = "of the caller" };
	struct btrkit_io *io = made(NULL, NULL);
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t id, found;

	(void)state;
	assert_int_equal(btrkit_fs_open(&io, 1, &writing, &fs, &err), 0);
	assert_int_equal(btrkit_txn_start(fs, &txn, &err), 0);
	assert_int_equal(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "300", 3, NULL, &id,
						     &err),
			 0);
	assert_int_equal(btrkit_txn_commit(txn, NULL, &err), 0);
	/* "300" is tried as a number first, and there is no subvolume with that number. */
	assert_int_equal(btrkit_subvolume_find(fs, "300", &found, &err), 0);
	assert_int_equal(found, id);
	assert_int_equal(err.code, BTRKIT_OK);
	assert_string_equal(err.message, "of the caller");
	btrkit_fs_close(fs);
}

static void a_severity_that_is_none_has_no_name(void **state)
{
	(void)state;
	assert_string_equal(btrkit_check_severity_name(BTRKIT_CHECK_LEFTOVER), "leftover");
	assert_null(btrkit_check_severity_name((enum btrkit_check_severity)BTRKIT_CHECK_SEVERITIES));
	assert_null(btrkit_check_severity_name((enum btrkit_check_severity)-1));
}

static void what_it_was_built_with_is_told(void **state)
{
#ifdef HAVE_ARCHIVE
	const char *archive = " +archive";
#else
	const char *archive = " -archive";
#endif

	(void)state;
	assert_non_null(strstr(btrkit_build_features(), archive));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filesystem_is_made_without_options),
		cmocka_unit_test(whatever_takes_options_does_without),
		cmocka_unit_test(files_come_out_without_options),
		cmocka_unit_test(a_level_is_of_a_compression),
		cmocka_unit_test(an_error_of_the_caller_stays),
		cmocka_unit_test(a_success_leaves_no_error),
		cmocka_unit_test(a_severity_that_is_none_has_no_name),
		cmocka_unit_test(what_it_was_built_with_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
