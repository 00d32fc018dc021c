// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/crc32c.h"

#include <limits.h>

#include "config.h"

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

uint32_t crc32c_by_table(uint32_t seed, const void *data, size_t len)
{
	/*
	 * The polynomial is 0x82f63b78 (bit-reversed). The CRC is linear, so the table entry of a byte is the XOR of
	 * the entries of its two halves.
	 */
	static const uint32_t low[16] = { 0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c,
					  0x26a1e7e8, 0xd4ca64eb, 0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b,
					  0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24 };
	static const uint32_t high[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
					   0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
					   0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
	const uint8_t *at = data;

	while (len--) {
		uint8_t x = (uint8_t)seed ^ *at++;

		seed = (seed >> 8) ^ low[x & 15] ^ high[x >> 4];
	}
	return seed;
}

uint32_t crc32c(uint32_t seed, const void *data, size_t len)
{
#ifdef HAVE_ISAL
	const uint8_t *at = data;

	/* The length parameter of ISA-L is an int. */
	while (len > INT_MAX / 2) {
		seed = crc32_iscsi((unsigned char *)at, INT_MAX / 2, seed);
		at += INT_MAX / 2;
		len -= INT_MAX / 2;
	}
	return crc32_iscsi((unsigned char *)at, (int)len, seed);
#else
	return crc32c_by_table(seed, data, len);
#endif
}
