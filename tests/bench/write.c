// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * write IMAGE MIB COMPRESSION: write MIB MiB to a new file of the filesystem in calls of 16 MiB, and commit.
 * write -f FILE MIB: the same by Linux to a file, and sync its filesystem.
 *
 * Prints the total seconds, and those of the last step. Half of each sector is random.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <btrkit/btrkit.h>

#define TOP 256	/* its root directory */
#define CALL (16u << 20)

static struct btrkit_error err;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(int ret, const char *why)
{
	if (!ret)
		return;
	fprintf(stderr, "write: %s\n", why);
	exit(1);
}

static void fill(uint8_t *bytes)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < CALL; i++) {
		if (!(i % 8)) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		bytes[i] = i % 4096 < 2048 ? (uint8_t)(x >> 8 * (i % 8)) : (uint8_t)(i / 512);
	}
}

static double by_linux(const char *path, const uint8_t *bytes, uint64_t calls)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	double written;

	check(fd < 0, path);
	for (uint64_t i = 0; i < calls; i++)
		check(pwrite(fd, bytes, CALL, (off_t)(i * CALL)) != CALL, "pwrite");
	written = now();
	check(syncfs(fd), "syncfs");
	close(fd);
	return written;
}

static double by_library(const char *path, const uint8_t *bytes, uint64_t calls, uint8_t compression)
{
	struct btrkit_write_options how = BTRKIT_WRITE_OPTIONS_INIT;
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	uint64_t inode;
	double written;

	how.compression = compression;
	opts.flags = BTRKIT_OPEN_WRITE;
	check(btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), err.message);
	check(btrkit_fs_open(&io, 1, &opts, &fs, &err), err.message);
	check(btrkit_txn_start(fs, &txn, &err), err.message);
	check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "big", 3, NULL, &inode, &err), err.message);
	for (uint64_t i = 0; i < calls; i++)
		check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, i * CALL, bytes, CALL, &how, &err), err.message);
	written = now();
	check(btrkit_txn_commit(txn, NULL, &err), err.message);
	btrkit_fs_close(fs);
	return written;
}

int main(int argc, char **argv)
{
	uint8_t *bytes = malloc(CALL);
	double start, written, done;
	uint64_t calls;

	if (argc != 4 || !bytes)
		return 2;
	fill(bytes);
	calls = strtoull(argv[strcmp(argv[1], "-f") ? 2 : 3], NULL, 10) / 16;
	start = now();
	if (strcmp(argv[1], "-f"))
		written = by_library(argv[1], bytes, calls, (uint8_t)atoi(argv[3]));
	else
		written = by_linux(argv[2], bytes, calls);
	done = now();
	printf("%.3f %.3f\n", done - start, done - written);
	free(bytes);
	return 0;
}
