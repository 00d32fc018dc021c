// SPDX-License-Identifier: LGPL-2.1-or-later
// One FS_IOC_FIEMAP call over a whole file: extents, shared extents, milliseconds.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	unsigned n = argc > 2 ? strtoul(argv[2], NULL, 0) : 0, shared = 0;
	struct fiemap *map = calloc(1, sizeof(*map) + n * sizeof(struct fiemap_extent));

	if (fd < 0 || !map) {
		perror(argc > 1 ? argv[1] : "usage: fiemap-ioctl FILE [COUNT]");
		return 1;
	}
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_extent_count = n;
	double start = now();
	if (ioctl(fd, FS_IOC_FIEMAP, map)) {
		perror("FS_IOC_FIEMAP");
		return 1;
	}
	double end = now();
	for (unsigned i = 0; n && i < map->fm_mapped_extents; i++)
		shared += !!(map->fm_extents[i].fe_flags & FIEMAP_EXTENT_SHARED);
	printf("%u extents, %u shared, %.1f ms\n", map->fm_mapped_extents, shared, end - start);
	return 0;
}
