// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs operations on a filesystem by public functions, as standard input says, and prints 0 or the errno of each:
 * mkdir, touch, subvol, rm, rmdir, del, ro or rw with a PATH; snap, mv, mvn or xch with two; flags PATH NUMBER; xattr
 * PATH NAME HEX; commit. Names in paths contain no blanks; "." is the top level.
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOP 256
#define WORDS 4

static struct btrkit_fs *fs;
static struct btrkit_txn *txn;
static struct btrkit_error err = BTRKIT_ERROR_INIT;

static void must(int ret, const char *what)
{
	char text[512];

	if (!ret)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, ret, btrkit_error_format(&err, text, sizeof(text)));
	exit(1);
}

/* Returns the directory of a path and its last component. */
static int device_range_of(const char *path, struct btrkit_place *ret)
{
	const char *slash;

	*ret = (struct btrkit_place){ BTRKIT_TOP_LEVEL, TOP, path, strlen(path) };
	while ((slash = strchr(ret->name, '/'))) {
		struct btrkit_found found;
		const int r = btrkit_txn_lookup(txn, ret->root, ret->dir, ret->name, (size_t)(slash - ret->name),
						&found, &err);

		if (r)
			return r;
		*ret = (struct btrkit_place){ found.root, found.inode, slash + 1, strlen(slash + 1) };
	}
	return 0;
}

static int find(const char *path, struct btrkit_found *ret)
{
	struct btrkit_place at;
	int r;

	*ret = (struct btrkit_found){ BTRKIT_TOP_LEVEL, TOP, 0 };
	if (!strcmp(path, "."))
		return 0;
	r = device_range_of(path, &at);
	return r ? r : btrkit_txn_lookup(txn, at.root, at.dir, at.name, at.len, ret, &err);
}

static int make(const char *path, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode };
	struct btrkit_place at;
	int ret = device_range_of(path, &at);

	return ret ? ret : btrkit_txn_create(txn, at.root, at.dir, at.name, at.len, &what, NULL, &err);
}

static int subvolume(const char *path)
{
	struct btrkit_new_subvolume what = BTRKIT_NEW_SUBVOLUME_INIT;
	struct btrkit_place at;
	int ret = device_range_of(path, &at);

	what.mode = 0777;
	return ret ? ret : btrkit_txn_subvolume_create(txn, at.root, at.dir, at.name, at.len, &what, NULL, &err);
}

static int snapshot(const char *source, const char *path)
{
	struct btrkit_found from;
	struct btrkit_place at;
	int ret = find(source, &from);

	if (!ret)
		ret = device_range_of(path, &at);
	return ret ? ret :
		     btrkit_txn_subvolume_snapshot(txn, from.root, at.root, at.dir, at.name, at.len, NULL, NULL, &err);
}

static int move(const char *one, const char *two, unsigned flags)
{
	struct btrkit_place from, to;
	int ret = device_range_of(one, &from);

	if (!ret)
		ret = device_range_of(two, &to);
	return ret ? ret : btrkit_txn_rename(txn, &from, &to, flags, &err);
}

static int take_away(const char *path, enum btrkit_unlink_what what)
{
	struct btrkit_place at;
	int ret = device_range_of(path, &at);

	return ret ? ret : btrkit_txn_unlink(txn, at.root, at.dir, at.name, at.len, what, &err);
}

static int delete(const char *path)
{
	struct btrkit_found f;
	int ret = find(path, &f);

	return ret ? ret : btrkit_txn_subvolume_delete(txn, f.root, &err);
}

static int read_only(const char *path, bool yes)
{
	struct btrkit_found f;
	int ret = find(path, &f);

	return ret ? ret : btrkit_txn_subvolume_set_read_only(txn, f.root, yes, false, &err);
}

static int flags(const char *path, const char *number)
{
	const uint32_t all = FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NOCOW_FL | FS_COMPR_FL | FS_NOCOMP_FL;
	struct btrkit_found f;
	int ret = find(path, &f);

	return ret ? ret : btrkit_txn_set_flags(txn, f.root, f.inode, (uint32_t)strtoul(number, NULL, 0), all, &err);
}

static int xattr(const char *path, const char *name, const char *hex)
{
	struct btrkit_found f;
	uint8_t bytes[256];
	size_t n = 0;
	int ret = find(path, &f);

	for (; *hex; hex += 2) {
		const char digits[] = { hex[0], hex[1], '\0' };

		bytes[n++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return ret ? ret : btrkit_txn_xattr_set(txn, f.root, f.inode, name, bytes, n, 0, &err);
}

static int commit(void)
{
	must(btrkit_txn_commit(txn, NULL, &err), "commit");
	must(btrkit_txn_start(fs, &txn, &err), "start");
	return 0;
}

static int do_line(const char *op, const char *one, const char *two, const char *three)
{
	static const char *const moves[] = { "mv", "mvn", "xch" };

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(op, moves[i]))
			return move(one, two, i);
	if (!strcmp(op, "mkdir"))
		return make(one, S_IFDIR | 0755);
	if (!strcmp(op, "touch"))
		return make(one, S_IFREG | 0644);
	if (!strcmp(op, "subvol"))
		return subvolume(one);
	if (!strcmp(op, "snap"))
		return snapshot(one, two);
	if (!strcmp(op, "rm"))
		return take_away(one, BTRKIT_UNLINK_FILE);
	if (!strcmp(op, "rmdir"))
		return take_away(one, BTRKIT_UNLINK_DIR);
	if (!strcmp(op, "del"))
		return delete(one);
	if (!strcmp(op, "ro") || !strcmp(op, "rw"))
		return read_only(one, op[1] == 'o');
	if (!strcmp(op, "flags"))
		return flags(one, two);
	if (!strcmp(op, "xattr"))
		return xattr(one, two, three);
	if (!strcmp(op, "commit"))
		return commit();
	fprintf(stderr, "what is %s?\n", op);
	exit(1);
}

int main(int argc, char **argv)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io;
	char line[4096];

	if (argc != 2)
		return 2;
	opts.flags = BTRKIT_OPEN_WRITE;
	must(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), argv[1]);
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), argv[1]);
	must(btrkit_txn_start(fs, &txn, &err), "start");
	while (fgets(line, sizeof(line), stdin)) {
		const char *words[WORDS] = { "", "", "", "" };
		unsigned n = 0;

		for (char *w = strtok(line, " \n"); w && n < WORDS; w = strtok(NULL, " \n"))
			words[n++] = w;
		printf("%d\n", -do_line(words[0], words[1], words[2], words[3]));
	}
	must(btrkit_txn_commit(txn, NULL, &err), "commit");
	btrkit_fs_close(fs);
	return 0;
}
