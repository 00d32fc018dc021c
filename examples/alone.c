// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * alone IMAGE SUBVOLUME: prints how much data a subvolume, given by number or path, shares with which others, and how
 * much of each of its files is in extents that no other subvolume has: deleting the subvolume would free that.
 *
 *	cc alone.c -o alone $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct asked {
	struct btrkit_usage *usage;
	uint64_t id;
	size_t owner;		/* its number in the result */
	bool listing;		/* the current file is in the subvolume */
	char *path;		/* of the current file */
	uint64_t bytes;
};

/* Prints a set that the subvolume is in: the ids of its owners. */
static void print_set(const struct asked *a, size_t set, uint32_t *owners, size_t max)
{
	struct btrkit_usage_set s;
	bool in_it = false;

	btrkit_usage_get_set(a->usage, set, &s, owners, max);
	for (size_t i = 0; i < s.num_owners; i++)
		in_it = in_it || owners[i] == a->owner;
	if (!in_it || !s.space.data)
		return;
	for (size_t i = 0; i < s.num_owners; i++) {
		struct btrkit_usage_owner o;

		btrkit_usage_get_owner(a->usage, owners[i], &o);
		printf("%s%" PRIu64, i ? "," : "", o.id);
	}
	printf(": %" PRIu64 " bytes\n", s.space.data);
}

static void print_sets(const struct asked *a)
{
	const size_t max = btrkit_usage_num_owners(a->usage);
	uint32_t *owners = (uint32_t *)calloc(max, sizeof(*owners));

	if (!owners) {
		perror("alone");
		exit(1);
	}
	printf("sets:\n");
	for (size_t i = 0; i < btrkit_usage_num_sets(a->usage); i++)
		print_set(a, i, owners, max);
	free(owners);
}

/* Whether the subvolume is the only owner in a set. */
static bool is_alone(const struct asked *a, size_t set)
{
	struct btrkit_usage_set s;
	uint32_t first;

	btrkit_usage_get_set(a->usage, set, &s, &first, 1);
	return s.num_owners == 1 && first == a->owner;
}

/* Finds the first extent that ends after an address. Extents are ordered by address. */
static size_t extent_at(const struct btrkit_usage *u, uint64_t address)
{
	size_t low = 0, high = btrkit_usage_num_extents(u);

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		struct btrkit_usage_extent e;

		btrkit_usage_get_extent(u, mid, &e);
		if (e.bytenr + e.bytes <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void print_file(struct asked *a)
{
	if (a->path && a->bytes)
		printf("%s: %" PRIu64 " bytes\n", a->path, a->bytes);
	free(a->path);
	a->path = NULL;
	a->bytes = 0;
}

static int begin_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	struct asked *a = (struct asked *)ctx;

	print_file(a);
	a->listing = file->root == a->id;
	if (!a->listing)
		return 0;
	a->path = (char *)malloc(file->path_len + 1);
	if (!a->path) {
		perror("alone");
		exit(1);
	}
	snprintf(a->path, file->path_len + 1, "%.*s", (int)file->path_len, file->path);
	return 0;
}

/* A row may span several extents, and parts of them. The length of a compressed row is that in the file. */
static int add_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct asked *a = (struct asked *)ctx;

	for (size_t i = 0; a->listing && i < n; i++) {
		const uint64_t end = rows[i].physical + rows[i].length;
		const bool encoded = rows[i].flags & BTRKIT_EXTENT_ENCODED;

		if (rows[i].flags & BTRKIT_EXTENT_INLINE)
			continue;
		for (size_t at = extent_at(a->usage, rows[i].physical); at < btrkit_usage_num_extents(a->usage); at++) {
			struct btrkit_usage_extent e;
			uint64_t from, to;

			btrkit_usage_get_extent(a->usage, at, &e);
			if (e.bytenr >= end)
				break;
			from = e.bytenr > rows[i].physical ? e.bytenr : rows[i].physical;
			to = e.bytenr + e.bytes < end && !encoded ? e.bytenr + e.bytes : end;
			if (e.set != SIZE_MAX && is_alone(a, e.set))
				a->bytes += to - from;
			if (encoded)
				break;
		}
	}
	return 0;
}

static int tell(struct btrkit_fs *fs, const char *name, struct asked *a, struct btrkit_error *err)
{
	const struct btrkit_fiemap_sink sink = { .file = begin_file, .extents = add_rows, .ctx = a };
	struct btrkit_usage_space space;
	uint32_t owner;
	int r = btrkit_subvolume_find(fs, name, &a->id, err);

	if (!r)
		r = btrkit_usage_load(fs, NULL, &a->usage, err);
	if (!r)
		r = btrkit_usage_find(a->usage, a->id, &a->owner);
	if (r)
		return r;
	print_sets(a);
	printf("files:\n");
	r = btrkit_fiemap_all(fs, &sink, NULL, err);
	print_file(a);
	owner = (uint32_t)a->owner;
	if (!r)
		r = btrkit_usage_freed(a->usage, &owner, 1, &space, err);
	if (!r)
		printf("freed: %" PRIu64 " bytes\n", space.data);
	return r;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[BTRKIT_ERROR_LINE];
	struct asked asked = { 0 };
	struct btrkit_fs *fs;
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: alone IMAGE SUBVOLUME\n");
		return 2;
	}
	r = btrkit_fs_open_path(argv[1], BTRKIT_SCAN_ALL, NULL, &fs, &err);
	if (!r) {
		r = tell(fs, argv[2], &asked, &err);
		btrkit_usage_free(asked.usage);
		btrkit_fs_close(fs);
	}
	if (r)
		fprintf(stderr, "alone: %s: %s\n", argv[1], btrkit_error_format(&err, line, sizeof(line)));
	return r ? 1 : 0;
}
