// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each operation that changes files, in two or three commits; some kinds are continued after the crash. */
#include "txn_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <linux/fs.h>

#include "modify_doing.h"
#include "modify_large.h"
#include "modify_plans.h"

#define FILE_MODE (S_IFREG | 0644)
#define DIR_MODE (S_IFDIR | 0755)
/* Makes a file of separate sectors, with holes between them. */
static void make_pieces(struct doing *d, const char *path, unsigned n)
{
	const struct btrkit_found f = make(d, path, FILE_MODE);

	for (unsigned i = 0; i < n; i++)
		put_at(d, &f, (uint64_t)i * 8 * KIB, 4 * KIB, 2 * i, 0);
}

static void make_files(struct doing *d)
{
	make(d, "dir", DIR_MODE);
	make(d, "dir/empty", DIR_MODE);
	make(d, "other", DIR_MODE);
	make(d, "dir/small", FILE_MODE);
	put(d, "dir/small", 0, 700, 1, 0);
	make(d, "dir/file", FILE_MODE);
	put(d, "dir/file", 0, 40 * KIB + 123, 2, 0);
	make(d, "dir/packed", FILE_MODE);
	put(d, "dir/packed", 0, 200 * KIB, 3, 1);
	make(d, "dir/plain", FILE_MODE);
	set_flags(d, "dir/plain", FS_NOCOW_FL, FS_NOCOW_FL);
	put(d, "dir/plain", 0, 32 * KIB, 4, 0);
	make(d, "dir/kept", FILE_MODE);
	keep(d, "dir/kept", 0, 96 * KIB, 0);
	put(d, "dir/kept", 8 * KIB, 20 * KIB, 6, 0);
	make_pieces(d, "pieces", 40);
	make_symlink(d, "dir/link", "file");
	link_to(d, "dir/file", "other/file");
	set_xattr(d, "dir/file", "user.one", 30);
	set_xattr(d, "dir/file", "user.two", 300);
	set_acl(d, "other", "system.posix_acl_default", 5);
}

/* Base for the kinds: directories, files of each form, a subvolume and a snapshot. */
int prepare(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);
	char path[64];

	make_files(&d);
	doing_commit(&d);
	subvolume(&d, "sub");
	make(&d, "sub/dir", DIR_MODE);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(path, sizeof(path), "sub/dir/file number %u", i);
		make(&d, path, FILE_MODE);
		put(&d, path, 0, i * 97, i, 0);
	}
	make(&d, "sub/kept", FILE_MODE);
	keep(&d, "sub/kept", 0, 64 * KIB, 0);
	doing_commit(&d);
	snapshot(&d, "sub", "snap", false);
	put(&d, "sub/dir/file number 7", 0, 30 * KIB, 8, 0);
	return doing_end(&d);
}

/* Continues after a crash: open the state, change it and commit. */
int go_on(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	make(&d, "after a crash", DIR_MODE);
	make(&d, "after a crash/file", FILE_MODE);
	put(&d, "after a crash/file", 0, 20 * KIB, 10, 0);
	make(&d, "after a crash/small", FILE_MODE);
	put(&d, "after a crash/small", 0, 100, 11, 0);
	set_xattr(&d, "after a crash", "user.after", 50);
	return doing_end(&d);
}

/* A filesystem with that base that has other files already. */
static int prepare_files(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	make_files(&d);
	/* The image may contain one already. */
	subvolume(&d, "sub");
	doing_allow(&d, -EEXIST);
	make(&d, "sub/dir", DIR_MODE);
	doing_allow(&d, -EEXIST);
	snapshot(&d, "sub", "snap", false);
	doing_allow(&d, -EEXIST);
	return doing_end(&d);
}

static int create(struct btrkit_fs *fs, struct btrkit_error *err)
{
	static const uint32_t modes[] = { FILE_MODE, S_IFCHR | 0600, S_IFBLK | 0600, S_IFIFO | 0600, S_IFSOCK | 0600,
					  S_IFREG | S_ISUID | 0755, DIR_MODE };
	struct doing d = doing_start(fs, err);
	char path[64];

	for (unsigned i = 0; i < 21; i++) {
		snprintf(path, sizeof(path), "%s/new %u", i % 2 ? "dir" : "other", i);
		make(&d, path, modes[i % 7]);
		if (i % 10 == 9)
			doing_commit(&d);
	}
	make_symlink(&d, "other/way", "../dir/file");
	return doing_end(&d);
}

