// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes the contents of every file and symbolic link of a filesystem, as the library reads them, to DIR/ROOT-INODE,
 * with holes for zeros. Files are read in pieces of odd sizes, and partly a second time. Uses only the public headers.
 *
 * Prints notes from opening, reads in which copies were skipped, unreadable files with the reason, and statistics of
 * each device. Exits with 3 if something is unreadable.
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES_MAX 16
#define PIECE (3u << 20)

struct reader {
	struct btrkit_fs *fs;
	const char *to;
	unsigned long files, failed;
};

static void die(const char *what, const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];

	fprintf(stderr, "read-files: %s: %s\n", what,
		err ? btrkit_error_format(err, line, sizeof(line)) : strerror(errno));
	exit(1);
}

static void fail(struct reader *r, uint64_t root, uint64_t inode, const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];

	printf("failed %" PRIu64 "-%" PRIu64 " %s\n", root, inode, btrkit_error_format(err, line, sizeof(line)));
	r->failed++;
}

static void note(void *ctx, const char *line)
{
	(void)ctx;
	printf("note %s\n", line);
}

/* Prints a read in which copies were skipped: mirror, device, address and errno of each. */
static void bad_read(void *ctx, const struct btrkit_bad_read *bad)
{
	(void)ctx;
	printf("bad-read %" PRIu64 " %" PRIu64 " %d", bad->logical, bad->length, bad->served);
	for (unsigned i = 0; i < bad->num_copies; i++) {
		const struct btrkit_tried_copy *c = &bad->copies[i];

		printf(" %u,%" PRIu64 ",%" PRIu64 ",%d", c->mirror, c->devid, c->physical, c->err);
	}
	printf("\n");
}

static int tell_device(void *ctx, const struct btrkit_device *d)
{
	if (!ctx)
		return 0;
	printf("device %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", d->devid, d->failed_reads, d->rejected_copies);
	return 0;
}

static bool is_zero(const uint8_t *data, size_t len)
{
	return !len || (!data[0] && !memcmp(data, data + 1, len - 1));
}

static void put(int fd, const uint8_t *data, size_t len, uint64_t at)
{
	for (size_t n; len; data += n, at += n, len -= n) {
		n = len < 4096 ? len : 4096;
		if (!is_zero(data, n) && pwrite(fd, data, n, (off_t)at) != (ssize_t)n)
			die("write", NULL);
	}
}

/* Reads the same bytes again from the middle. */
static void read_again(struct btrkit_file *f, const uint8_t *data, size_t len, uint64_t at)
{
	static uint8_t part[5000];
	const size_t skip = len / 3, want = len - skip < sizeof(part) ? len - skip : sizeof(part);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	size_t got;

	if (btrkit_file_read(f, at + skip, part, want, &got, &err))
		die("again", &err);
	if (got != want || memcmp(part, data + skip, want)) {
		fprintf(stderr, "read-files: the second time there is something else at %" PRIu64 "\n", at + skip);
		exit(1);
	}
}

static void read_file(struct reader *r, const struct btrkit_inode *i)
{
	static uint8_t data[PIECE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	char path[4096];
	uint64_t at = 0;
	size_t got = 1, size = 777;
	int fd;

	snprintf(path, sizeof(path), "%s/%" PRIu64 "-%" PRIu64, r->to, i->root, i->inode);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	/* Another name of the same file. */
	if (fd < 0 && errno == EEXIST)
		return;
	if (fd < 0 || ftruncate(fd, (off_t)i->size))
		die(path, NULL);
	if (btrkit_file_open(r->fs, i->root, i->inode, &f, &err)) {
		fail(r, i->root, i->inode, &err);
		close(fd);
		return;
	}
	do {
		if (btrkit_file_read(f, at, data, size, &got, &err)) {
			fail(r, i->root, i->inode, &err);
			break;
		}
		put(fd, data, got, at);
		if (got)
			read_again(f, data, got, at);
		at += got;
		size = size * 3 < PIECE ? size * 3 : PIECE - 1;
	} while (got);
	if (!got && at != i->size) {
		fprintf(stderr, "read-files: %s has %" PRIu64 " bytes and not %" PRIu64 "\n", path, at, i->size);
		exit(1);
	}
	btrkit_file_close(f);
	close(fd);
	r->files++;
}

static int visit(void *ctx, const struct btrkit_dir_entry *e)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct reader *r = ctx;
	struct btrkit_inode i;

	if (e->inode == BTRKIT_EMPTY_SUBVOLUME)
		return 0;
	if (btrkit_inode_get(r->fs, e->root, e->inode, &i, &err)) {
		fail(r, e->root, e->inode, &err);
		return 0;
	}
	if (S_ISDIR(i.mode) && btrkit_inode_entries(r->fs, e->root, e->inode, visit, r, &err))
		fail(r, e->root, e->inode, &err);
	if (S_ISREG(i.mode) || S_ISLNK(i.mode))
		read_file(r, &i);
	return 0;
}

int main(int argc, char **argv)
{
	struct btrkit_io *devices[DEVICES_MAX];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct reader r = { .to = argv[1] };

	if (argc < 3 || argc - 2 > DEVICES_MAX) {
		fprintf(stderr, "usage: read-files DIR DEVICE...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (btrkit_io_open(argv[i], BTRKIT_IO_READ, &devices[i - 2], &err))
			die(argv[i], &err);
	opts.note = note;
	opts.bad_read = bad_read;
	if (btrkit_fs_open(devices, (size_t)(argc - 2), &opts, &r.fs, &err))
		die(argv[2], &err);
	if (btrkit_inode_entries(r.fs, 5, 256, visit, &r, &err))
		fail(&r, 5, 256, &err);
	/* Reading what this needs may also meet damage, which counts. */
	if (btrkit_devices(r.fs, tell_device, NULL, &err) || btrkit_devices(r.fs, tell_device, &r, &err))
		die("devices", &err);
	btrkit_fs_close(r.fs);
	printf("files %lu\n", r.files);
	return r.failed ? 3 : 0;
}
