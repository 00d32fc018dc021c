// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files of hostile filesystems are extracted into the target directory, and nowhere else. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <btrkit/extract.h>

#include "lib/format/ids.h"
#include "lib/format/items/files/dir.h"
#include "tests/unit/hostile.h"
#include "tests/unit/memory.h"

#define LEVELS 30u

struct rig {
	struct hostile h;
	struct synthetic s;
	struct btrkit_fs *fs;
	char folder[64], target[80];
	unsigned problems, progress, stop_at;
	char last[400];
};

static int problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct rig *r = ctx;

	r->problems++;
	snprintf(r->last, sizeof(r->last), "%.*s: %s", (int)len, path, what->message);
	return 0;
}

static int progress(void *ctx, uint64_t names, uint64_t bytes)
{
	struct rig *r = ctx;

	(void)names;
	(void)bytes;
	return ++r->progress == r->stop_at ? -EINTR : 0;
}

static void begin(struct rig *r)
{
	*r = (struct rig){ .folder = "/tmp/btrkit-extract-XXXXXX" };
	assert_non_null(mkdtemp(r->folder));
	snprintf(r->target, sizeof(r->target), "%s/target", r->folder);
	assert_int_equal(mkdir(r->target, 0755), 0);
	hostile_init(&r->h);
	hostile_inode(&r->h, 256, S_IFDIR | 0755, 1, 0);
	hostile_ref(&r->h, 256, 256, 0, "..");
}

static int extract(struct rig *r, struct btrkit_extract_result *result, struct btrkit_error *err)
{
	const struct btrkit_extract_options opts = {
		.problem = problem, .problem_ctx = r, .progress = progress, .progress_ctx = r
	};

	if (!r->fs)
		r->fs = hostile_open(&r->h, &r->s);
	return btrkit_extract(r->fs, 5, NULL, 0, r->target, &opts, result, err);
}

/* Removes a directory with its contents. @return the number of names in it */
static unsigned clear(const char *path)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	assert_int_equal(chmod(path, 0700), 0);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d))) {
		char below[4096];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		n++;
		if (unlink(below))
			n += clear(below);
	}
	closedir(d);
	assert_int_equal(rmdir(path), 0);
	return n;
}

/* @return the number of names in the target; nothing may exist beside it */
static unsigned end(struct rig *r)
{
	const unsigned n = clear(r->target);

	assert_int_equal(clear(r->folder), 0);
	btrkit_fs_close(r->fs);
	hostile_free(&r->h);
	return n;
}

static void file(struct rig *r, uint64_t index, const char *name, uint64_t inode)
{
	hostile_name(&r->h, 256, index, name, inode, FT_REG);
	hostile_inode(&r->h, inode, S_IFREG | 06755, 1, 4);
	hostile_data(&r->h, inode, "text");
}

static void names_that_lead_elsewhere_are_left_out(void **state)
{
	struct btrkit_extract_result result;
	struct rig r;

	(void)state;
	begin(&r);
	file(&r, 2, "../beside", 257);
	file(&r, 3, "/tmp/btrkit-extract-absolute", 258);
	file(&r, 4, "..", 259);
	file(&r, 5, ".", 260);
	file(&r, 6, "below/", 261);
	file(&r, 7, "good", 262);
	/* A symlink that the next name would be written through, and one in place of a directory. */
	hostile_name(&r.h, 256, 8, "link", 263, FT_SYMLINK);
	hostile_inode(&r.h, 263, S_IFLNK | 0777, 1, 9);
	hostile_data(&r.h, 263, "../beside");
	hostile_entry(&r.h, 256, 9, "link", 262, FT_REG);
	hostile_entry(&r.h, 256, 10, "again", 263, FT_SYMLINK);
	hostile_name(&r.h, 256, 11, "again", 264, FT_DIR);
	hostile_inode(&r.h, 264, S_IFDIR | 0755, 1, 0);
	hostile_name(&r.h, 264, 2, "in it", 265, FT_REG);
	hostile_inode(&r.h, 265, S_IFREG | 0644, 1, 0);
	assert_int_equal(extract(&r, &result, NULL), 0);
	assert_int_equal(r.problems, 5);
	assert_int_equal(result.problems, 5);
	assert_int_equal(access("/tmp/btrkit-extract-absolute", F_OK), -1);
	/* good, link, again, again/in it */
	assert_int_equal(end(&r), 4);
}

