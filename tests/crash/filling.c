// SPDX-License-Identifier: LGPL-2.1-or-later
#include "filling.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An inline file, a file of several writes, one with holes, and a compressible one. */
static const struct {
	const char *name;
	size_t data, hole;
	bool random;
} files[] = { { "small", 100, 0, false },
	      { "large", 1500000, 0, true },
	      { "packed", 300000, 0, false },
	      { "sparse", 20000, 3000000, true },
	      { "sub/file", 70000, 0, true } };

#define NUM_FILES (sizeof(files) / sizeof(files[0]))

static char folder[] = "/tmp/btrkit-filling.XXXXXX";
static const struct btrkit_mkfs_subvolume subvolume = { .path = "sub", .readonly = true };
static const struct btrkit_mkfs_source source = {
	.kind = BTRKIT_SOURCE_DIRECTORY, .path = folder, .subvolumes = &subvolume, .num_subvolumes = 1
};

static const char *path_of(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static bool put(unsigned i)
{
	const int fd = open(path_of(files[i].name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	char *bytes = malloc(files[i].data);
	bool good;

	if (fd < 0 || !bytes)
		return false;
	for (size_t at = 0; at < files[i].data; at++)
		bytes[at] = files[i].random ? (char)((at + 1) * 2654435761u >> 24) : "some text "[at % 10];
	good = pwrite(fd, bytes, files[i].data, (off_t)files[i].hole) == (ssize_t)files[i].data;
	free(bytes);
	return !close(fd) && good;
}

const struct btrkit_mkfs_source *filling_create(void)
{
	bool good = mkdtemp(folder) && !mkdir(path_of("sub"), 0755);

	for (unsigned i = 0; good && i < NUM_FILES; i++)
		good = put(i);
	if (!good) {
		perror(folder);
		exit(1);
	}
	return &source;
}

void filling_remove(void)
{
	for (unsigned i = 0; i < NUM_FILES; i++)
		unlink(path_of(files[i].name));
	rmdir(path_of("sub"));
	rmdir(folder);
}
