// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passes the findings to the caller, with the paths of their files. */
#include "lib/check/hand_out.h"

#include <stdlib.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/folds.h"
#include "lib/check/path.h"
#include "lib/check/state.h"

static int hand_out_code(struct check *c, struct check_namer *namer, enum check_code code,
			 const struct btrkit_check_code *public)
{
	const struct check_findings *l = &c->findings[code];
	int ret = check_folds_hand_out(c, code, public);

	c->result.findings[public->severity] += l->total;
	for (size_t i = 0; !ret && i < l->n && c->opts.finding; i++) {
		const struct check_finding *f = &l->at[i];
		char *path = check_path(c, namer, &f->what);

		ret = c->opts.finding(c->opts.ctx, &(struct btrkit_finding){ public, f->what, f->has_values, f->found,
									     f->expected, path, f->times });
		free(path);
	}
	if (!ret && l->total > l->n && c->opts.more)
		ret = c->opts.more(c->opts.ctx, public, l->total - l->n);
	return ret;
}

int check_hand_out(struct check *c)
{
	size_t n;
	const struct btrkit_check_code *codes = btrkit_check_codes(&n);
	struct check_namer namer = { 0 };
	int ret = 0;

	check_folds_settle(c);
	if (check_failed(c))
		return c->failed;
	for (size_t i = 0; !ret && i < n; i++)
		ret = hand_out_code(c, &namer, (enum check_code)i, &codes[i]);
	check_namer_end(&namer);
	return ret;
}
