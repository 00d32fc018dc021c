// SPDX-License-Identifier: LGPL-2.1-or-later
/* The contents of files must not have changed since the source was read; and each allocation fails in turn. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/source/source.h"
#include "tests/unit/memory.h"

static char top[] = "/tmp/btrkit-source.XXXXXX", manifest[sizeof(top) + 20];
static const struct source_limits limits = { .symlink = 3949, .xattr = 16000 };

static void put(const char *name, const char *contents)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, contents, strlen(contents)), strlen(contents));
	assert_int_equal(close(fd), 0);
}

static const char lines[] = "/ 4096 40755 2 0 0 0 1.1 - - - user.a=b\n"
			    "/dir 0 40755 2 0 0 0 1.1 - - -\n"
			    "/dir/early 0 @100644 2 0 0 0 1.1 /dir/inline - -\n"
			    "/dir/inline 6 100644 2 0 0 0 1.1 - inline - user.a=b user.c=d\n"
			    "/dir/file 3 100644 1 0 0 0 1.1 file - -\n"
			    "/dir/none 0 100644 1 0 0 0 1.1 - - -\n";

/* Changes to a new, empty working directory. */
static int make_tree(void **state)
{
	(void)state;
	memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
	if (!mkdtemp(top) || chdir(top) || mkdir("tree", 0755) || mkdir("tree/dir", 0755))
		return -1;
	snprintf(manifest, sizeof(manifest), "%s/manifest", top);
	put("tree/file", "abc");
	put("tree/dir/b", "contents");
	put("manifest", lines);
	return link("tree/dir/b", "tree/a") || symlink("target", "tree/dir/link");
}

static int remove_tree(void **state)
{
	char command[sizeof(top) + 20];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command);
}

static unsigned flags;

static struct source *read_tree(enum btrkit_source_kind kind)
{
	static struct btrkit_mkfs_source options[BTRKIT_SOURCE_MANIFEST + 1];
	struct btrkit_mkfs_source *o = &options[kind];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = NULL;

	*o = (struct btrkit_mkfs_source){ .kind = kind, .path = "tree", .basedir = "tree", .flags = flags };
	if (kind == BTRKIT_SOURCE_MANIFEST)
		o->path = manifest;
	assert_int_equal(source_create(o, &limits, &s, &err), 0);
	if (source_read(s, NULL, &err))
		fail_msg("%s", err.message);
	return s;
}

static uint32_t inode_of(const struct source *s, const char *path)
{
	uint32_t inode = 0;

	while (*path) {
		const size_t len = strcspn(path, "/");
		const uint32_t entry = source_lookup(s, inode, path, len);

		assert_int_not_equal(entry, SOURCE_NONE);
		inode = s->entries[entry].inode;
		path += len + (path[len] == '/');
	}
	return inode;
}

static void assert_contents(const struct source *s, const char *path, const char *wanted)
{
	const uint32_t inode = inode_of(s, path);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char buf[20];
	int fd = source_file_open(s, inode, &err);

	if (fd < 0)
		fail_msg("%s", err.message);
	assert_int_equal(read(fd, buf, sizeof(buf)), strlen(wanted));
	assert_memory_equal(buf, wanted, strlen(wanted));
	assert_int_equal(source_file_unchanged(s, inode, fd, &err), 0);
	close(fd);
}

static void assert_changed(const struct source *s, const char *path, const char *message)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	assert_int_equal(source_file_open(s, inode_of(s, path), &err), -ESTALE);
	assert_int_equal(err.err, -ESTALE);
	assert_string_equal(err.message, message);
}

static void contents_are_opened(void **state)
{
	struct source *s = read_tree(BTRKIT_SOURCE_DIRECTORY);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	(void)state;
	assert_false(source_streams(s));
	assert_contents(s, "file", "abc");
	assert_contents(s, "a", "contents");
	assert_int_equal(inode_of(s, "a"), inode_of(s, "dir/b"));
	assert_int_equal(source_file_open(s, inode_of(s, "dir"), &err), -EINVAL);
	assert_string_equal(err.message, "dir: has no contents to open");
	source_destroy(s);
	s = read_tree(BTRKIT_SOURCE_MANIFEST);
	assert_contents(s, "dir/inline", "inline");
	assert_contents(s, "dir/file", "abc");
	assert_contents(s, "dir/none", "");
	source_destroy(s);
}