static void numbers_that_are_none_do_no_harm(void **state)
{
	struct btrkit_extract_result result;
	struct stat st;
	char path[100];
	struct rig r;

	(void)state;
	begin(&r);
	file(&r, 2, "file", 257);
	/*
	 * An impossible size, symlinks of an impossible size and of none, and link counts that do not match the names.
	 */
	hostile_name(&r.h, 256, 3, "large", 258, FT_REG);
	hostile_inode(&r.h, 258, S_IFREG | 0644, 1, UINT64_MAX);
	hostile_name(&r.h, 256, 4, "link", 259, FT_SYMLINK);
	hostile_inode(&r.h, 259, S_IFLNK | 0777, 1, UINT64_MAX);
	hostile_name(&r.h, 256, 5, "empty", 260, FT_SYMLINK);
	hostile_inode(&r.h, 260, S_IFLNK | 0777, 1, 0);
	hostile_name(&r.h, 256, 6, "many", 261, FT_REG);
	hostile_inode(&r.h, 261, S_IFREG | 0644, UINT32_MAX, 0);
	hostile_entry(&r.h, 256, 7, "many", 261, FT_REG);
	hostile_entry(&r.h, 256, 8, "more", 261, FT_REG);
	hostile_entry(&r.h, 256, 9, "gone", 300, FT_REG);
	assert_int_equal(extract(&r, &result, NULL), 0);
	assert_int_equal(r.problems, 4);
	snprintf(path, sizeof(path), "%s/file", r.target);
	assert_int_equal(stat(path, &st), 0);
	/* No setuid bit: the file has another owner now. The nanoseconds are a value that Linux takes for "now". */
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_mtim.tv_nsec, 0);
	assert_int_equal(end(&r), 3);
}

static void directories_that_lead_back_come_once(void **state)
{
	struct btrkit_extract_result result;
	struct rig r;

	(void)state;
	begin(&r);
	for (uint64_t i = 0; i < LEVELS; i++) {
		hostile_name(&r.h, 256 + i, 2, "x", 257 + i, FT_DIR);
		hostile_entry(&r.h, 256 + i, 3, "y", 257 + i, FT_DIR);
		hostile_entry(&r.h, 256 + i, 4, "up", 256, FT_DIR);
		hostile_inode(&r.h, 257 + i, S_IFDIR | 0500, 1, 0);
	}
	assert_int_equal(extract(&r, &result, NULL), 0);
	assert_int_equal(r.problems, 2 * LEVELS);
	assert_int_equal(result.names, LEVELS + 1);
	assert_int_equal(end(&r), LEVELS);
}

/* Attributes of a directory are read when it is entered and again when it is left. */
static void what_is_wrong_with_a_directory_is_told_once(void **state)
{
	struct btrkit_extract_result result;
	struct disk_dir_item *d;
	struct rig r;

	(void)state;
	begin(&r);
	hostile_name(&r.h, 256, 2, "dir", 257, FT_DIR);
	hostile_inode(&r.h, 257, S_IFDIR | 0755, 1, 0);
	hostile_xattr(&r.h, 257, "user.long", "value");
	d = (struct disk_dir_item *)r.h.items[r.h.n - 1].data;
	d->data_len = le16_put(1000);
	assert_int_equal(extract(&r, &result, NULL), 0);
	assert_int_equal(r.problems, 1);
	assert_int_equal(result.problems, 1);
	assert_int_equal(result.names, 2);
	assert_int_equal(end(&r), 1);
}

static void it_stops_where_it_is_told(void **state)
{
	(void)state;
	for (unsigned at = 1;; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_extract_result result;
		struct rig r;
		int ret;

		begin(&r);
		for (unsigned k = 0; k < 10; k++)
			file(&r, 2 + k, (char[]){ (char)('a' + k), 0 }, 257 + k);
		r.stop_at = at;
		ret = extract(&r, &result, &err);
		if (ret) {
			assert_int_equal(ret, -EINTR);
			assert_true(result.names <= 11);
		}
		/* All but the one in which it was cancelled. */
		assert_int_equal(end(&r) + 1, result.names);
		if (!ret)
			break;
	}
}

