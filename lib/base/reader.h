/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_READER_H
#define BTRKIT_BASE_READER_H

/* A bounded cursor over untrusted bytes: what it hands out lies inside the range, or it is NULL. */

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

/* The next @n bytes, which the reader then stands behind; NULL (and no step) when there are fewer. */
static inline const void *reader_take(struct reader *r, size_t n)
{
	const uint8_t *at = r->pos;

	if (reader_left(r) < n)
		return NULL;
	r->pos += n;
	return at;
}

/* The next @n bytes without a step. */
static inline const void *reader_peek(const struct reader *r, size_t n)
{
	return reader_left(r) < n ? NULL : r->pos;
}

#endif
