// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * edit-image IMAGE NAME TEXT: takes a snapshot of the top level, and then writes TEXT to the file NAME in its root
 * directory. Both happen in one transaction: in the end both changes are durable, or neither is.
 *
 *	cc edit-image.c -o edit-image $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Finds the file, or creates it. */
static int find_or_make(struct btrkit_txn *txn, const char *name, uint64_t *inode, struct btrkit_error *err)
{
	struct btrkit_found found;
	int ret = btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, name, strlen(name), &found, err);

	if (ret == -ENOENT)
		return btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, name, strlen(name), NULL, inode, err);
	if (!ret)
		*inode = found.inode;
	return ret;
}

static int change(struct btrkit_txn *txn, const char *name, const char *text, struct btrkit_error *err)
{
	struct btrkit_new_snapshot how = BTRKIT_NEW_SNAPSHOT_INIT;
	uint64_t inode;
	int ret;

	how.flags = BTRKIT_NEW_SNAPSHOT_READ_ONLY;
	ret = btrkit_txn_subvolume_snapshot(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "before",
					    strlen("before"), &how, NULL, err);
	if (!ret)
		ret = find_or_make(txn, name, &inode, err);
	if (!ret)
		ret = btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, 0, err);
	if (!ret)
		ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, text, strlen(text), NULL, err);
	return ret;
}

static int edit(struct btrkit_fs *fs, const char *name, const char *text, struct btrkit_error *err)
{
	struct btrkit_txn *txn;
	int ret = btrkit_txn_start(fs, &txn, err);

	if (ret)
		return ret;
	ret = change(txn, name, text, err);
	if (!ret)
		return btrkit_txn_commit(txn, NULL, err);
	btrkit_txn_abort(txn);
	return ret;
}

int main(int argc, char **argv)
{
	struct btrkit_open_options options = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[BTRKIT_ERROR_LINE];
	struct btrkit_fs *fs;
	int ret;

	if (argc != 4) {
		fprintf(stderr, "usage: edit-image IMAGE NAME TEXT\n");
		return 2;
	}
	options.flags = BTRKIT_OPEN_WRITE;
	ret = btrkit_fs_open_path(argv[1], BTRKIT_SCAN_ALL, &options, &fs, &err);
	if (!ret) {
		ret = edit(fs, argv[2], argv[3], &err);
		btrkit_fs_close(fs);
	}
	if (ret)
		fprintf(stderr, "edit-image: %s: %s\n", argv[1], btrkit_error_format(&err, line, sizeof(line)));
	return ret ? 1 : 0;
}
