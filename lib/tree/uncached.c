// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks needed only once are read without the cache, adjacent ones with one request. */
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"
#include "lib/volume/volume.h"

struct verify_ctx {
	const struct node_rules *rules;
	const struct node_ref *ref;
};

static int verify(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct verify_ctx *v = ctx;

	return node_verify(v->rules, v->ref, buf, err);
}

int node_read_uncached(const struct btrkit_fs *fs, const struct node_ref *ref, uint8_t *buf, struct btrkit_error *err)
{
	struct verify_ctx ctx = { &fs->rules, ref };

	return volume_read(fs->volume, ref->bytenr, buf, fs->geometry.nodesize, verify, &ctx, err);
}

size_t node_read_neighbours(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n, uint8_t *buf)
{
	const uint64_t size = fs->geometry.nodesize;
	struct copy copy;
	size_t run = 1;

	while (run < n && refs[run].bytenr == refs[run - 1].bytenr + size)
		run++;
	while (volume_map(fs->volume, refs->bytenr, run * size, 0, &copy, NULL)) {
		/* The last of them is in the next chunk, or in none. */
		if (run == 1)
			return 0;
		run = 1;
	}
	run = (size_t)(copy.length / size);
	return run && copy.io && !btrkit_io_read(copy.io, copy.physical, buf, run * size, NULL) ? run : 0;
}
