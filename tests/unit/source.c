// SPDX-License-Identifier: LGPL-2.1-or-later
/* Input from the readers becomes a source: ordered names, inode numbers, hard links, subvolumes, flags, and errors. */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "lib/source/build.h"

static const struct source_limits limits = { .symlink = 100, .xattr = 200 };

static struct source *create(struct btrkit_mkfs_source *o)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = NULL;

	o->kind = o->kind ? o->kind : BTRKIT_SOURCE_MANIFEST;
	o->path = "test";
	assert_int_equal(source_create(o, &limits, &s, &err), 0);
	return s;
}

static int try_add(struct source *s, uint32_t parent, const char *name, uint32_t mode, uint32_t *ret,
		   struct btrkit_error *err)
{
	const struct source_attr a = { .mode = mode, .text = S_ISLNK(mode) ? "target" : NULL };

	return source_add(s, parent, name, strlen(name), &a, ret, err);
}

static uint32_t add(struct source *s, uint32_t parent, const char *name, uint32_t mode)
{
	uint32_t inode = SOURCE_NONE;

	assert_int_equal(try_add(s, parent, name, mode, &inode, NULL), 0);
	return inode;
}

#define DIRECTORY (S_IFDIR | 0755)
#define FILE_MODE (S_IFREG | 0644)

static int try_link(struct source *s, uint32_t parent, const char *name, uint32_t inode, struct btrkit_error *err)
{
	return source_add_link(s, parent, name, strlen(name), inode, err);
}

static void linked(struct source *s, uint32_t parent, const char *name, uint32_t inode)
{
	assert_int_equal(try_link(s, parent, name, inode, NULL), 0);
}

/* Finds an inode by its path: source_finish() renumbers inodes. */
static uint32_t at_path(const struct source *s, const char *path)
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

/* Compares the inodes, in order of their numbers, with a text of subvolumes, numbers and paths. */
static void assert_order(const struct source *s, const char *wanted)
{
	char text[2000] = "", path[200];

	for (uint32_t i = 0; i < s->num_inodes; i++) {
		const uint32_t inode = s->in_order[i];

		source_path(s, inode, path, sizeof(path));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u:%u %s", i ? " " : "",
			 s->inodes[inode].subvolume, s->inodes[inode].number, path);
	}
	assert_string_equal(text, wanted);
}

static void names_are_put_in_order(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	uint32_t b, dir;

	(void)state;
	b = add(s, 0, "b", DIRECTORY);
	add(s, 0, "b.c", FILE_MODE);
	add(s, b, "\xff", FILE_MODE);
	dir = add(s, b, "dir", DIRECTORY);
	add(s, 0, "a", FILE_MODE);
	add(s, b, "di", FILE_MODE);
	add(s, dir, "x", FILE_MODE);
	add(s, b, "Z", S_IFLNK | 0777);
	assert_int_equal(source_finish(s, NULL), 0);
	assert_order(s, "0:0 . 0:1 a 0:2 b 0:3 b/Z 0:4 b/di 0:5 b/dir 0:6 b/dir/x 0:7 b/\\377 0:8 b.c");
	b = at_path(s, "b");
	assert_int_equal(source_lookup(s, b, "dir", 3), s->inodes[at_path(s, "b/dir")].name);
	assert_int_equal(source_lookup(s, b, "dirt", 4), SOURCE_NONE);
	assert_int_equal(source_lookup(s, b, "d", 1), SOURCE_NONE);
	assert_int_equal(s->entries[source_lookup(s, b, "\xff", 1)].index, 5);
	source_destroy(s);
}

static uint32_t shuffle(uint32_t *random)
{
	*random = *random * 1664525u + 1013904223u;
	return *random >> 8;
}

