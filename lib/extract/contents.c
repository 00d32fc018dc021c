// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads contents and attributes of files. */
#include "lib/extract/extract.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

/* The contents of a file that is being copied. */
struct contents {
	struct extract *x;
	struct btrkit_file *f;
	const struct extract_item *item;
	extract_put_fn put;
	void *ctx;
	/* Bytes that cannot be read, not reported yet because more may follow. lost_end 0: none */
	uint64_t lost, lost_end;
	int ret;
	struct btrkit_error what;
	bool damaged; /* a problem was reported */
};

/* Reports which bytes are missing. @return 0; <0 */
static int tell_lost(struct contents *c)
{
	char text[80];

	if (!c->lost_end)
		return 0;
	snprintf(text, sizeof(text), "bytes %" PRIu64 " to %" PRIu64 " cannot be read", c->lost, c->lost_end - 1);
	err_name(&c->what, text);
	c->lost_end = 0;
	c->damaged = true;
	return extract_problem(c->x, c->item->path, c->ret, &c->what);
}

/* What is at *@at could not be read: *@at is set to the first byte behind it. @return 0; <0 */
static int go_around(struct contents *c, uint64_t *at, int ret, const struct btrkit_error *what)
{
	uint64_t lost, length, end = c->item->i.size;
	int r = 0;

	if (ret == -ENOMEM)
		return err_pass(c->x->err, what, ret);
	if (!btrkit_file_lost(c->f, &lost, &length))
		end = lost + length;
	/* Another failure, or one elsewhere in the file, is told by itself. */
	if (c->lost_end != *at || what->code != c->what.code || what->cause != c->what.cause)
		r = tell_lost(c);
	if (!c->lost_end) {
		c->lost = *at;
		c->ret = ret;
		c->what = *what;
	}
	*at = c->lost_end = end;
	/* Without anybody who is told, the first failure is the last. */
	return r || c->x->opts->problem ? r : tell_lost(c);
}

/* Reads a piece, or if it is damaged within, what is before the damage. */
static int read_piece(struct contents *c, uint64_t at, size_t n, size_t *got, struct btrkit_error *what)
{
	uint64_t lost, length;
	int ret = btrkit_file_read(c->f, at, c->x->buf, n, got, what);

	if (!ret || btrkit_file_lost(c->f, &lost, &length) || lost <= at || lost - at >= n)
		return ret;
	return btrkit_file_read(c->f, at, c->x->buf, (size_t)(lost - at), got, what);
}

/* @return 0; 1: @put wants no more; <0 */
static int copy_data(struct contents *c, uint64_t at, uint64_t stop, uint64_t *end)
{
	while (at < stop) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		const size_t n = stop - at < EXTRACT_PIECE ? (size_t)(stop - at) : EXTRACT_PIECE;
		size_t got;
		int ret = read_piece(c, at, n, &got, &what);

		*end = at;
		if (ret) {
			ret = go_around(c, &at, ret, &what);
		} else {
			ret = c->put(c->ctx, at, c->x->buf, got);
			c->x->result->bytes += ret ? 0 : got;
			at += got;
		}
		if (!ret)
			ret = extract_progress(c->x);
		if (ret)
			return ret;
	}
	return 0;
}

int extract_next_data(struct btrkit_file *f, uint64_t at, uint64_t *start, uint64_t *length)
{
	uint64_t lost, skip;
	int ret;

	while ((ret = btrkit_file_next_data(f, at, start, length, NULL)) && !btrkit_file_lost(f, &lost, &skip))
		at = lost + skip;
	return ret;
}

static int copy_all(struct contents *c, uint64_t *end)
{
	uint64_t at = 0, start, length = 1;

	while (length) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		int ret = btrkit_file_next_data(c->f, at, &start, &length, &what);

		*end = at;
		if (ret) {
			uint64_t skip;

			if (!btrkit_file_lost(c->f, &start, &skip))
				at = start;
			ret = go_around(c, &at, ret, &what);
			length = 1;
		} else {
			at = start + length;
			ret = copy_data(c, start, at, end);
		}
		if (ret)
			return ret;
	}
	*end = c->item->i.size;
	return 0;
}

int extract_contents(struct extract *x, struct btrkit_file *f, const struct extract_item *item, extract_put_fn put,
		     void *ctx, uint64_t *end)
{
	struct contents c = { .x = x, .f = f, .item = item, .put = put, .ctx = ctx };
	int ret = copy_all(&c, end);

	if (ret >= 0) {
		const int told = tell_lost(&c);

		ret = told ? told : ret;
	}
	return ret ? ret : c.damaged;
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