static void what_changed_is_not_opened(void **state)
{
	struct source *s = read_tree(BTRKIT_SOURCE_DIRECTORY), *m = read_tree(BTRKIT_SOURCE_MANIFEST);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct stat st;
	int fd;

	(void)state;
	fd = source_file_open(s, inode_of(s, "a"), &err);
	assert_true(fd >= 0);
	put("tree/a", "longer contents");
	assert_int_equal(source_file_unchanged(s, inode_of(s, "a"), fd, &err), -ESTALE);
	assert_string_equal(err.message, "a: changed while it was read");
	close(fd);
	assert_changed(s, "dir/b", "a: changed while it was read");
	/* Replace it by another file with the same size and time. */
	assert_int_equal(stat("tree/file", &st), 0);
	put("tree/other", "abd");
	assert_int_equal(utimensat(AT_FDCWD, "tree/other", (struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
	assert_int_equal(rename("tree/other", "tree/file"), 0);
	assert_changed(s, "file", "file: changed while it was read");
	assert_changed(m, "dir/file", "dir/file: changed while it was read");
	assert_int_equal(unlink("tree/file"), 0);
	assert_changed(s, "file", "file: changed while it was read");
	assert_int_equal(symlink("a", "tree/file"), 0);
	assert_changed(s, "file", "file: changed while it was read");
	assert_int_equal(unlink("tree/file"), 0);
	assert_int_equal(mkfifo("tree/file", 0644), 0);
	assert_changed(s, "file", "file: changed while it was read");
	assert_int_equal(rename("tree/dir", "tree/moved"), 0);
	assert_int_equal(unlink("tree/a"), 0);
	assert_changed(s, "dir/b", "a: changed while it was read");
	source_destroy(s);
	source_destroy(m);
}

/* Called when the attributes of a name are listed, to change something meanwhile. */
static void (*meanwhile)(const char *path);

/* Pretends that files named "capN" have an attribute, and that Linux knows of none for others of the same device. */
static bool pretend;

ssize_t __wrap_llistxattr(const char *path, char *list, size_t size);
ssize_t __wrap_lgetxattr(const char *path, const char *name, void *value, size_t size);
ssize_t __real_llistxattr(const char *path, char *list, size_t size);
ssize_t __real_lgetxattr(const char *path, const char *name, void *value, size_t size);

ssize_t __wrap_llistxattr(const char *path, char *list, size_t size)
{
	const char *name = strrchr(path, '/');

	if (meanwhile)
		meanwhile(path);
	if (!pretend)
		return __real_llistxattr(path, list, size);
	if (!name || strncmp(name + 1, "cap", 3)) {
		errno = ENOTSUP;
		return -1;
	}
	assert_true(size >= 7);
	memcpy(list, "user.a", 7);
	return 7;
}

ssize_t __wrap_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	if (!pretend)
		return __real_lgetxattr(path, name, value, size);
	assert_true(size >= 5);
	memcpy(value, "value", 5);
	return 5;
}

static void a_file_without_attributes_says_nothing_about_others(void **state)
{
	struct source *s;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), i % 2 ? "tree/cap%u" : "tree/plain%u", i);
		put(name, "x");
	}
	pretend = true;
	s = read_tree(BTRKIT_SOURCE_DIRECTORY);
	pretend = false;
	for (unsigned i = 1; i < 80; i += 2) {
		const struct source_xattrs *x;

		snprintf(name, sizeof(name), "cap%u", i);
		x = s->inodes[inode_of(s, name)].xattrs;
		assert_non_null(x);
		assert_int_equal(x->n, 1);
		assert_string_equal(x->at[0].name, "user.a");
	}
	assert_null(s->inodes[inode_of(s, "plain0")].xattrs);
	assert_null(s->inodes[0].xattrs);
	source_destroy(s);
}

static void assert_read(const struct source *s, const char *path, const char *wanted)
{
	const uint32_t inode = inode_of(s, path);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char buf[20];
	const int fd = source_file_open(s, inode, &err);

	if (fd < 0)
		fail_msg("%s", err.message);
	assert_true(read(fd, buf, sizeof(buf)) >= (ssize_t)strlen(wanted));
	assert_memory_equal(buf, wanted, strlen(wanted));
	assert_int_equal(source_file_unchanged(s, inode, fd, &err), 0);
	close(fd);
}