/* Many names in many directories, in random order: the result is compared with that of qsort(). */
static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void any_order_becomes_the_same(void **state)
{
	enum {
		DIRS = 7,
		NAMES = 5000
	};
	static char *names[DIRS][NAMES];
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	uint32_t dirs[DIRS], n[DIRS] = { 0 }, random = 1;

	(void)state;
	for (unsigned i = 0; i < DIRS; i++) {
		char name[2] = { (char)('g' - i), 0 };

		dirs[i] = add(s, 0, name, DIRECTORY);
	}
	for (unsigned i = 0; i < 20000; i++) {
		const unsigned d = shuffle(&random) % DIRS;
		char name[64];

		/* Some names have long common prefixes, others do not. */
		snprintf(name, sizeof(name), d < 3 ? "the same beginning %u" : "%u", shuffle(&random));
		if (n[d] == NAMES || source_find(s, dirs[d], name, strlen(name)) != SOURCE_NONE)
			continue;
		add(s, dirs[d], name, FILE_MODE);
		names[d][n[d]++] = strdup(name);
	}
	assert_int_equal(source_finish(s, NULL), 0);
	for (unsigned d = 0; d < DIRS; d++) {
		const char name[2] = { (char)('g' - d), 0 };
		const struct source_inode *dir = &s->inodes[at_path(s, name)];

		assert_int_equal(dir->count, n[d]);
		qsort(names[d], n[d], sizeof(names[d][0]), by_name);
		for (uint32_t i = 0; i < n[d]; i++) {
			const struct source_entry *e = &s->entries[dir->first + i];

			assert_string_equal(e->name, names[d][i]);
			assert_int_equal(e->index, i + 2);
			assert_ptr_equal(&s->inodes[e->parent], dir);
			assert_int_equal(s->inodes[e->inode].name, dir->first + i);
			if (i)
				assert_true(s->entries[e[-1].by_hash].hash <= s->entries[e->by_hash].hash);
			free(names[d][i]);
		}
	}
	source_destroy(s);
}

static void equal_hashes_follow_names(void **state)
{
	/* Two pairs of these have equal hashes. */
	static const char *const names[] = { "XLuSDQlg", "yiFTiSgK", "z", "TYO0cfmu", "IxMtKSXu" };
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	uint32_t seen = 0, equal = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		add(s, 0, names[i], FILE_MODE);
	assert_int_equal(source_finish(s, NULL), 0);
	for (uint32_t i = 0; i < s->num_entries; i++) {
		const uint32_t at = s->entries[i].by_hash;

		seen |= 1u << at;
		if (i && s->entries[s->entries[i - 1].by_hash].hash == s->entries[at].hash) {
			assert_true(s->entries[i - 1].by_hash < at);
			equal++;
		}
	}
	assert_int_equal(seen, 31);
	assert_int_equal(equal, 2);
	source_destroy(s);
}

static void depth_needs_no_stack(void **state)
{
	enum {
		DEPTH = 300000
	};
	struct btrkit_mkfs_source o = { .kind = BTRKIT_SOURCE_DIRECTORY };
	struct source *s = create(&o);
	uint32_t dir = 0;
	char path[16];

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		dir = add(s, dir, "d", DIRECTORY);
	add(s, 0, "e", FILE_MODE);
	assert_int_equal(source_finish(s, NULL), 0);
	for (uint32_t i = 0; i < s->num_inodes; i++) {
		assert_int_equal(s->inodes[i].number, i);
		assert_int_equal(s->in_order[i], i);
	}
	assert_int_equal(s->num_inodes, DEPTH + 2);
	source_path(s, DEPTH, path, sizeof(path));
	assert_string_equal(path, ".../d/d/d/d/d/d");
	source_destroy(s);
}

static void paths_are_cut_and_escaped(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	char buf[32];
	uint32_t dir, file;

	(void)state;
	dir = add(s, 0, "di\nr", DIRECTORY);
	file = add(s, dir, "a\\b\x1b", FILE_MODE);
	source_path(s, file, buf, sizeof(buf));
	assert_string_equal(buf, "di\\012r/a\\\\b\\033");
	for (size_t size = 1; size < sizeof(buf); size++) {
		memset(buf, 'x', sizeof(buf));
		source_path(s, file, buf, size);
		assert_true(strlen(buf) < size);
		assert_int_equal(buf[size], 'x');
	}
	source_destroy(s);
}

