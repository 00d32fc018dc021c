// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage-blocks DEV: print each tree block of a filesystem with its owners: address, level, and the owners separated by
 * commas, named as by btrkit du.
 */
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *device, const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];

	fprintf(stderr, "usage-blocks: %s: %s\n", device, btrkit_error_format(err, line, sizeof(line)));
	return 1;
}

static void print_owner(const struct btrkit_usage_owner *o)
{
	if (o->kind <= BTRKIT_USAGE_DROPPED)
		printf("%" PRIu64, o->id);
	else if (o->kind == BTRKIT_USAGE_RELOCATION)
		printf("relocation:%" PRIu64, o->id);
	else
		printf("%s", o->kind == BTRKIT_USAGE_DATA_RELOCATION ? "data-relocation" : "filesystem");
}

static int print(const struct btrkit_usage *u)
{
	const size_t num = btrkit_usage_num_owners(u);
	uint32_t *members = calloc(num + 1, sizeof(*members));

	if (!members)
		return 1;
	for (size_t i = 0; i < btrkit_usage_num_blocks(u); i++) {
		struct btrkit_usage_set set = { .num_owners = 0 };
		struct btrkit_usage_block b;

		btrkit_usage_get_block(u, i, &b);
		if (b.set != SIZE_MAX)
			btrkit_usage_get_set(u, b.set, &set, members, num);
		printf("%" PRIu64 " %u ", b.bytenr, b.level);
		for (size_t j = 0; j < set.num_owners; j++) {
			struct btrkit_usage_owner o;

			btrkit_usage_get_owner(u, members[j], &o);
			if (j)
				putchar(',');
			print_owner(&o);
		}
		putchar('\n');
	}
	free(members);
	return 0;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u = NULL;
	struct btrkit_io *io;
	struct btrkit_fs *fs;
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: usage-blocks DEV\n");
		return 2;
	}
	if (btrkit_io_open(argv[1], BTRKIT_IO_READ, &io, &err))
		return fail(argv[1], &err);
	if (btrkit_fs_open(&io, 1, NULL, &fs, &err)) {
		btrkit_io_close(io);
		return fail(argv[1], &err);
	}
	status = btrkit_usage_load(fs, NULL, &u, &err) ? fail(argv[1], &err) : print(u);
	btrkit_usage_free(u);
	btrkit_fs_close(fs);
	return status;
}
