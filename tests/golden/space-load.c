// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loads the free space of every block group of an image from each source that it has, and compares them. Prints how
 * many groups were loaded from the free space tree and from the v1 cache. Usage: space-load IMAGE
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/space/space.h"

static int fail(const char *what, uint64_t at, const struct btrkit_error *err)
{
	char line[512];

	fprintf(stderr, "space-load: %s %" PRIu64 ": %s\n", what, at, btrkit_error_format(err, line, sizeof(line)));
	return 1;
}

static int compare(const struct space_group *a, const struct space_group *b)
{
	const uint64_t end = a->item.start + a->item.length;
	struct range x, y;

	for (uint64_t at = a->item.start; at < end; at = range_end(&x)) {
		const bool more = free_map_next(a->free, at, &x);

		if (more != free_map_next(b->free, at, &y) ||
		    (more && (x.start != y.start || x.length != y.length))) {
			fprintf(stderr, "space-load: block group %" PRIu64 " differs behind %" PRIu64 "\n",
				a->item.start, at);
			return 1;
		}
		if (!more)
			break;
	}
	return 0;
}

/* Compares the extent tree with @from, where it has the group. */
static int compare_all(struct btrkit_fs *fs, enum space_source from, size_t *groups)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct space *a, *b;
	int ret = 0;

	if (space_create(fs, &a, &err) || space_create(fs, &b, &err))
		return fail("filesystem", 0, &err);
	for (size_t i = 0; i < space_num_groups(a) && !ret; i++) {
		struct space_group *x = space_group_at(a, i), *y = space_group_at(b, i);
		int r = space_load(a, x, SPACE_FROM_EXTENTS, &err);

		if (r)
			ret = fail("block group", x->item.start, &err);
		r = space_load(b, y, from, &err);
		if (r && r != -ENOENT)
			ret = fail("block group", y->item.start, &err);
		if (!r && !ret) {
			ret = compare(x, y);
			++*groups;
		}
	}
	space_destroy(a);
	space_destroy(b);
	return ret;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	size_t tree = 0, cache = 0;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	int ret;

	if (argc != 2)
		return 2;
	if (btrkit_io_open(argv[1], 0, &io, &err) || btrkit_fs_open(&io, 1, NULL, &fs, &err))
		return fail("filesystem", 0, &err);
	ret = compare_all(fs, SPACE_FROM_TREE, &tree);
	if (!ret)
		ret = compare_all(fs, SPACE_FROM_CACHE, &cache);
	printf("%zu %zu\n", tree, cache);
	btrkit_fs_close(fs);
	return ret;
}