static void links_are_cut_by_subvolumes(void **state)
{
	static const struct btrkit_mkfs_subvolume subvolumes[] = { { "z/", true, false }, { "./a//b", false, true } };
	struct btrkit_mkfs_source o = { .subvolumes = subvolumes, .num_subvolumes = 2 };
	struct source *s = create(&o);
	const struct source_xattrs *x;
	uint32_t a, b, z, file;

	(void)state;
	a = add(s, 0, "a", DIRECTORY);
	z = add(s, 0, "z", DIRECTORY);
	b = add(s, a, "b", DIRECTORY);
	file = add(s, z, "first", FILE_MODE);
	assert_int_equal(source_add_xattr(s, file, "user.x", "1", 1, NULL), 0);
	linked(s, b, "second", file);
	linked(s, 0, "third", file);
	linked(s, z, "fourth", file);
	linked(s, 0, "fifth", file);
	assert_int_equal(source_finish(s, NULL), 0);
	assert_order(s, "0:0 . 0:1 a 0:2 fifth 1:0 a/b 1:1 a/b/second 2:0 z 2:1 z/first");
	assert_int_equal(s->cut_links, 2);
	assert_int_equal(s->num_subvolumes, 3);
	b = at_path(s, "a/b");
	file = at_path(s, "z/first");
	assert_int_equal(s->subvolumes[1].root, b);
	assert_true(s->subvolumes[1].is_default);
	assert_int_equal(s->subvolumes[1].parent, 0);
	assert_int_equal(s->subvolumes[1].entry, s->inodes[b].name);
	assert_true(s->subvolumes[2].readonly);
	assert_int_equal(s->inodes[file].nlink, 2);
	/* Contents are read under the first name only; all names share the attributes. */
	assert_int_equal(s->inodes[file].contents, s->in_order[2]);
	x = s->inodes[file].xattrs;
	assert_non_null(x);
	for (uint32_t i = s->in_order[2], n = 0;; i = s->inodes[i].next_sharing, n++) {
		if (i == SOURCE_NONE) {
			assert_int_equal(n, 3);
			break;
		}
		assert_int_equal(s->inodes[i].contents, s->in_order[2]);
		assert_ptr_equal(s->inodes[i].xattrs, x);
	}
	source_destroy(s);
}

static void flags_are_inherited(void **state)
{
	static const struct btrkit_mkfs_subvolume subvolumes[] = { { "d/sub", false, false } };
	static const struct btrkit_mkfs_inode_flags flags[] = {
		{ "d", true, false }, { "e/f", false, true }, { "e/dir", false, true }, { "e/another", true, false }
	};
	struct btrkit_mkfs_source o = { .kind = BTRKIT_SOURCE_DIRECTORY,
					.subvolumes = subvolumes,
					.num_subvolumes = 1,
					.inode_flags = flags,
					.num_inode_flags = 4 };
	struct source *s = create(&o);
	uint32_t d = add(s, 0, "d", DIRECTORY), e = add(s, 0, "e", DIRECTORY), i;

	(void)state;
	assert_int_equal(s->inodes[d].flags, SOURCE_NODATACOW);
	assert_int_equal(s->inodes[add(s, d, "f", FILE_MODE)].flags, SOURCE_NODATACOW | SOURCE_NODATASUM);
	i = add(s, d, "deeper", DIRECTORY);
	assert_int_equal(s->inodes[add(s, i, "f", FILE_MODE)].flags, SOURCE_NODATACOW | SOURCE_NODATASUM);
	i = add(s, d, "sub", DIRECTORY);
	assert_int_equal(s->inodes[i].flags, 0);
	assert_int_equal(s->inodes[add(s, i, "f", FILE_MODE)].flags, 0);
	assert_int_equal(s->inodes[e].flags, 0);
	assert_int_equal(s->inodes[add(s, e, "f", FILE_MODE)].flags, SOURCE_NODATASUM);
	i = add(s, e, "dir", DIRECTORY);
	assert_int_equal(s->inodes[add(s, i, "f", FILE_MODE)].flags, SOURCE_NODATASUM);
	/* Flags are inherited by the first name, and flags of other names are added. */
	i = add(s, 0, "z", FILE_MODE);
	linked(s, d, "aaa", i);
	linked(s, e, "zzz", add(s, e, "yyy", FILE_MODE));
	linked(s, e, "another", add(s, e, "one", FILE_MODE));
	assert_int_equal(source_finish(s, NULL), 0);
	assert_int_equal(s->inodes[at_path(s, "z")].flags, SOURCE_NODATACOW | SOURCE_NODATASUM);
	assert_int_equal(s->inodes[at_path(s, "e/zzz")].flags, 0);
	assert_int_equal(s->inodes[at_path(s, "e/one")].flags, SOURCE_NODATACOW | SOURCE_NODATASUM);
	source_destroy(s);
}