static void without_a_function_the_first_problem_ends_it(void **state)
{
	const struct btrkit_extract_options opts = BTRKIT_EXTRACT_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const char *const paths[] = { "a", "none" };
	struct btrkit_extract_result result;
	struct rig r;

	(void)state;
	begin(&r);
	file(&r, 2, "a", 257);
	r.fs = hostile_open(&r.h, &r.s);
	assert_int_equal(btrkit_extract(r.fs, 5, paths, 2, r.target, &opts, &result, &err), -ENOENT);
	assert_int_equal(result.names, 1);
	assert_int_equal(result.problems, 1);
	assert_int_equal(btrkit_extract(r.fs, 6, NULL, 0, r.target, &opts, NULL, &err), -ENOENT);
	/* The result is filled in for every failure. */
	result.names = result.problems = 9;
	assert_int_equal(btrkit_extract(r.fs, 5, NULL, 0, "/dev/null/x", &opts, &result, &err), -ENOTDIR);
	assert_int_equal(result.names, 0);
	assert_int_equal(result.problems, 0);
	assert_int_equal(btrkit_extract(r.fs, 5, NULL, 0, r.target, &(struct btrkit_extract_options){ .flags = 4 },
					NULL, &err),
			 -EINVAL);
	assert_int_equal(end(&r), 1);
}

struct written {
	uint8_t bytes[1 << 20];
	size_t len;
};

static int keep(void *ctx, const void *data, size_t len)
{
	struct written *w = ctx;

	assert_true(len <= sizeof(w->bytes) - w->len);
	memcpy(w->bytes + w->len, data, len);
	w->len += len;
	return 0;
}

/* An ACL as Linux stores it: a user may read and write, and one more entry has @tag. */
static void put_acl(struct rig *r, uint64_t inode, uint8_t version, uint8_t tag)
{
	static const char name[] = "system.posix_acl_access";
	const uint8_t acl[] = { version, 0, 0, 0, 2, 0, 6, 0, 0xe8, 3, 0, 0, tag, 0, 4, 0, 0xff, 0xff, 0xff, 0xff };
	char room[sizeof(acl) + 1];

	memset(room, 'x', sizeof(acl));
	room[sizeof(acl)] = '\0';
	hostile_xattr(&r->h, inode, name, room);
	memcpy((uint8_t *)r->h.items[r->h.n - 1].data + sizeof(struct disk_dir_item) + sizeof(name) - 1, acl,
	       sizeof(acl));
}

/* @return whether an archive of a file with this ACL contains any ACL; *problems: the number of reported problems */
static int acl_comes(uint8_t version, uint8_t tag, unsigned *problems)
{
	struct btrkit_extract_options opts = BTRKIT_EXTRACT_OPTIONS_INIT;
	struct written *w = calloc(1, sizeof(*w));
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r;
	int ret;

	assert_non_null(w);
	begin(&r);
	file(&r, 2, "file", 257);
	put_acl(&r, 257, version, tag);
	r.fs = hostile_open(&r.h, &r.s);
	opts.problem = problem;
	opts.problem_ctx = &r;
	ret = btrkit_extract_tar(r.fs, 5, NULL, 0, keep, w, &opts, NULL, &err);
	*problems = r.problems;
	assert_int_equal(end(&r), 0);
	if (!ret)
		ret = memmem(w->bytes, w->len, "SCHILY.acl", 10) != NULL;
	free(w);
	return ret;
}

static void an_acl_comes_as_a_whole_or_not_at_all(void **state)
{
	unsigned problems;
	int ret = acl_comes(2, 4, &problems);

	(void)state;
	if (ret == -EOPNOTSUPP)
		skip();
	assert_int_equal(ret, 1);
	assert_int_equal(problems, 0);
	/* An unknown tag, and an unknown version. */
	assert_int_equal(acl_comes(2, 99, &problems), 0);
	assert_int_equal(problems, 1);
	assert_int_equal(acl_comes(3, 4, &problems), 0);
	assert_int_equal(problems, 1);
}

