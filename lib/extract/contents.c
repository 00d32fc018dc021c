// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads contents and attributes of files. */
#include "lib/extract/extract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

/* Report that the rest of the file is missing. @return 1; <0 */
static int tell_cut(struct extract *x, const struct extract_item *item, uint64_t at, int ret, struct btrkit_error *what)
{
	char text[64];

	snprintf(text, sizeof(text), "%s from byte %" PRIu64 " on",
		 what->code == BTRKIT_UNSUPPORTED ? "cannot be read" : "damaged", at);
	err_name(what, text);
	ret = extract_problem(x, item->path, ret, what);
	return ret ? ret : 1;
}

/* If a piece cannot be read, the data before the damage is still extracted. */
static int copy_data(struct extract *x, struct btrkit_file *f, const struct extract_item *item, uint64_t at,
		     uint64_t length, extract_put_fn put, void *ctx, uint64_t *end)
{
	size_t step = EXTRACT_PIECE, got;

	for (const uint64_t stop = at + length; at < stop; at += got) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		const size_t n = stop - at < step ? (size_t)(stop - at) : step;
		int ret = btrkit_file_read(f, at, x->buf, n, &got, &what);

		*end = at;
		if (ret && n > EXTRACT_STEP) {
			step = EXTRACT_STEP;
			got = 0;
			continue;
		}
		if (ret)
			return tell_cut(x, item, at, ret, &what);
		ret = put(ctx, at, x->buf, got);
		if (ret)
			return ret;
		x->result->bytes += got;
		ret = extract_progress(x);
		if (ret)
			return ret;
	}
	return 0;
}

int extract_contents(struct extract *x, struct btrkit_file *f, const struct extract_item *item, extract_put_fn put,
		     void *ctx, uint64_t *end)
{
	uint64_t at = 0, start, length = 0;

	do {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		int ret = btrkit_file_next_data(f, at, &start, &length, &what);

		*end = at;
		if (ret)
			return tell_cut(x, item, at, ret, &what);
		ret = copy_data(x, f, item, start, length, put, ctx, end);
		if (ret)
			return ret;
		at = start + length;
	} while (length);
	*end = item->i.size;
	return 0;
}

static int take_xattr(void *ctx, const struct btrkit_xattr *a)
{
	struct extract *x = ctx;
	struct extract_xattr *to;

	if (x->num_xattrs == x->room_xattrs) {
		const size_t room = x->room_xattrs ? 2 * x->room_xattrs : 8;
		struct extract_xattr *more = reallocarray(x->xattrs, room, sizeof(*more));

		if (!more)
			return err_nomem(x->err);
		x->xattrs = more;
		x->room_xattrs = room;
	}
	to = &x->xattrs[x->num_xattrs];
	*to = (struct extract_xattr){ malloc(a->name_len + 1), malloc(a->value_len + 1), a->name_len, a->value_len };
	x->num_xattrs++;
	if (!to->name || !to->value)
		return err_nomem(x->err);
	memcpy(to->name, a->name, a->name_len);
	to->name[a->name_len] = '\0';
	memcpy(to->value, a->value, a->value_len);
	to->value[a->value_len] = '\0';
	return 0;
}

void extract_drop_xattrs(struct extract *x)
{
	while (x->num_xattrs) {
		x->num_xattrs--;
		free(x->xattrs[x->num_xattrs].name);
		free(x->xattrs[x->num_xattrs].value);
	}
}

int extract_load_xattrs(struct extract *x, const char *path, uint64_t root, uint64_t inode, bool told)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret;

	extract_drop_xattrs(x);
	ret = btrkit_inode_xattrs(x->fs, root, inode, take_xattr, x, &what);
	if (!ret)
		return 0;
	if (ret == -ENOMEM)
		return err_nomem(x->err);
	if (told)
		return 1;
	ret = extract_problem(x, path, ret, &what);
	return ret ? ret : 1;
}
