/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_DIGITS_H
#define BTRKIT_BASE_DIGITS_H

/* Formatting of numbers, which make up most of a dump. */

#include <stdint.h>
#include <string.h>

#define DIGITS_ROOM 20	/* maximum length of a number */

static inline unsigned digits_count(uint64_t v)
{
	static const uint64_t tens[20] = {
		0,
		10u,
		100u,
		1000u,
		10000u,
		100000u,
		1000000u,
		10000000u,
		100000000u,
		1000000000u,
		10000000000u,
		100000000000u,
		1000000000000u,
		10000000000000u,
		100000000000000u,
		1000000000000000u,
		10000000000000000u,
		100000000000000000u,
		1000000000000000000u,
		10000000000000000000u,
	};
	/* Digits of the largest power of two with this many bits, minus one: 1233 / 4096 approximates log10(2). */
	const unsigned n = (64 - (unsigned)__builtin_clzll(v | 1)) * 1233 >> 12;

	return n + (v >= tens[n]);
}

static inline void digits_put_two(char *to, uint32_t v)
{
	static const char pairs[201] =
		"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
		"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

	memcpy(to, pairs + 2 * v, 2);
}

/* Writes the @n digits of @v without a terminator. @return pointer past the digits */
static inline char *digits_put_counted(char *to, uint64_t v, unsigned n)
{
	char *const end = to + n, *at = end;
	uint32_t rest;

	/* Eight digits per iteration, computed independently of each other. */
	while (v >= 100000000) {
		const uint32_t low = (uint32_t)(v % 100000000), upper = low / 10000, lower = low % 10000;

		at -= 8;
		digits_put_two(at, upper / 100);
		digits_put_two(at + 2, upper % 100);
		digits_put_two(at + 4, lower / 100);
		digits_put_two(at + 6, lower % 100);
		v /= 100000000;
	}
	for (rest = (uint32_t)v; rest >= 100; rest /= 100) {
		at -= 2;
		digits_put_two(at, rest % 100);
	}
	if (rest >= 10)
		digits_put_two(to, rest);
	else
		*to = (char)('0' + rest);
	return end;
}

static inline char *digits_put(char *to, uint64_t v)
{
	return digits_put_counted(to, v, digits_count(v));
}

/* Writes @v in hexadecimal with "0x", in lower case. @return pointer past the digits */
static inline char *digits_put_hex(char *to, uint64_t v)
{
	const unsigned n = (67 - (unsigned)__builtin_clzll(v | 1)) / 4;

	*to++ = '0';
	*to++ = 'x';
	for (unsigned i = 0; i < n; i++)
		*to++ = "0123456789abcdef"[v >> 4 * (n - 1 - i) & 15];
	return to;
}

#define DIGITS_WIDTH_MAX 32u
#define DIGITS_WIDE_ROOM (DIGITS_WIDTH_MAX + DIGITS_ROOM)

/* Writes @v right-aligned in @width columns, but at most DIGITS_WIDTH_MAX, or in more if necessary. */
static inline char *digits_put_wide(char *to, uint64_t v, unsigned width)
{
	const unsigned n = digits_count(v), columns = width < DIGITS_WIDTH_MAX ? width : DIGITS_WIDTH_MAX;

	memset(to, ' ', DIGITS_WIDTH_MAX);
	return digits_put_counted(n < columns ? to + columns - n : to, v, n);
}

#endif
