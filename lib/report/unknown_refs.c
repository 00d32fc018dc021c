// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/unknown_refs.h"

#include <inttypes.h>
#include <stdio.h>
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

static int tell(struct unknown_refs *u, enum unknown_fact fact, struct btrkit_error *err)
{
	struct unknown_extents *x = &u->facts[fact];
	struct btrkit_fiemap_file file = { .path = "" };
	struct btrkit_error why = x->why;
	const char *s = x->extents == 1 ? "" : "s";
	char of[64] = "";
	int ret;

	if (!x->files)
		return 0;
	if (x->files > 1) {
		snprintf(of, sizeof(of), " of %" PRIu64 " files", x->files);
	} else {
		file = x->file;
		file.path = x->path;
	}
	if (fact == UNKNOWN_SHARED)
		text_add(why.message, sizeof(why.message), "; whether %" PRIu64 " extent%s%s %s shared is not known",
			 x->extents, s, of, x->extents == 1 ? "is" : "are");
	else
		text_add(why.message, sizeof(why.message), "; owners of %" PRIu64 " extent%s%s are missing",
			 x->extents, s, of);
	x->files = 0;
	ret = u->sink->problem(u->sink->ctx, &file, &why);
	u->stopped |= ret != 0;
	return ret ? err_system(err, ret, "stopped by the caller") : 0;
}

int unknown_refs_add(struct unknown_refs *u, enum unknown_fact fact, const struct btrkit_fiemap_file *file,
		     uint64_t extents, const struct btrkit_error *why, struct btrkit_error *err)
{
	struct unknown_extents *x = &u->facts[fact];
	int ret;

	if (x->files && same_reason(&x->why, why)) {
		x->files++;
		x->extents += extents;
		return 0;
	}
	ret = tell(u, fact, err);
	if (ret)
		return ret;
	free(x->path);
	x->path = malloc(file->path_len + 1);
	if (!x->path)
		return err_nomem(err);
	memcpy(x->path, file->path, file->path_len);
	x->path[file->path_len] = '\0';
	x->file = *file;
	x->why = *why;
	x->files = 1;
	x->extents = extents;
	return 0;
}

int unknown_refs_end(struct unknown_refs *u, int ret, struct btrkit_error *err)
{
	for (unsigned fact = 0; fact < UNKNOWN_FACTS; fact++) {
		if (!ret)
			ret = tell(u, (enum unknown_fact)fact, err);
		free(u->facts[fact].path);
	}
	return ret;
}
