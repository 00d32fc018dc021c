// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads every file of a filesystem by the library in pieces of 1 MiB, as cat(1) to /dev/null would. Uses only the
 * public headers. Prints the number of files and bytes.
 */
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DEVICES_MAX 64
#define PIECE (1u << 20)

struct reader {
	struct btrkit_fs *fs;
	uint8_t *buf;
	uint64_t files, bytes;
};

static int die(const char *what, const struct btrkit_error *err)
{
	char line[1024];

	fprintf(stderr, "read-all: %s: %s\n", what, btrkit_error_format(err, line, sizeof(line)));
	exit(1);
}

static void read_file(struct reader *r, const struct btrkit_inode *i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	uint64_t at = 0;
	size_t got;

	if (btrkit_file_open(r->fs, i->root, i->inode, &f, &err))
		die("open", &err);
	do {
		if (btrkit_file_read(f, at, r->buf, PIECE, &got, &err))
			die("read", &err);
		at += got;
	} while (got == PIECE);
	btrkit_file_close(f);
	r->files++;
	r->bytes += at;
}

static int visit(void *ctx, const struct btrkit_dir_entry *e)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct reader *r = ctx;
	struct btrkit_inode i;

	if (e->inode == BTRKIT_EMPTY_SUBVOLUME)
		return 0;
	if (btrkit_inode_get(r->fs, e->root, e->inode, &i, &err))
		die("inode", &err);
	if (S_ISDIR(i.mode) && btrkit_inode_entries(r->fs, e->root, e->inode, visit, r, &err))
		die("directory", &err);
	if (S_ISREG(i.mode))
		read_file(r, &i);
	return 0;
}

int main(int argc, char **argv)
{
	struct btrkit_io *devices[DEVICES_MAX];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct reader r = { .buf = malloc(PIECE) };

	if (argc < 2 || argc - 1 > DEVICES_MAX || !r.buf) {
		fprintf(stderr, "usage: read-all DEVICE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (btrkit_io_open(argv[i], BTRKIT_IO_READ, &devices[i - 1], &err))
			die(argv[i], &err);
	if (btrkit_fs_open(devices, (size_t)argc - 1, NULL, &r.fs, &err))
		die(argv[1], &err);
	if (btrkit_inode_entries(r.fs, 5, 256, visit, &r, &err))
		die("directory", &err);
	btrkit_fs_close(r.fs);
	free(r.buf);
	printf("%" PRIu64 " files, %" PRIu64 " bytes\n", r.files, r.bytes);
	return 0;
}