static void options_leave_out(void **state)
{
	static const char *const exclude[] = { "*.o", "usr/*/doc", "[0-9]" };
	static const char *const with[] = { "system.posix_*" }, *const without[] = { "user.*" };
	struct btrkit_mkfs_source o = { .flags = BTRKIT_SOURCE_NO_HOST_XATTRS,
					.exclude = exclude,
					.num_exclude = 3,
					.with_xattrs = with,
					.num_with_xattrs = 1,
					.without_xattrs = without,
					.num_without_xattrs = 1 };
	static const char acl[28] = { 2, 0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 4, 0, 5, 0, 0, 0, 0, 0, 32 };
	static const char capability[20] = { 1, 0, 0, 2 };
	struct source *s = create(&o);
	uint32_t usr = add(s, 0, "usr", DIRECTORY), share, got = 99, file;

	(void)state;
	share = add(s, usr, "share", DIRECTORY);
	assert_int_equal(try_add(s, share, "doc", DIRECTORY, &got, NULL), 1);
	assert_int_equal(try_add(s, share, "x.o", FILE_MODE, &got, NULL), 1);
	assert_int_equal(try_add(s, 0, "7", FILE_MODE, &got, NULL), 1);
	assert_int_equal(got, 99);
	add(s, usr, "doc", DIRECTORY);
	file = add(s, share, "doc2", FILE_MODE);
	assert_int_equal(try_link(s, 0, "y.o", file, NULL), 1);
	assert_int_equal(source_add_xattr(s, file, "user.a", "1", 1, NULL), 0);
	assert_int_equal(source_add_xattr(s, file, "security.selinux", "1", 1, NULL), 0);
	assert_int_equal(source_add_xattr(s, file, "security.capability", capability, 20, NULL), 0);
	assert_int_equal(source_add_xattr(s, file, "system.posix_acl_access", acl, 28, NULL), 0);
	assert_int_equal(source_add_xattr(s, file, "system.other", "1", 1, NULL), 0);
	assert_int_equal(source_finish(s, NULL), 0);
	file = at_path(s, "usr/share/doc2");
	assert_int_equal(s->inodes[file].xattrs->n, 2);
	assert_string_equal(s->inodes[file].xattrs->at[0].name, "security.capability");
	assert_string_equal(s->inodes[file].xattrs->at[1].name, "system.posix_acl_access");
	assert_int_equal(s->inodes[file].xattrs->at[1].value_len, 28);
	source_destroy(s);
}

