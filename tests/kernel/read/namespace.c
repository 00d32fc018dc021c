// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists every name below the top level of a filesystem, one per line, using only the public headers: path in hex, then
 * root, inode, mode, size, nlink, uid, gid, rdev, mtime, nbytes and the sum of its extents. The paths of each inode are
 * looked up too, and must include the current one.
 */
#include <btrkit/btrkit.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES 65536

struct walk {
	struct btrkit_fs *fs;
	char path[PATH_BYTES];
	size_t len;
	size_t subvolume;	/* start of the current subvolume in path */
	uint64_t root, inode;
};

static void die(const char *what, const struct btrkit_error *err)
{
	char line[512];

	fprintf(stderr, "namespace: %s: %s\n", what, btrkit_error_format(err, line, sizeof(line)));
	exit(1);
}

struct wanted {
	const char *path;
	size_t len;
	unsigned found;
};

static int match_path(void *ctx, const char *path, size_t len)
{
	struct wanted *w = ctx;

	w->found += len == w->len && !memcmp(path, w->path, len);
	return 0;
}

static int add_extent(void *ctx, const struct btrkit_file_extent *x)
{
	uint64_t *sum = ctx;

	if (x->type == BTRKIT_FILE_EXTENT_INLINE || x->bytenr)
		*sum += x->length;
	return 0;
}

static void print_path(const struct walk *w)
{
	for (size_t k = 0; k < w->len; k++)
		printf("%02x", (uint8_t)w->path[k]);
}

static void show(struct walk *w, const struct btrkit_inode *i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct wanted wanted = { w->path + w->subvolume, w->len - w->subvolume, 0 };
	uint64_t sum = 0;

	if (wanted.len && *wanted.path == '/') {
		wanted.path++;
		wanted.len--;
	}
	if (btrkit_inode_paths(w->fs, i->root, i->inode, match_path, &wanted, &err))
		die("paths", &err);
	if (wanted.found != 1) {
		fprintf(stderr, "namespace: inode %" PRIu64 " has the path %.*s %u times\n", i->inode, (int)wanted.len,
			wanted.path, wanted.found);
		exit(1);
	}
	if (S_ISREG(i->mode) && btrkit_inode_extents(w->fs, i->root, i->inode, add_extent, &sum, &err))
		die("extents", &err);
	print_path(w);
	printf(" %" PRIu64 " %" PRIu64 " %o %" PRIu64 " %u %u %u %" PRIu64, i->root, i->inode, i->mode, i->size,
	       i->nlink, i->uid, i->gid, i->rdev);
	printf(" %" PRId64 ".%09u %" PRIu64 " %" PRIu64 "\n", i->mtime.sec, i->mtime.nsec, i->nbytes,
	       S_ISREG(i->mode) ? sum : 0);
}

static int visit(void *ctx, const struct btrkit_dir_entry *e)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct walk *w = ctx, before = { .len = w->len, .subvolume = w->subvolume };
	struct btrkit_inode i, again;

	if (w->len + e->name_len + 1 > sizeof(w->path))
		return -ENAMETOOLONG;
	w->path[w->len++] = '/';
	memcpy(w->path + w->len, e->name, e->name_len);
	w->len += e->name_len;
	if (e->inode == BTRKIT_EMPTY_SUBVOLUME) {
		print_path(w);
		printf(" %" PRIu64 " %" PRIu64 " empty\n", e->root, e->inode);
		w->len = before.len;
		return 0;
	}
	if (btrkit_inode_get(w->fs, e->root, e->inode, &i, &err))
		die("inode", &err);
	if (IFTODT(i.mode) != e->type) {
		fprintf(stderr, "namespace: entry of type %u for mode %o\n", e->type, i.mode);
		exit(1);
	}
	w->path[w->len] = '\0';
	/* Look up the path from the top level, which crosses every subvolume on the way. */
	if (btrkit_inode_find(w->fs, 5, w->path, &again, &err))
		die(w->path, &err);
	if (again.root != e->root || again.inode != e->inode) {
		fprintf(stderr, "namespace: %s leads elsewhere\n", w->path);
		exit(1);
	}
	if (e->inode == 256)
		w->subvolume = w->len;
	show(w, &i);
	if (S_ISDIR(i.mode) && btrkit_inode_entries(w->fs, e->root, e->inode, visit, w, &err))
		die("directory", &err);
	w->len = before.len;
	w->subvolume = before.subvolume;
	return 0;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	static struct walk w;
	struct btrkit_io *io;

	if (argc != 2) {
		fprintf(stderr, "usage: namespace IMAGE\n");
		return 2;
	}
	if (btrkit_io_open(argv[1], BTRKIT_IO_READ, &io, &err) || btrkit_fs_open(&io, 1, NULL, &w.fs, &err))
		die(argv[1], &err);
	if (btrkit_inode_entries(w.fs, 5, 256, visit, &w, &err))
		die("directory", &err);
	btrkit_fs_close(w.fs);
	return 0;
}
