/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ARRAY_H
#define BTRKIT_BASE_ARRAY_H

/* An array that grows by doubling. Freed with free(a.at). */

#include <stddef.h>

#include <btrkit/error.h>

struct array {
	void *at;
	size_t n, room;
};

/* Doubles the room. @return 0; -ENOMEM, and the array is unchanged */
int array_grow(struct array *a, size_t entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Appends an entry of @entry bytes, which is not initialised. Entries move when the array grows.
 * @return the entry; NULL: out of memory, and the array is unchanged
 */
static inline void *array_add(struct array *a, size_t entry, struct btrkit_error *error)
{
	if (a->n == a->room && array_grow(a, entry, error))
		return NULL;
	return (char *)a->at + a->n++ * entry;
}

#endif
