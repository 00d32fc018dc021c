// SPDX-License-Identifier: LGPL-2.1-or-later
// Loads the free space of every block group, from one of the places that tell it: groups, ranges, bytes, milliseconds.
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/space/space.h"

static struct btrkit_error err;

static void must(int ret, const char *what)
{
	char line[512];

	if (!ret)
		return;
	fprintf(stderr, "space-load: %s: %d, %s\n", what, ret, btrkit_error_format(&err, line, sizeof(line)));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "any", "tree", "cache", "extents" };
	unsigned from = 0;
	uint64_t ranges = 0, bytes = 0;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	struct space *s;
	double start, created, loaded;

	while (argc == 3 && from < 4 && strcmp(argv[2], names[from]))
		from++;
	if (argc != 3 || from == 4) {
		fprintf(stderr, "usage: space-load DEVICE any|tree|cache|extents\n");
		return 2;
	}
	must(btrkit_io_open(argv[1], BTRKIT_IO_READ, &io, &err), "open");
	must(btrkit_fs_open(&io, 1, NULL, &fs, &err), "open");
	start = now();
	must(space_create(fs, &s, &err), "block groups");
	created = now();
	for (size_t i = 0; i < space_num_groups(s); i++)
		must(space_load(s, space_group_at(s, i), (enum space_source)from, &err), "load");
	loaded = now();
	for (size_t i = 0; i < space_num_groups(s); i++) {
		const struct space_group *g = space_group_at(s, i);
		struct range r;

		bytes += free_map_bytes(g->free);
		for (uint64_t at = g->item.start; free_map_next(g->free, at, &r); at = range_end(&r))
			ranges++;
	}
	printf("%zu groups, %" PRIu64 " ranges, %" PRIu64 " bytes; block groups %.1f ms, load %.1f ms\n",
	       space_num_groups(s), ranges, bytes, created - start, loaded - created);
	space_destroy(s);
	btrkit_fs_close(fs);
	return 0;
}
