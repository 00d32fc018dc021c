/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_H
#define BTRKIT_DUMP_DUMP_H

/* What every dump of blocks needs: how and where to print them. */

#include <btrkit/dump.h>

#include "lib/base/emit.h"
#include "lib/dump/dump_fields.h"
#include "lib/dump/dump_tree_pick.h"
#include "lib/tree/filesystem.h"

/* Damage because of which parts of the output are missing, until the output is written. */
struct dump_losses {
	struct btrkit_error *at;
	size_t n, max;
};

/* State to render blocks. Each piece of the output has its own. */
struct dump {
	struct btrkit_fs *fs;
	struct emit e;
	struct dump_choice choice;	/* members to keep of JSON lines; without a filter, all */
	unsigned render;	/* RENDER_* */
	bool csum_headers;
	bool begun;
	const struct dump_pick *pick;	/* which items of leaves to show; NULL: all */
	uint64_t tree;		/* of the printed blocks: that of the walk, or the owner of a single block */
	/* The first unreadable block or invalid item. The dump continues after it. */
	int damage;
	struct btrkit_error damage_error;
	bool lost;	/* parts of the output are missing */
	btrkit_lost_fn tell;	/* about each of them, or NULL */
	void *tell_ctx;
	struct dump_losses losses;	/* not told yet */
};

static inline bool dump_is_json(const struct dump *d)
{
	return d->e.form == EMIT_JSON;
}

/*
 * Initializes with the options for lines and the format. Call dump_choice_free() for its choice. @return 0; -EINVAL;
 * -ENOMEM
 */
int dump_like(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
