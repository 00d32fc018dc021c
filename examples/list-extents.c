// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * list-extents IMAGE: lists all files below the top level, including other subvolumes, with their sizes and extents.
 *
 *	cc list-extents.c -o list-extents $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096 /* PATH_MAX of Linux; also stops in a directory that contains itself */

struct walk {
	struct btrkit_fs *fs;
	struct btrkit_error err;	/* of the call that failed */
	char path[PATH_BYTES];
	size_t len;
};

static int print_extents(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		printf("    %" PRIu64 "+%" PRIu64 " at %" PRIu64 "%s%s%s%s\n", rows[i].logical, rows[i].length,
		       rows[i].physical, rows[i].flags & BTRKIT_EXTENT_INLINE ? " inline" : "",
		       rows[i].flags & BTRKIT_EXTENT_ENCODED ? " compressed" : "",
		       rows[i].flags & BTRKIT_EXTENT_UNWRITTEN ? " unwritten" : "",
		       rows[i].flags & BTRKIT_EXTENT_SHARED ? " shared" : "");
	return 0;
}

static int ignore_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	(void)file;
	return 0;
}

static int list_file(struct walk *w, const struct btrkit_dir_entry *entry)
{
	const struct btrkit_fiemap_sink sink = { .file = ignore_file, .extents = print_extents };
	struct btrkit_inode inode;
	int ret;

	ret = btrkit_inode_get(w->fs, entry->root, entry->inode, &inode, &w->err);
	if (ret)
		return ret;
	printf("%s %" PRIu64 " bytes\n", w->path, inode.size);
	return btrkit_fiemap_path(w->fs, BTRKIT_TOP_LEVEL, w->path, &sink, NULL, &w->err);
}

static int visit(void *ctx, const struct btrkit_dir_entry *entry)
{
	struct walk *w = (struct walk *)ctx;
	size_t before = w->len;
	int ret = 0;

	if (w->len + 1 + entry->name_len >= sizeof(w->path))
		return -ENAMETOOLONG;
	if (w->len)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, entry->name, entry->name_len);
	w->len += entry->name_len;
	w->path[w->len] = '\0';
	/* In a snapshot, the place of a nested subvolume is an empty directory without an inode. */
	if (entry->type == DT_REG)
		ret = list_file(w, entry);
	else if (entry->type == DT_DIR && entry->inode != BTRKIT_EMPTY_SUBVOLUME)
		ret = btrkit_inode_entries(w->fs, entry->root, entry->inode, visit, w, &w->err);
	w->len = before;
	return ret;
}

static int fail(const char *image, const struct btrkit_error *err, int ret)
{
	char line[512];

	/* Without a code, visit() failed, and not the library. */
	fprintf(stderr, "list-extents: %s: %s\n", image,
		err->code == BTRKIT_OK ? strerror(-ret) : btrkit_error_format(err, line, sizeof(line)));
	return 1;
}

int main(int argc, char **argv)
{
	static struct walk w = { .err = BTRKIT_ERROR_INIT };
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: list-extents IMAGE\n");
		return 2;
	}
	ret = btrkit_fs_open_path(argv[1], BTRKIT_SCAN_ALL, NULL, &w.fs, &w.err);
	if (ret)
		return fail(argv[1], &w.err, ret);
	ret = btrkit_inode_entries(w.fs, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, visit, &w, &w.err);
	btrkit_fs_close(w.fs);
	return ret ? fail(argv[1], &w.err, ret) : 0;
}
