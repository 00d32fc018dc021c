// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/usage/read.h"

#include "lib/base/err.h"
#include "lib/sweep/read.h"
#include "lib/usage/damage.h"
#include "lib/usage/state.h"

struct reading {
	struct usage_work *w;
	const struct node_ref *refs;
	const uint32_t *sets;
};

static int unreadable(void *ctx, size_t i, int ret, struct btrkit_error *what, struct btrkit_error *err)
{
	const struct reading *r = ctx;

	if (r->refs[i].owner)
		err_at_tree(what, r->refs[i].owner);
	return usage_damage_of(r->w, r->sets ? r->sets[i] : 0, ret, what, err);
}

int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err)
{
	return sweep_read(w->fs, refs, n, buf, ok, unreadable, &(struct reading){ w, refs, sets }, err);
}
