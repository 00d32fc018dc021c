/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ZERO_H
#define BTRKIT_BASE_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether all bytes are zeros, which none are too: each is held against the next, as fast as memcmp() is. */
static inline bool is_all_zeros(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	return !len || (!b[0] && !memcmp(b, b + 1, len - 1));
}

#endif
