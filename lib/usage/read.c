// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads blocks without the cache, because each is read only once. Contiguous blocks are read in one request from the
 * first copy. A block that does not verify is read again by itself, from any good copy.
 */
#include "lib/base/err.h"
#include "lib/tree/node.h"
#include "lib/usage/damage.h"
#include "lib/usage/read.h"
#include "lib/usage/state.h"

static int read_one(struct usage_work *w, const struct node_ref *ref, uint32_t set, uint8_t *buf, bool *ok,
		    struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = node_read_alone(w->fs, ref, buf, &what);

	*ok = !ret;
	if (!ret)
		return 0;
	if (ref->owner)
		err_at_tree(&what, ref->owner);
	return usage_damage_of(w, set, ret, &what, err);
}

int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err)
{
	const size_t size = w->fs->items.nodesize;
	int ret = 0;

	for (size_t i = 0; i < n;) {
		const size_t run = node_read_neighbours(w->fs, refs + i, n - i, buf + i * size);
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
