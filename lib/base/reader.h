/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_READER_H
#define BTRKIT_BASE_READER_H

/* Cursor with bounds over untrusted bytes: it returns pointers inside the range, or NULL. */

#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *pos;
	const uint8_t *end;
};

static inline struct reader reader_of(const void *data, size_t size)
{
	return (struct reader){ data, (const uint8_t *)data + size };
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->pos);
}

/* Returns the next @n bytes and advance past them. NULL if fewer are left; the position then stays. */
static inline const void *reader_take(struct reader *r, size_t n)
{
	const uint8_t *at = r->pos;

	if (reader_left(r) < n)
		return NULL;
	r->pos += n;
	return at;
}

/* Returns the next @n bytes without advancing. */
static inline const void *reader_peek(const struct reader *r, size_t n)
{
	return reader_left(r) < n ? NULL : r->pos;
}

#endif
