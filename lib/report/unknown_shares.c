// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/unknown_shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"

/* The message says what, the location where. */
static bool same_reason(const struct btrkit_error *a, const struct btrkit_error *b)
{
	return a->code == b->code && a->places == b->places && a->tree == b->tree && a->logical == b->logical &&
	       a->slot == b->slot && !strcmp(a->field, b->field) && !strcmp(a->message, b->message);
}

static int tell(struct unknown_shares *u, struct btrkit_error *err)
{
	struct btrkit_fiemap_file file = { .path = "" };
	struct btrkit_error why = u->why;
	int ret;

	if (!u->files)
		return 0;
	text_add(why.message, sizeof(why.message), "; whether %" PRIu64 " extent%s", u->extents,
		 u->extents == 1 ? "" : "s");
	if (u->files > 1) {
		text_add(why.message, sizeof(why.message), " of %" PRIu64 " files", u->files);
	} else {
		file = u->file;
		file.path = u->path;
	}
	text_add(why.message, sizeof(why.message), " %s shared is not known", u->extents == 1 ? "is" : "are");
	u->files = 0;
	ret = u->sink->problem(u->sink->ctx, &file, &why);
	u->stopped |= ret != 0;
	return ret ? err_system(err, ret, "stopped by the caller") : 0;
}

int unknown_shares_add(struct unknown_shares *u, const struct btrkit_fiemap_file *file, uint64_t extents,
		       const struct btrkit_error *why, struct btrkit_error *err)
{
	int ret;

	if (u->files && same_reason(&u->why, why)) {
		u->files++;
		u->extents += extents;
		return 0;
	}
	ret = tell(u, err);
	if (ret)
		return ret;
	free(u->path);
	u->path = malloc(file->path_len + 1);
	if (!u->path)
		return err_nomem(err);
	memcpy(u->path, file->path, file->path_len);
	u->path[file->path_len] = '\0';
	u->file = *file;
	u->why = *why;
	u->files = 1;
	u->extents = extents;
	return 0;
}

int unknown_shares_end(struct unknown_shares *u, int ret, struct btrkit_error *err)
{
	if (!ret)
		ret = tell(u, err);
	free(u->path);
	return ret;
}
