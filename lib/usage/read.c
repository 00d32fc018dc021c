// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocks are read past the cache, since each is read once: neighbours in one request from the first copy, and what of
 * it is not as it should be once more on its own, from whichever copy is good.
 */
#include "lib/base/err.h"
#include "lib/usage/state.h"
#include "lib/volume/volume.h"

struct verify_ctx {
	const struct node_judge *judge;
	const struct node_ref *ref;
};

static int verify(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct verify_ctx *v = ctx;

	return node_verify(v->judge, v->ref, buf, err);
}

static int read_one(struct usage_work *w, const struct node_ref *ref, uint32_t set, uint8_t *buf, bool *ok,
		    struct btrkit_error *err)
{
	struct verify_ctx ctx = { &w->fs->judge, ref };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = volume_read(w->fs->volume, ref->bytenr, buf, w->fs->items.nodesize, verify, &ctx, &what);

	*ok = !ret;
	if (!ret)
		return 0;
	if (ref->owner)
		err_at_tree(&what, ref->owner);
	return usage_damage_of(w, set, ret, &what, err);
}

/* As many from the first on as lie one behind the other on a device, read there into @buf. @return how many */
static size_t read_neighbours(struct usage_work *w, const struct node_ref *refs, size_t n, uint8_t *buf)
{
	const uint64_t size = w->fs->items.nodesize;
	struct copy copy;
	size_t run = 1;

	while (run < n && refs[run].bytenr == refs[run - 1].bytenr + size)
		run++;
	while (volume_map(w->fs->volume, refs->bytenr, run * size, 0, &copy, NULL)) {
		/* The last of them is in the next chunk, or in none. */
		if (run == 1)
			return 0;
		run = 1;
	}
	run = (size_t)(copy.length / size);
	return run && copy.io && !btrkit_io_read(copy.io, copy.physical, buf, run * size, NULL) ? run : 0;
}

int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err)
{
	const size_t size = w->fs->items.nodesize;
	int ret = 0;

	for (size_t i = 0; i < n;) {
		const size_t run = read_neighbours(w, refs + i, n - i, buf + i * size);
		const size_t end = i + run + !run;

		for (; i < end; i++) {
			ok[i] = run && !node_verify(&w->fs->judge, &refs[i], buf + i * size, NULL);
			if (!ok[i])
				ret = read_one(w, &refs[i], sets ? sets[i] : 0, buf + i * size, &ok[i], err);
			if (ret)
				return ret;
		}
	}
	return 0;
}