static int directories(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	make(&d, "dir/a", DIR_MODE);
	make(&d, "dir/a/b", DIR_MODE);
	make(&d, "dir/a/b/c", DIR_MODE);
	doing_commit(&d);
	drop_dir(&d, "dir/a/b/c");
	drop_dir(&d, "dir/empty");
	doing_commit(&d);
	drop_dir(&d, "dir/a/b");
	drop_dir(&d, "dir/a");
	make(&d, "dir/empty", DIR_MODE);
	return doing_end(&d);
}

/* More names than fit into one INODE_REF, so that INODE_EXTREFs are made. */
static int links(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct btrkit_fs_info info;
	struct doing d = doing_start(fs, err);
	char path[270];
	unsigned n;

	btrkit_fs_get_info(fs, &info);
	n = info.nodesize / 250 + 3;
	for (unsigned i = 0; i < n + 5; i++) {
		const int len = snprintf(path, sizeof(path), "other/%u ", i);

		memset(path + len, 'n', (size_t)(250 - len));
		path[250] = '\0';
		link_to(&d, "dir/small", path);
		if (i == n - 6)
			doing_commit(&d);
	}
	doing_commit(&d);
	for (unsigned i = 2; i < n + 5; i += 3) {
		const int len = snprintf(path, sizeof(path), "other/%u ", i);

		memset(path + len, 'n', (size_t)(250 - len));
		path[250] = '\0';
		drop(&d, path);
	}
	return doing_end(&d);
}

static int unlinks(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	drop(&d, "dir/small");
	drop(&d, "dir/file");
	drop(&d, "dir/link");
	doing_commit(&d);
	drop(&d, "other/file");
	drop(&d, "dir/packed");
	drop(&d, "dir/plain");
	doing_commit(&d);
	drop(&d, "dir/kept");
	drop(&d, "pieces");
	drop(&d, "sub/dir/file number 7");
	return doing_end(&d);
}

static int renames(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	move(&d, "dir/small", "dir/a much longer name than before", 0);
	move(&d, "dir/packed", "other/packed", BTRKIT_RENAME_NOREPLACE);
	move(&d, "dir/link", "dir/kept", BTRKIT_RENAME_EXCHANGE);
	doing_commit(&d);
	move(&d, "other/packed", "dir/file", 0);
	move(&d, "dir", "other", BTRKIT_RENAME_EXCHANGE);
	doing_commit(&d);
	/* Replace a file that has many items. */
	move(&d, "dir/file", "pieces", 0);
	make(&d, "new", DIR_MODE);
	move(&d, "new", "other/empty", 0);
	return doing_end(&d);
}

static int write_small(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	make(&d, "new", FILE_MODE);
	put(&d, "new", 0, 1000, 20, 0);
	put(&d, "dir/small", 100, 1500, 21, 0);
	doing_commit(&d);
	put(&d, "new", 1000, 3000, 22, 0);
	put(&d, "dir/small", 0, 10, 23, 0);
	doing_commit(&d);
	cut(&d, "dir/small", 5);
	put(&d, "new", 500, 100, 24, 0);
	return doing_end(&d);
}

static int write_large(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	put(&d, "dir/file", 10 * KIB + 7, 9 * KIB, 30, 0);
	put(&d, "pieces", 100 * KIB, 50 * KIB, 32, 0);
	doing_commit(&d);
	put(&d, "dir/file", 100 * KIB, 150 * KIB, 34, 0);
	put(&d, "sub/dir/file number 40", 1000, 70 * KIB, 36, 0);
	doing_commit(&d);
	put(&d, "dir/file", 0, 250 * KIB, 38, 0);
	return doing_end(&d);
}

