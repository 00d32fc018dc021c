// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * freed-by IMAGE SUBVOLUME...: prints what deleting subvolumes, given by number or path, would free: each one alone,
 * and all of them.
 *
 *	cc freed-by.c -o freed-by $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const char *name, const struct btrkit_usage_space *space)
{
	printf("%s: %" PRIu64 " bytes of data, %" PRIu64 " of metadata\n", name, space->data, space->metadata);
}

/* Finds the numbers of the subvolumes in the result. */
static int find(struct btrkit_fs *fs, const struct btrkit_usage *usage, char **names, size_t n, uint32_t *ret,
		struct btrkit_error *err)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t id;
		size_t owner;
		int r = btrkit_subvolume_find(fs, names[i], &id, err);

		if (!r)
			r = btrkit_usage_find(usage, id, &owner);
		if (r)
			return r;
		ret[i] = (uint32_t)owner;
	}
	return 0;
}

static int answer(const struct btrkit_usage *usage, char **names, size_t n, const uint32_t *owners,
		  struct btrkit_error *err)
{
	struct btrkit_usage_space space;
	int r;

	for (size_t i = 0; i < n; i++) {
		r = btrkit_usage_freed(usage, &owners[i], 1, &space, err);
		if (r)
			return r;
		print(names[i], &space);
	}
	/* More than the sum of the above, by what they share only with each other. */
	r = btrkit_usage_freed(usage, owners, n, &space, err);
	if (!r)
		print("all", &space);
	return r;
}

static int tell(struct btrkit_fs *fs, char **names, size_t n, struct btrkit_error *err)
{
	uint32_t *owners = (uint32_t *)calloc(n, sizeof(*owners));
	struct btrkit_usage *usage = NULL;
	int r;

	if (!owners) {
		perror("freed-by");
		exit(1);
	}
	r = btrkit_usage_load(fs, NULL, &usage, err);
	if (!r)
		r = find(fs, usage, names, n, owners, err);
	if (!r)
		r = answer(usage, names, n, owners, err);
	btrkit_usage_free(usage);
	free(owners);
	return r;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[BTRKIT_ERROR_LINE];
	struct btrkit_fs *fs;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: freed-by IMAGE SUBVOLUME...\n");
		return 2;
	}
	r = btrkit_fs_open_path(argv[1], BTRKIT_SCAN_ALL, NULL, &fs, &err);
	if (!r) {
		r = tell(fs, argv + 2, (size_t)argc - 2, &err);
		btrkit_fs_close(fs);
	}
	if (r)
		fprintf(stderr, "freed-by: %s: %s\n", argv[1], btrkit_error_format(&err, line, sizeof(line)));
	return r ? 1 : 0;
}