static void what_an_archive_has_no_form_for_is_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_extract_options opts = BTRKIT_EXTRACT_OPTIONS_INIT;
	struct btrkit_extract_result result;
	static struct written written;
	struct rig r;
	int ret;

	(void)state;
	begin(&r);
	file(&r, 2, "file", 257);
	hostile_xattr(&r.h, 257, "user.a=b", "value");
	hostile_xattr(&r.h, 257, "system.posix_acl_access", "no ACL");
	hostile_xattr(&r.h, 257, "system.posix_acl_default", "\2");
	hostile_xattr(&r.h, 257, "user.good", "value");
	file(&r, 3, "../file", 258);
	hostile_name(&r.h, 256, 4, "large", 259, FT_REG);
	hostile_inode(&r.h, 259, S_IFREG | 0644, 1, UINT64_MAX);
	hostile_name(&r.h, 256, 5, "socket", 260, FT_SOCK);
	hostile_inode(&r.h, 260, S_IFSOCK | 0644, 1, 0);
	r.fs = hostile_open(&r.h, &r.s);
	opts.problem = problem;
	opts.problem_ctx = &r;
	ret = btrkit_extract_tar(r.fs, 5, NULL, 0, keep, &written, &opts, &result, &err);
	if (ret != -EOPNOTSUPP) {
		assert_int_equal(ret, 0);
		assert_int_equal(r.problems, 5);
		/* Leaving out a socket is not counted as a problem. */
		assert_int_equal(result.problems, 5);
		assert_int_equal(result.names, 2);
		assert_true(written.len && written.len % 10240 == 0);
	}
	assert_int_equal(end(&r), 0);
}

static void put_some_of_each(struct rig *r)
{
	file(r, 2, "file", 257);
	hostile_xattr(&r->h, 257, "user.good", "value");
	hostile_name(&r->h, 256, 3, "link", 258, FT_SYMLINK);
	hostile_inode(&r->h, 258, S_IFLNK | 0777, 1, 4);
	hostile_data(&r->h, 258, "file");
	hostile_name(&r->h, 256, 4, "one", 259, FT_REG);
	hostile_inode(&r->h, 259, S_IFREG | 0644, 2, 0);
	hostile_entry(&r->h, 256, 5, "two", 259, FT_REG);
	hostile_name(&r->h, 256, 6, "dir", 260, FT_DIR);
	hostile_inode(&r->h, 260, S_IFDIR | 0755, 1, 0);
	hostile_name(&r->h, 260, 2, "in it", 261, FT_DIR);
	hostile_inode(&r->h, 261, S_IFDIR | 0755, 1, 0);
}

/* Extracts into a directory, or with @w into an archive. @return what the library call returned */
static int bring(struct rig *r, struct written *w, struct btrkit_extract_result *result, struct btrkit_error *err)
{
	const struct btrkit_extract_options opts = { .problem = problem, .problem_ctx = r };

	if (!w)
		return btrkit_extract(r->fs, 5, NULL, 0, r->target, &opts, result, err);
	w->len = 0;
	return btrkit_extract_tar(r->fs, 5, NULL, 0, keep, w, &opts, result, err);
}

#define NAMES 7u /* including the directory itself */

/* Each allocation fails in turn: the call must fail and say so; it must not skip a file and go on. */
static void fail_in_turn(struct written *w)
{
	struct btrkit_extract_result result;
	bool failed = true;
	struct rig r;
	uint64_t at;
	int ret;

	begin(&r);
	put_some_of_each(&r);
	r.fs = hostile_open(&r.h, &r.s);
	ret = bring(&r, w, &result, NULL);
	if (w && ret == -EOPNOTSUPP)
		failed = false;
	for (at = 0; failed; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;

		r.problems = 0;
		memory_count(at, false);
		ret = bring(&r, w, &result, &err);
		failed = memory_end() > at;
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY || !failed))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
		if (!ret && (result.names != NAMES || r.problems))
			fail_msg("allocation %llu: %llu names, %u problems: %s", (unsigned long long)at,
				 (unsigned long long)result.names, r.problems, r.last);
	}
	assert_true(at > 10 || ret == -EOPNOTSUPP);
	end(&r);
}

static void memory_runs_out(void **state)
{
	static struct written w;

	(void)state;
	fail_in_turn(NULL);
	fail_in_turn(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_lead_elsewhere_are_left_out),
		cmocka_unit_test(numbers_that_are_none_do_no_harm),
		cmocka_unit_test(directories_that_lead_back_come_once),
		cmocka_unit_test(it_stops_where_it_is_told),
		cmocka_unit_test(what_is_wrong_with_a_directory_is_told_once),
		cmocka_unit_test(an_acl_comes_as_a_whole_or_not_at_all),
		cmocka_unit_test(what_an_archive_has_no_form_for_is_told),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(without_a_function_the_first_problem_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
