// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/read.h"

#include "lib/base/err.h"

/* Reads block number @i from any good copy. @return 0, or what @unreadable returned */
static int read_one(const struct btrkit_fs *fs, const struct node_ref *refs, size_t i, uint8_t *buf, bool *ok,
		    sweep_unreadable_fn unreadable, void *ctx, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const int ret = node_read_uncached(fs, &refs[i], buf, &what);

	*ok = !ret;
	return ret ? unreadable(ctx, i, ret, &what, err) : 0;
}

int sweep_read(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n, uint8_t *buf, bool *ok,
	       sweep_unreadable_fn unreadable, void *ctx, struct btrkit_error *err)
{
	const size_t size = fs->geometry.nodesize;
	int ret = 0;

	for (size_t i = 0; i < n;) {
		const size_t run = node_read_neighbours(fs, refs + i, n - i, buf + i * size);
		const size_t end = i + run + !run;

		for (; i < end; i++) {
			ok[i] = run && !node_verify(&fs->rules, &refs[i], buf + i * size, NULL);
			if (!ok[i])
				ret = read_one(fs, refs, i, buf + i * size, &ok[i], unreadable, ctx, err);
			if (ret)
				return ret;
		}
	}
	return 0;
}
