/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_ITERATE_ITERATE_H
#define BTRKIT_ITERATE_ITERATE_H

/*
 * An iterator has some rows in memory. When they are used up it asks for more, with the function of its kind, which
 * calls the function with a callback and starts after the last row.
 */

#include <stdbool.h>
#include <stddef.h>

#include <btrkit/iterate.h>

/* Rows that are read together, by iterators that do not read all of them. */
#define ITERATE_AT_A_TIME 128u

/* Bytes that a row points to. */
struct iterate_copy {
	struct iterate_copy *next;
	_Alignas(max_align_t) char bytes[];
};

/* Reads more rows, and sets @ended if these are the last. */
typedef int iterate_fn(struct btrkit_iter *it, struct btrkit_error *err);

struct btrkit_iter {
	struct btrkit_fs *fs;
	uint64_t root, inode;
	uint64_t position; /* of the last row, as its kind needs it to continue */
	iterate_fn *more;
	bool all; /* reads everything at once */
	bool ended;
	bool full; /* more() has stopped because there are enough rows */
	size_t row_size;
	char *rows;
	size_t n, room, used;
	struct iterate_copy *copies;
};

/* Makes an iterator, and reads its first rows. @it: its first members; the others are 0 */
int iterate_begin(const struct btrkit_iter *it, struct btrkit_iter **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Finds the next row. @more: what the iterator must have. @return 0; 1: there are no more; <0 */
int iterate_next(struct btrkit_iter *it, iterate_fn *more, const void **row,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds a row. @return 0; -ENOMEM */
int iterate_add(struct btrkit_iter *it, const void *row) BTRKIT_MUST_CHECK;
/* Returns a copy of what a row points to, which lasts as long as the row. @return NULL: no memory */
const void *iterate_copy(struct btrkit_iter *it, const void *bytes, size_t len) BTRKIT_MUST_CHECK;
/* Stops a callback, because there are enough rows. */
int iterate_enough(struct btrkit_iter *it);
/*
 * Returns the result of a call that iterate_enough() may have stopped. If it failed behind some rows, they come first,
 * and the next attempt begins where it failed.
 */
int iterate_result(struct btrkit_iter *it, int ret, struct btrkit_error *err);

#endif