static int write_packed(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	for (uint8_t codec = 1; codec <= 3; codec++) {
		make(&d, "new", FILE_MODE);
		put(&d, "new", 0, 150 * KIB, 41, codec);
		/* This one is incompressible. */
		put(&d, "new", 300 * KIB, 30 * KIB, 42, codec);
		put(&d, "dir/packed", codec * 30 * KIB + 100, 33 * KIB, 43, codec);
		doing_commit(&d);
		if (codec == 1)
			make(&d, "dir/new", FILE_MODE);
		put(&d, "dir/new", 0, 1900, 45, codec);
		move(&d, "new", "dir/new", 0);
	}
	return doing_end(&d);
}

/* Committed data must not be overwritten even with nodatacow. */
static int write_plain(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	put(&d, "dir/plain", 4 * KIB, 8 * KIB, 50, 0);
	doing_commit(&d);
	put(&d, "dir/plain", 0, 64 * KIB, 52, 0);
	make(&d, "dir/new", FILE_MODE);
	set_flags(&d, "dir/new", FS_NOCOW_FL, FS_NOCOW_FL);
	put(&d, "dir/new", 0, 10, 54, 0);
	doing_commit(&d);
	put(&d, "dir/plain", 3 * KIB, 30 * KIB, 56, 0);
	put(&d, "dir/new", 5, 9 * KIB, 58, 0);
	return doing_end(&d);
}

static int preallocs(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	put(&d, "dir/kept", 40 * KIB, 9 * KIB, 60, 0);
	keep(&d, "dir/file", 0, 300 * KIB, BTRKIT_PREALLOC_KEEP_SIZE);
	doing_commit(&d);
	put(&d, "dir/file", 38 * KIB, 60 * KIB, 62, 0);
	put(&d, "dir/kept", 10 * KIB, 50 * KIB, 64, 0);
	/* Shared with a snapshot, where the preallocated range must still read as zeros. */
	put(&d, "sub/kept", 4 * KIB, 12 * KIB, 66, 0);
	put(&d, "snap/kept", 8 * KIB, 12 * KIB, 68, 0);
	doing_commit(&d);
	put(&d, "dir/kept", 60 * KIB, 12 * KIB, 70, 0);
	punch(&d, "dir/kept", 64 * KIB, 4 * KIB);
	cut(&d, "dir/file", 50 * KIB);
	put(&d, "sub/kept", 20 * KIB, 12 * KIB, 72, 0);
	return doing_end(&d);
}

static int truncates(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	cut(&d, "dir/file", 9 * KIB + 5);
	cut(&d, "dir/packed", 70 * KIB + 1);
	cut(&d, "dir/small", 3);
	doing_commit(&d);
	cut(&d, "dir/file", 1u << 30);
	cut(&d, "pieces", 17 * 8 * KIB + 100);
	cut(&d, "dir/kept", 10 * KIB);
	doing_commit(&d);
	cut(&d, "dir/file", 0);
	cut(&d, "dir/packed", 1000);
	cut(&d, "dir/small", 9000);
	return doing_end(&d);
}

static int punches(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	punch(&d, "dir/file", 5 * KIB, 20 * KIB);
	punch(&d, "dir/packed", 100 * KIB, 50 * KIB);
	doing_commit(&d);
	punch(&d, "pieces", 0, 100 * KIB);
	punch(&d, "dir/plain", 1, 20000);
	punch(&d, "dir/small", 10, 20);
	doing_commit(&d);
	punch(&d, "dir/packed", 0, 1u << 20);
	punch(&d, "dir/kept", 16 * KIB, 16 * KIB);
	return doing_end(&d);
}

static int clones(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	share(&d, "dir/file", 0, 40 * KIB, "dir/packed", 4 * KIB);
	share(&d, "dir/packed", 100 * KIB, 40 * KIB, "dir/packed", 300 * KIB);
	doing_commit(&d);
	make(&d, "sub/new", FILE_MODE);
	share(&d, "dir/packed", 0, 0, "sub/new", 0);
	share(&d, "dir/small", 0, 0, "sub/dir/file number 2", 0);
	share(&d, "dir/kept", 0, 0, "dir/file", 0);
	doing_commit(&d);
	share(&d, "pieces", 0, 200 * KIB, "snap/dir/file number 3", 0);
	put(&d, "dir/packed", 310 * KIB, 20 * KIB, 80, 0);
	drop(&d, "pieces");
	return doing_end(&d);
}