static void equal_attributes_are_kept_once(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	uint32_t inodes[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		char name[2] = { (char)('a' + i), 0 };

		inodes[i] = add(s, 0, name, FILE_MODE);
		assert_int_equal(source_add_xattr(s, inodes[i], i ? "user.b" : "user.a", "value", 5, NULL), 0);
		assert_int_equal(source_add_xattr(s, inodes[i], i ? "user.a" : "user.b", i == 2 ? "Value" : "value", 5,
						  NULL),
				 0);
	}
	assert_int_equal(source_finish(s, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		inodes[i] = at_path(s, (const char *const[]){ "a", "b", "c" }[i]);
	assert_ptr_equal(s->inodes[inodes[0]].xattrs, s->inodes[inodes[1]].xattrs);
	assert_ptr_not_equal(s->inodes[inodes[0]].xattrs, s->inodes[inodes[2]].xattrs);
	assert_memory_equal(s->inodes[inodes[2]].xattrs->at[0].value, "Value", 5);
	source_destroy(s);
}

static void assert_error(int ret, int wanted, struct btrkit_error *err, const char *message)
{
	assert_int_equal(ret, wanted);
	assert_int_equal(err->err, wanted);
	assert_string_equal(err->message, message);
	*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
}

static void what_cannot_be_is_refused(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source_attr a = { .mode = S_IFLNK | 0777 };
	uint32_t dir = add(s, 0, "dir", DIRECTORY), file = add(s, dir, "file", FILE_MODE), got;
	char name[257], value[201] = "";

	(void)state;
	assert_error(try_add(s, dir, "..", FILE_MODE, &got, &err), -EINVAL, &err, "dir/..: invalid file name");
	assert_error(try_add(s, dir, "", FILE_MODE, &got, &err), -EINVAL, &err, "dir/: invalid file name");
	assert_error(try_add(s, 0, "a/b", FILE_MODE, &got, &err), -EINVAL, &err, "a/b: invalid file name");
	assert_error(try_add(s, file, "a", FILE_MODE, &got, &err), -EINVAL, &err,
		     "dir/file: not a directory, but has entries");
	assert_error(try_add(s, 0, "x", 0644, &got, &err), -EINVAL, &err,
		     "x: unknown file type");
	a = (struct source_attr){ .mode = S_IFIFO | 0644, .gid = UINT32_MAX };
	assert_error(source_add(s, 0, "p", 1, &a, &got, &err), -EINVAL, &err, "p: invalid uid or gid");
	a = (struct source_attr){ .mode = S_IFLNK | 0777 };
	assert_error(try_link(s, 0, "d2", dir, &err), -EINVAL, &err, "d2: hard link to a directory");
	memset(name, 'n', 256);
	name[256] = '\0';
	assert_int_equal(try_add(s, 0, name, FILE_MODE, &got, &err), -EINVAL);
	assert_non_null(strstr(err.message, "n: name is too long: 256 bytes, maximum is 255"));
	name[255] = '\0';
	add(s, 0, name, FILE_MODE);
	assert_error(source_add(s, 0, "l", 1, &a, &got, &err), -EINVAL, &err, "l: symbolic link without a target");
	name[101] = '\0';
	a.text = name;
	assert_error(source_add(s, 0, "l", 1, &a, &got, &err), -ENAMETOOLONG, &err,
		     "l: target of symbolic link is too long: 101 bytes, maximum is 100");
	name[100] = '\0';
	assert_int_equal(source_add(s, 0, "l", 1, &a, &got, &err), 0);
	assert_error(source_add_xattr(s, file, "user.12345", value, 191, &err), -E2BIG, &err,
		     "dir/file: attribute user.12345 is too large: 191 bytes, maximum is 190; "
		     "--without-xattr leaves it out");
	assert_int_equal(source_add_xattr(s, file, "user.12345", value, 190, &err), 0);
	assert_int_equal(source_add_xattr(s, file, "user.12345", value, 1, &err), 0);
	assert_error(source_finish(s, &err), -EINVAL, &err, "dir/file: duplicate attribute user.12345");
	source_destroy(s);
}

static void a_name_twice_is_refused(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = create(&o);
	uint32_t dir = add(s, 0, "dir", DIRECTORY);

	(void)state;
	for (char c = 'z'; c >= 'a'; c--) {
		char name[2] = { c, 0 };

		add(s, 0, name, FILE_MODE);
		add(s, dir, name, FILE_MODE);
	}
	add(s, dir, "k", FILE_MODE);
	assert_error(source_finish(s, &err), -EEXIST, &err, "dir/k: duplicate entry");
	source_destroy(s);
}

static void names_of_a_file_are_counted(void **state)
{
	struct btrkit_mkfs_source o = { 0 };
	struct source *s = create(&o);
	uint32_t file = add(s, 0, "file", FILE_MODE);
	char name[16];

	(void)state;
	/* More than link(2) makes. */
	for (unsigned i = 1; i < 70000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		linked(s, 0, name, file);
	}
	assert_int_equal(s->inodes[file].nlink, 70000);
	source_destroy(s);
}

static void assert_option_refused(struct btrkit_mkfs_source *o, int ret, const char *message)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = NULL;

	o->kind = BTRKIT_SOURCE_DIRECTORY;
	o->path = "test";
	assert_error(source_create(o, &limits, &s, &err), ret, &err, message);
	assert_null(s);
}

static void options_are_checked(void **state)
{
	static const struct btrkit_mkfs_subvolume twice[] = { { "a", false, false }, { "/a/", false, false } },
						  top[] = { { ".", false, false } },
						  up[] = { { "a/../b", false, false } },
						  defaults[] = { { "a", false, true }, { "b", false, true } };
	static const struct btrkit_mkfs_inode_flags flags[] = { { "a", true, false }, { "a/.", true, false } };
	struct btrkit_mkfs_source o = { .subvolumes = twice, .num_subvolumes = 2 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s;

	(void)state;
	assert_option_refused(&o, -EINVAL, "/a/: subvolume is specified twice");
	o = (struct btrkit_mkfs_source){ .flags = BTRKIT_SOURCE_ROOT_OWNER, .root_gid = UINT32_MAX };
	assert_option_refused(&o, -EINVAL, "invalid uid or gid 4294967295");
	o = (struct btrkit_mkfs_source){ .subvolumes = top, .num_subvolumes = 1 };
	assert_option_refused(&o, -EINVAL, ".: the top directory is always a subvolume");
	o = (struct btrkit_mkfs_source){ .subvolumes = up, .num_subvolumes = 1 };
	assert_option_refused(&o, -EINVAL, "a/../b: path must not contain ..");
	o = (struct btrkit_mkfs_source){ .subvolumes = defaults, .num_subvolumes = 2 };
	assert_option_refused(&o, -EINVAL, "b: more than one default subvolume");
	o = (struct btrkit_mkfs_source){ .inode_flags = flags, .num_inode_flags = 2 };
	assert_option_refused(&o, -EINVAL, "a/.: flags are specified twice");
	o = (struct btrkit_mkfs_source){ .flags = 0x100 };
	assert_option_refused(&o, -EINVAL, "source with unknown flags 0x100");
	o = (struct btrkit_mkfs_source){ .inode_flags = &(struct btrkit_mkfs_inode_flags){ 0 }, .num_inode_flags = 1 };
	assert_option_refused(&o, -EINVAL, "inode flags without a path");
	o = (struct btrkit_mkfs_source){ .subvolumes = &(struct btrkit_mkfs_subvolume){ 0 }, .num_subvolumes = 1 };
	assert_option_refused(&o, -EINVAL, "subvolume without a path");
	o = (struct btrkit_mkfs_source){ .inode_flags = flags, .num_inode_flags = 1 };
	s = create(&o);
	assert_error(source_finish(s, &err), -ENOENT, &err, "a: no such file in the source");
	source_destroy(s);
	o = (struct btrkit_mkfs_source){ .subvolumes = defaults, .num_subvolumes = 1 };
	s = create(&o);
	assert_error(try_add(s, 0, "a", FILE_MODE, &(uint32_t){ 0 }, &err), -EINVAL, &err,
		     "a: cannot be a subvolume: not a directory");
	source_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_put_in_order),
		cmocka_unit_test(any_order_becomes_the_same),
		cmocka_unit_test(equal_hashes_follow_names),
		cmocka_unit_test(depth_needs_no_stack),
		cmocka_unit_test(paths_are_cut_and_escaped),
		cmocka_unit_test(links_are_cut_by_subvolumes),
		cmocka_unit_test(flags_are_inherited),
		cmocka_unit_test(options_leave_out),
		cmocka_unit_test(equal_attributes_are_kept_once),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(a_name_twice_is_refused),
		cmocka_unit_test(names_of_a_file_are_counted),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
