// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * make-filesystem FILE MEGABYTES [LABEL [DIRECTORY]]: creates a filesystem in a new image file, and fills it with the
 * contents of a directory.
 *
 *	cc make-filesystem.c -o make-filesystem $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Creates a sparse file. An existing file is not touched. */
static int create_file(const char *path, uint64_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size)) {
		close(fd);
		unlink(path);
		return -1;
	}
	return close(fd);
}

static int make(const char *path, const char *label, const char *directory, struct btrkit_mkfs_result *result,
		struct btrkit_error *err)
{
	struct btrkit_mkfs_options options = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = directory };
	struct btrkit_io *io;
	int ret;

	/* Label and time; everything else as mkfs.btrfs has it by default. */
	options.label = label;
	options.time = time(NULL);
	if (directory)
		options.source = &source;
	ret = btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, err);
	if (ret)
		return ret;
	ret = btrkit_mkfs(&io, 1, &options, result, err);
	btrkit_io_close(io);
	return ret;
}

static void print_fsid(const uint8_t *fsid)
{
	for (int i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", fsid[i]);
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_result result;
	char line[512], *end;
	uint64_t megabytes;

	if (argc < 3 || argc > 5 || !(megabytes = strtoull(argv[2], &end, 10)) || *end || megabytes > INT64_MAX >> 20) {
		fprintf(stderr, "usage: make-filesystem FILE MEGABYTES [LABEL [DIRECTORY]]\n");
		return 2;
	}
	if (create_file(argv[1], megabytes << 20)) {
		perror(argv[1]);
		return 1;
	}
	if (make(argv[1], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL, &result, &err)) {
		fprintf(stderr, "make-filesystem: %s: %s\n", argv[1], btrkit_error_format(&err, line, sizeof(line)));
		unlink(argv[1]);
		return 1;
	}
	print_fsid(result.fsid);
	printf(" %" PRIu64 " bytes\n", result.total_bytes);
	return 0;
}