static int xattrs(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);
	char name[32];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "user.number %u", i);
		set_xattr(&d, i % 2 ? "dir" : "dir/file", name, i * 20);
	}
	set_xattr(&d, "dir/file", "user.large", 3000);
	doing_commit(&d);
	set_xattr(&d, "dir/file", "user.one", 200);
	drop_xattr(&d, "dir/file", "user.two");
	for (unsigned i = 0; i < 40; i += 3) {
		snprintf(name, sizeof(name), "user.number %u", i);
		drop_xattr(&d, i % 2 ? "dir" : "dir/file", name);
	}
	doing_commit(&d);
	set_xattr(&d, "dir/link", "trusted.link", 10);
	drop_xattr(&d, "dir/file", "user.large");
	return doing_end(&d);
}

static int acls(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct btrkit_attr mode = { .mask = BTRKIT_ATTR_MODE, .mode = 0710 };
	struct doing d = doing_start(fs, err);

	set_acl(&d, "dir/file", "system.posix_acl_access", 6);
	set_acl(&d, "dir", "system.posix_acl_default", 4);
	doing_commit(&d);
	make(&d, "dir/heir", DIR_MODE);
	make(&d, "other/heir", FILE_MODE);
	set_attr(&d, "dir/file", &mode);
	doing_commit(&d);
	drop_xattr(&d, "dir/file", "system.posix_acl_access");
	set_acl(&d, "dir/heir", "system.posix_acl_default", 7);
	drop_xattr(&d, "dir", "system.posix_acl_default");
	return doing_end(&d);
}

static int attributes(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct btrkit_attr mode = { .mask = BTRKIT_ATTR_MODE, .mode = 04711 };
	const struct btrkit_attr owner = { .mask = BTRKIT_ATTR_UID | BTRKIT_ATTR_GID, .uid = 1234, .gid = 5678 };
	const struct btrkit_attr times = { .mask = BTRKIT_ATTR_ATIME | BTRKIT_ATTR_MTIME,
					   .atime = { -5, 999999999 }, .mtime = { 1ll << 33, 1 } };
	struct doing d = doing_start(fs, err);

	set_attr(&d, "dir/file", &mode);
	set_attr(&d, "dir", &times);
	set_flags(&d, "dir/small", FS_NOATIME_FL | FS_NODUMP_FL, FS_NOATIME_FL | FS_NODUMP_FL);
	doing_commit(&d);
	set_attr(&d, "dir/file", &owner);
	set_attr(&d, "dir/link", &times);
	set_flags(&d, "dir/small", FS_IMMUTABLE_FL, FS_IMMUTABLE_FL);
	set_flags(&d, "other", FS_COMPR_FL, FS_COMPR_FL);
	doing_commit(&d);
	set_flags(&d, "dir/small", 0, FS_IMMUTABLE_FL | FS_NODUMP_FL);
	set_attr(&d, "sub/dir", &owner);
	drop_xattr(&d, "other", "btrfs.compression");
	return doing_end(&d);
}

static int subvolumes(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	subvolume(&d, "dir/new");
	make(&d, "dir/new/file", FILE_MODE);
	put(&d, "dir/new/file", 0, 10 * KIB, 90, 0);
	snapshot(&d, "sub", "sub/snap", true);
	doing_commit(&d);
	snapshot(&d, "", "dir/all", false);
	put(&d, "dir/file", 0, 10 * KIB, 92, 0);
	if (!d.ret)
		d.ret = btrkit_txn_subvolume_set_default(d.txn, at(&d, "sub").root, err);
	doing_commit(&d);
	if (!d.ret)
		d.ret = btrkit_txn_subvolume_set_read_only(d.txn, at(&d, "snap").root, true, false, err);
	if (!d.ret)
		d.ret = btrkit_txn_subvolume_set_read_only(d.txn, at(&d, "sub/snap").root, false, false, err);
	put(&d, "sub/snap/dir/file number 1", 0, 6 * KIB, 94, 0);
	return doing_end(&d);
}

static int deletions(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	delete_subvolume(&d, "snap");
	doing_commit(&d);
	put(&d, "sub/dir/file number 7", 4 * KIB, 4 * KIB, 96, 0);
	subvolume(&d, "snap");
	doing_commit(&d);
	delete_subvolume(&d, "sub");
	delete_subvolume(&d, "snap");
	return doing_end(&d);
}

