// SPDX-License-Identifier: LGPL-2.1-or-later
/* ls and stat of directory loops, of directories with several names, and of names with arbitrary bytes. */
#include "tests/unit/unit.h"

#include <sys/stat.h>


#include "lib/format/ids.h"
#include "lib/format/items/files/dir.h"
#include "lib/print/ls.h"
#include "lib/print/stat.h"
#include "tests/unit/hostile.h"

#define LEVELS 40u

struct told {
	char text[16384];
	size_t len;
	unsigned problems;
	char last[400];
};

static int take(void *ctx, const void *data, size_t len)
{
	struct told *t = ctx;

	assert_true(t->len + len < sizeof(t->text));
	memcpy(t->text + t->len, data, len);
	t->len += len;
	t->text[t->len] = '\0';
	return 0;
}

static int problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct told *t = ctx;

	t->problems++;
	snprintf(t->last, sizeof(t->last), "%.*s: %s", (int)len, path, what->message);
	return 0;
}

static void list(struct hostile *h, const char *path, unsigned flags, struct told *t)
{
	const struct print_ls_options opts = { PRINT_LS_RECURSIVE | flags, BTRKIT_FORMAT_TEXT, problem, t };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct synthetic s;
	struct btrkit_fs *fs = hostile_open(h, &s);

	*t = (struct told){ 0 };
	assert_int_equal(print_ls(fs, 5, &path, 1, &opts, take, t, &err), 0);
	btrkit_fs_close(fs);
	hostile_free(h);
}

static void root(struct hostile *h)
{
	hostile_init(h);
	hostile_inode(h, 256, S_IFDIR | 0755, 1, 0);
	hostile_ref(h, 256, 256, 0, "..");
}

static void a_directory_that_leads_back_is_entered_once(void **state)
{
	struct hostile h;
	struct told t;

	(void)state;
	root(&h);
	hostile_name(&h, 256, 2, "a", 257, FT_DIR);
	hostile_inode(&h, 257, S_IFDIR | 0755, 1, 0);
	hostile_entry(&h, 257, 2, "up", 256, FT_DIR);
	hostile_entry(&h, 257, 3, "self", 257, FT_DIR);
	list(&h, "", 0, &t);
	assert_string_equal(t.text, ".:\na\n\na:\nself\nup\n");
	assert_int_equal(t.problems, 2);

	/* A loop; the name of the directory in the root has no back reference. */
	root(&h);
	hostile_entry(&h, 256, 2, "a", 257, FT_DIR);
	hostile_inode(&h, 257, S_IFDIR | 0755, 1, 0);
	hostile_name(&h, 257, 2, "b", 258, FT_DIR);
	hostile_inode(&h, 258, S_IFDIR | 0755, 1, 0);
	hostile_name(&h, 258, 2, "a", 257, FT_DIR);
	list(&h, "a", 0, &t);
	assert_string_equal(t.text, "a:\nb\n\na/b:\na\n");
	assert_int_equal(t.problems, 1);
	assert_string_equal(t.last, "a/b/a: entry leads back to directory 257 above it");
}

/* Two names in each directory lead to the next one: listing each separately would take years. */
static void a_directory_of_several_names_is_entered_once(void **state)
{
	struct hostile h;
	struct told t;

	(void)state;
	root(&h);
	for (uint64_t i = 0; i < LEVELS; i++) {
		hostile_name(&h, 256 + i, 2, "x", 257 + i, FT_DIR);
		hostile_entry(&h, 256 + i, 3, "y", 257 + i, FT_DIR);
		/* The same name again, with another index. */
		hostile_entry(&h, 256 + i, 4, "x", 257 + i, FT_DIR);
		hostile_inode(&h, 257 + i, S_IFDIR | 0755, 1, 0);
	}
	list(&h, "", 0, &t);
	assert_int_equal(t.problems, 2 * LEVELS);
	assert_string_equal(t.last + strlen(t.last) - strlen("has several names"), "has several names");
}

/* Directories without references, with two entries each: each one is entered by the first entry that leads to it. */
static void a_directory_without_a_name_is_entered_once(void **state)
{
	struct hostile h;
	struct told t;

	(void)state;
	root(&h);
	for (uint64_t i = 0; i < LEVELS; i++) {
		hostile_entry(&h, 256 + i, 2, "x", 257 + i, FT_DIR);
		hostile_entry(&h, 256 + i, 3, "y", 257 + i, FT_DIR);
		hostile_inode(&h, 257 + i, S_IFDIR | 0755, 1, 0);
	}
	/* Round to the first one. */
	hostile_entry(&h, 256 + LEVELS, 2, "z", 257, FT_DIR);
	list(&h, "", 0, &t);
	/* One for each directory that is entered, and one for each entry that is not. */
	assert_int_equal(t.problems, 2 * LEVELS + 1);
	assert_non_null(strstr(t.text, "y:\nz\n"));
}

static void an_inode_that_is_missing_does_not_hide_the_others(void **state)
{
	struct hostile h;
	struct told t;

	(void)state;
	root(&h);
	hostile_name(&h, 256, 2, "here", 257, FT_REG);
	hostile_inode(&h, 257, S_IFREG | 0644, 1, 5);
	hostile_entry(&h, 256, 3, "gone/\n", 300, FT_REG);
	hostile_entry(&h, 256, 4, "link", 258, FT_SYMLINK);
	hostile_inode(&h, 258, S_IFLNK | 0777, 1, 1ull << 62);
	list(&h, "", PRINT_LS_LONG, &t);
	assert_int_equal(t.problems, 2);
	assert_non_null(strstr(t.text, " gone/\\n\n"));
	assert_non_null(strstr(t.text, " here\n"));
	assert_non_null(strstr(t.text, " link\n"));
	assert_string_equal(t.last, "link: symbolic link has invalid size 4611686018427387904");
}

static void without_a_function_the_first_problem_ends_it(void **state)
{
	const struct print_ls_options opts = { PRINT_LS_LONG, BTRKIT_FORMAT_TEXT, NULL, NULL };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct told t = { .len = 0 };
	const char *const none = "none";
	struct synthetic s;
	struct btrkit_fs *fs;
	struct hostile h;

	(void)state;
	root(&h);
	hostile_entry(&h, 256, 3, "gone", 300, FT_REG);
	fs = hostile_open(&h, &s);
	assert_int_equal(print_ls(fs, 5, NULL, 0, &opts, take, &t, &err), -ENOENT);
	assert_string_equal(err.message, "no inode 300 in subvolume 5");
	assert_int_equal(print_ls(fs, 5, &none, 1, &opts, take, &t, &err), -ENOENT);
	assert_int_equal(print_ls(fs, 6, NULL, 0, &opts, take, &t, &err), -ENOENT);
	assert_int_equal(print_ls(fs, 5, NULL, 0, &(struct print_ls_options){ .flags = 1u << 20 }, take, &t,
					 &err), -EINVAL);
	assert_int_equal(print_stat(fs, 5, &none, 1, NULL, take, &t, &err), -ENOENT);
	assert_int_equal(t.len, 0);
	btrkit_fs_close(fs);
	hostile_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_that_leads_back_is_entered_once),
		cmocka_unit_test(a_directory_of_several_names_is_entered_once),
		cmocka_unit_test(a_directory_without_a_name_is_entered_once),
		cmocka_unit_test(an_inode_that_is_missing_does_not_hide_the_others),
		cmocka_unit_test(without_a_function_the_first_problem_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
