// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/iterate/iterate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

static void forget_rows(struct btrkit_iter *it)
{
	while (it->copies) {
		struct iterate_copy *next = it->copies->next;

		free(it->copies);
		it->copies = next;
	}
	it->n = it->used = 0;
}

struct btrkit_iter *btrkit_iter_free(struct btrkit_iter *it)
{
	if (!it)
		return NULL;
	forget_rows(it);
	free(it->rows);
	free(it);
	return NULL;
}

int iterate_begin(const struct btrkit_iter *like, struct btrkit_iter **ret, struct btrkit_error *err)
{
	struct btrkit_iter *it = malloc(sizeof(*it));
	int r;

	if (!it)
		return err_nomem(err);
	*it = *like;
	r = it->more(it, err);
	if (r) {
		btrkit_iter_free(it);
		return r;
	}
	*ret = it;
	return 0;
}

int iterate_next(struct btrkit_iter *it, iterate_fn *more, const void **row, struct btrkit_error *err)
{
	int ret = 0;

	if (it->more != more)
		return err_set(err, BTRKIT_INVALID, "the iterator is over something else");
	if (it->used == it->n) {
		forget_rows(it);
		ret = it->ended ? 1 : it->more(it, err);
	}
	if (ret)
		return ret;
	if (it->used == it->n)
		return 1;
	*row = it->rows + it->row_size * it->used++;
	return 0;
}

int iterate_add(struct btrkit_iter *it, const void *row)
{
	if (it->n == it->room) {
		const size_t room = it->room ? 2 * it->room : 16;
		char *rows = reallocarray(it->rows, room, it->row_size);

		if (!rows)
			return -ENOMEM;
		it->rows = rows;
		it->room = room;
	}
	memcpy(it->rows + it->n++ * it->row_size, row, it->row_size);
	return 0;
}

const void *iterate_copy(struct btrkit_iter *it, const void *bytes, size_t len)
{
	struct iterate_copy *copy = malloc(sizeof(*copy) + len);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy->bytes, bytes, len);
	copy->next = it->copies;
	it->copies = copy;
	return copy->bytes;
}

int iterate_enough(struct btrkit_iter *it)
{
	it->full = true;
	return -ECANCELED;
}

int iterate_result(struct btrkit_iter *it, int ret, struct btrkit_error *err)
{
	if (it->full) {
		it->full = false;
		return 0;
	}
	if (ret && it->n && !it->all)
		return 0;
	it->ended = !ret;
	/* That is all that the callbacks of an iterator can fail for. */
	return ret == -ENOMEM ? err_nomem(err) : ret;
}