/* Several commits, each of which frees what the previous one wrote. */
static int many_commits(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	for (unsigned i = 0; i < 7; i++) {
		put(&d, "dir/file", 0, 8 * KIB, 2 * i, 0);
		set_xattr(&d, "dir", "user.round", i);
		move(&d, i % 2 ? "other/name" : "dir/small", i % 2 ? "dir/small" : "other/name", 0);
		if (i < 6)
			doing_commit(&d);
	}
	return doing_end(&d);
}

#define PLAN(number, operations, between)                                          \
	static int plan_##number(struct btrkit_fs *fs, struct btrkit_error *err)   \
	{                                                                          \
		return plan_run(fs, number, operations, between, err);             \
	}

PLAN(1, 60, 0)
PLAN(2, 60, 0)
PLAN(3, 120, 0)
PLAN(4, 200, 0)
PLAN(5, 60, 0)
PLAN(6, 60, 0)
/* With extra commits at reservations. */
PLAN(11, 8, 1)
PLAN(12, 20, 3)
PLAN(13, 30, 5)
PLAN(14, 12, 1)

static int threads_1(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return plan_run_threads(fs, 21, 0, err);
}

static int threads_continued(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return plan_run_threads(fs, 61, 5, err);
}

static int plan_1_continued(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return plan_run_continued(fs, 1, 60, err);
}

static int plan_3_continued(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return plan_run_continued(fs, 3, 60, err);
}

static int threads_2(struct btrkit_fs *fs, struct btrkit_error *err)
{
	return plan_run_threads(fs, 41, 0, err);
}

#define MIB (1ull << 20)

static const struct made made_4k = { BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, 1, 128 * MIB, .nodesize = 4096 };
static const struct made made_16k = { BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, 1, 128 * MIB, .nodesize = 16384 };
static const struct made made_64k = { BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, 1, 160 * MIB, .nodesize = 65536 };

/* Each kind runs with one node size in every run, and with all node sizes in the deep run. */
#define KIND_4K(what, fn) { what ", 4K", NULL, fn, prepare, .made = &made_4k, .after = go_on
#define KIND_16K(what, fn) { what ", 16K", NULL, fn, prepare, .made = &made_16k, .after = go_on
#define KIND_64K(what, fn) { what ", 64K", NULL, fn, prepare, .made = &made_64k, .after = go_on
#define OFTEN_4K(what, fn) KIND_4K(what, fn) }, KIND_16K(what, fn), .deep = true }, KIND_64K(what, fn), .deep = true }
#define OFTEN_16K(what, fn) KIND_16K(what, fn) }, KIND_4K(what, fn), .deep = true }, KIND_64K(what, fn), .deep = true }
#define OFTEN_64K(what, fn) KIND_64K(what, fn) }, KIND_4K(what, fn), .deep = true }, KIND_16K(what, fn), .deep = true }
#define AFTER_CRASH(what, fn)                                              \
	KIND_4K(what, fn), .behind = true }, KIND_16K(what, fn), .behind = true, .deep = true }, \
	KIND_64K(what, fn), .behind = true, .deep = true }

#define LARGE(name, fn, size) { name, NULL, fn, prepare_large, .made = &size, .after = go_on
#define FULL(name, fn, with, size) { name, NULL, fn, with, .made = &size, .after = go_on_full
#define THREADS(name, fn, size) { name, NULL, fn, prepare, .made = &size, .after = go_on, .threads = true
#define STEPS(name, size) { name, NULL, deletion_in_steps, prepare, .made = &size, .after = go_on_cleaning

