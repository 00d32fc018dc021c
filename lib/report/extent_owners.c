// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/extent_owners.h"

#include <errno.h>

#include "lib/base/err.h"

/* A btrkit_lost_fn. Several blocks may be lost that tell who refers to an extent: the first of them is the reason. */
static int lose_owners(void *ctx, const struct btrkit_error *what)
{
	struct extent_owners *o = ctx;

	if (!o->missing)
		o->what = *what;
	o->missing = true;
	return 0;
}

int extent_owners_init(struct extent_owners *o, struct btrkit_fs *fs, bool go_on, struct btrkit_error *err)
{
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	const int ret = references_init(&o->refs, fs, &why);

	o->go_on = go_on;
	if (go_on) {
		o->refs.lost = lose_owners;
		o->refs.lost_ctx = o;
	}
	if (!ret || !go_on || ret == -ENOMEM)
		return err_pass(err, &why, ret);
	o->ret = ret;
	o->why = why;
	return 0;
}

void extent_owners_release(struct extent_owners *o)
{
	if (o->refs.fs)
		references_release(&o->refs);
}

int extent_owners_load(struct extent_owners *o, uint64_t bytenr, struct btrkit_error *err)
{
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	int ret = o->ret;

	o->missing = false;
	if (ret)
		why = o->why;
	else
		ret = references_load(&o->refs, bytenr, &why);
	if (!ret)
		return o->missing;
	if (!o->go_on || ret == -ENOMEM)
		return err_pass(err, &why, ret);
	o->refs.n = 0;
	(void)lose_owners(o, &why);
	return 1;
}