static void changes_of_files_are_accepted(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s;

	(void)state;
	flags = BTRKIT_SOURCE_ACCEPT_CHANGES;
	s = read_tree(BTRKIT_SOURCE_DIRECTORY);
	flags = 0;
	assert_true(source_accepts_changes(s));
	assert_int_equal(source_num_changes(s), 0);
	put("tree/file", "abcdef");
	put("tree/a", "");
	assert_read(s, "file", "abc");
	assert_read(s, "file", "abc");
	assert_int_equal(s->inodes[inode_of(s, "file")].size, 3);
	assert_read(s, "dir/b", "");
	assert_int_equal(source_num_changes(s), 2);
	assert_string_equal(source_change(s, 0), "file");
	assert_string_equal(source_change(s, 1), "a");
	/* Another file in its place. */
	put("tree/other", "abc");
	assert_int_equal(rename("tree/other", "tree/file"), 0);
	assert_int_equal(source_file_open(s, inode_of(s, "file"), &err), -ESTALE);
	assert_string_equal(err.message, "file: changed while it was read");
	source_destroy(s);
}

static void change_once(const char *path)
{
	meanwhile = NULL;
	(void)path;
	put("tree/new", "x");
	(void)unlink("tree/dir/link");
	(void)rmdir("tree/gone/inner");
	(void)rmdir("tree/gone");
}

static bool has(const struct source *s, const char *name)
{
	return source_lookup(s, 0, name, strlen(name)) != SOURCE_NONE;
}

static void changes_of_directories_are_accepted(void **state)
{
	static const struct btrkit_mkfs_source o = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = NULL;

	(void)state;
	/* Without threads, the names of the top directory are all read by one call. */
	assert_int_equal(setenv("LD_PRELOAD", "", 1), 0);
	for (int accept = 0; accept < 2; accept++) {
		assert_int_equal(mkdir("tree/gone", 0755) | mkdir("tree/gone/inner", 0755), 0);
		meanwhile = change_once;
		flags = accept ? BTRKIT_SOURCE_ACCEPT_CHANGES : 0;
		if (accept) {
			s = read_tree(BTRKIT_SOURCE_DIRECTORY);
			assert_true(has(s, "file") && has(s, "dir"));
			assert_true(source_num_changes(s) >= 1);
		} else {
			assert_int_equal(source_create(&o, &limits, &s, &err), 0);
			assert_int_equal(source_read(s, NULL, &err), -ESTALE);
		}
		source_destroy(s);
		(void)unlink("tree/new");
	}
	flags = 0;
	unsetenv("LD_PRELOAD");
}

static int use(enum btrkit_source_kind kind, struct btrkit_error *err)
{
	static const char *const exclude[] = { "x", "dir/y" };
	static const struct btrkit_mkfs_subvolume subvolumes[] = { { "dir", false, false } };
	const struct btrkit_mkfs_source o = { .kind = kind,
					      .path = kind == BTRKIT_SOURCE_MANIFEST ? manifest : "tree",
					      .basedir = "tree",
					      .exclude = exclude,
					      .num_exclude = 2,
					      .subvolumes = subvolumes,
					      .num_subvolumes = 1 };
	struct source *s = NULL;
	int ret = source_create(&o, &limits, &s, err), fd;

	if (!ret)
		ret = source_read(s, NULL, err);
	for (uint32_t i = 0; !ret && i < s->num_inodes; i++) {
		if (!S_ISREG(s->inodes[i].mode))
			continue;
		fd = source_file_open(s, i, err);
		if (fd < 0)
			ret = fd;
		else
			close(fd);
	}
	source_destroy(s);
	return ret;
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	/* Prevents threads, so that allocations come in the same order each time. */
	assert_int_equal(setenv("LD_PRELOAD", "", 1), 0);
	for (int kind = BTRKIT_SOURCE_DIRECTORY; kind <= BTRKIT_SOURCE_MANIFEST; kind += 2) {
		int ret = -ENOMEM;
		uint64_t n = 0;

		for (; ret; n++) {
			struct btrkit_error err = BTRKIT_ERROR_INIT;

			assert_true(n < 1000);
			memory_count(n, true);
			ret = use(kind, &err);
			memory_end();
			if (ret)
				assert_int_equal(ret, -ENOMEM);
			assert_int_equal(err.err, ret);
		}
		assert_true(n > 20);
	}
	unsetenv("LD_PRELOAD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contents_are_opened, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(what_changed_is_not_opened, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(a_file_without_attributes_says_nothing_about_others, make_tree,
						remove_tree),
		cmocka_unit_test_setup_teardown(changes_of_files_are_accepted, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(changes_of_directories_are_accepted, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(every_failing_allocation_is_told, make_tree, remove_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