const struct kind kinds[] = {
	OFTEN_4K("create", create),
	OFTEN_16K("directories", directories),
	OFTEN_4K("links", links),
	OFTEN_64K("unlink", unlinks),
	OFTEN_4K("rename", renames),
	OFTEN_16K("write, inline", write_small),
	OFTEN_4K("write, regular", write_large),
	KIND_16K("write, compressed", write_packed), .faults = true },
	KIND_4K("write, compressed", write_packed), .deep = true },
	KIND_64K("write, compressed", write_packed), .deep = true },
	OFTEN_4K("write, nodatacow", write_plain),
	OFTEN_16K("prealloc", preallocs),
	OFTEN_4K("truncate", truncates),
	OFTEN_64K("punch", punches),
	OFTEN_4K("clone", clones),
	OFTEN_16K("xattrs", xattrs),
	OFTEN_64K("ACLs", acls),
	OFTEN_16K("attributes", attributes),
	OFTEN_4K("subvolumes", subvolumes),
	KIND_16K("subvolumes deleted", deletions), .faults = true },
	KIND_4K("subvolumes deleted", deletions), .deep = true },
	KIND_64K("subvolumes deleted", deletions), .deep = true },
	OFTEN_4K("many commits", many_commits),
	LARGE("large files, 4K", large_files, made_4k), .faults = true },
	LARGE("large files, 16K", large_files, made_16k), .deep = true },
	LARGE("large files, 64K", large_files, made_64k), .deep = true },
	LARGE("a large file truncated, 4K", large_truncates, made_4k), .deep = true },
	LARGE("a large file truncated, 16K", large_truncates, made_16k) },
	LARGE("a large file truncated, 64K", large_truncates, made_64k), .deep = true },
	STEPS("a subvolume deleted in steps, 4K", made_4k) },
	STEPS("a subvolume deleted in steps, 16K", made_16k), .deep = true },
	STEPS("a subvolume deleted in steps, 64K", made_64k), .deep = true },
	FULL("full of data, 4K", full_of_data, prepare_full, made_4k) },
	FULL("full of data, 16K", full_of_data, prepare_full, made_16k), .deep = true },
	FULL("full of data, 64K", full_of_data, prepare_full, made_64k), .deep = true },
	FULL("full of trees", full_of_trees, prepare_full_trees, made_16k), .deep = true },
	KIND_4K("plan 1", plan_1), .faults = true },
	KIND_16K("plan 1", plan_1), .deep = true },
	KIND_64K("plan 1", plan_1), .deep = true },
	OFTEN_16K("plan 2", plan_2),
	OFTEN_64K("plan 3", plan_3),
	OFTEN_64K("plan 4", plan_4),
	OFTEN_4K("plan 5", plan_5),
	OFTEN_16K("plan 6", plan_6),
	OFTEN_4K("plan 1, with commits between", plan_11),
	OFTEN_16K("plan 2, with commits between", plan_12),
	OFTEN_64K("plan 3, with commits between", plan_13),
	OFTEN_4K("plan 4, with commits between", plan_14),
	THREADS("threads, 4K", threads_1, made_4k) },
	THREADS("threads, 16K", threads_1, made_16k), .deep = true },
	THREADS("threads, 64K", threads_1, made_64k), .deep = true },
	THREADS("threads again, 16K", threads_2, made_16k) },
	THREADS("threads again, 4K", threads_2, made_4k), .deep = true },
	THREADS("threads again, 64K", threads_2, made_64k), .deep = true },
	AFTER_CRASH("write after a crash", write_large),
	AFTER_CRASH("plan after a crash", plan_1),
	{ "plan, a cache v1", "good-cache-v1", plan_1, prepare_files, .after = go_on },
	{ "plan, quotas", "good-quota", plan_2, prepare_files, .after = go_on },
	{ "plan, holes with items", "good-holes-explicit", plan_3, prepare_files, .after = go_on },
	{ "plan, long extent items", "good-not-skinny", plan_5, prepare_files, .after = go_on, .deep = true },
	{ "plan, data and trees together", "good-mixed", plan_6, prepare_files, .after = go_on, .deep = true },
	OFTEN_4K("plan 1, continued after commits", plan_1_continued),
	OFTEN_16K("plan 3, continued after commits", plan_3_continued),
	THREADS("threads, and another that commits, 4K", threads_continued, made_4k) },
};
const unsigned num_kinds = sizeof(kinds) / sizeof(kinds[0]);
const struct effort efforts[3] = { { 2, 60, 12 }, { 12, 6, 1 }, { 1, 120, 24 } };

const struct kind *kind_find(const char *name)
{
	for (unsigned i = 0; i < num_kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}
