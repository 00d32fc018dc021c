/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_DIGITS_H
#define BTRKIT_BASE_DIGITS_H

/* Decimal numbers, which are most of what a dump writes. */

#include <stdint.h>
#include <string.h>

#define DIGITS_ROOM 20	/* bytes of the longest */

static inline unsigned digits_count(uint64_t v)
{
	unsigned n = 1;

	for (; v >= 10000; v /= 10000)
		n += 4;
	return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* Writes the digits of @v without a terminator. Returns what is behind them. */
static inline char *digits_put(char *to, uint64_t v)
{
	static const char pairs[201] =
		"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
		"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
	char *end = to + digits_count(v), *at = end;

	while (v >= 100) {
		at -= 2;
		memcpy(at, pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(to, pairs + 2 * v, 2);
	else
		*to = (char)('0' + v);
	return end;
}

#endif
