/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ZERO_H
#define BTRKIT_BASE_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Whether all bytes are zero, also true for no bytes. Comparing the buffer with itself, shifted by one byte, makes this
 * as fast as memcmp().
 */
static inline bool is_all_zeros(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	return !len || (!b[0] && !memcmp(b, b + 1, len - 1));
}

#endif
