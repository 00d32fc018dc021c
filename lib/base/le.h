/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_LE_H
#define BTRKIT_BASE_LE_H

/*
 * Little-endian integers on disk. They are structs of bytes, so that they need no alignment and cannot be used as
 * numbers by mistake.
 */

#include <endian.h>
#include <stdint.h>
#include <string.h>

typedef struct {
	uint8_t b[2];
} le16;
typedef struct {
	uint8_t b[4];
} le32;
typedef struct {
	uint8_t b[8];
} le64;

static inline uint16_t le16_get(le16 v)
{
	uint16_t x;

	memcpy(&x, v.b, sizeof(x));
	return le16toh(x);
}

static inline uint32_t le32_get(le32 v)
{
	uint32_t x;

	memcpy(&x, v.b, sizeof(x));
	return le32toh(x);
}

static inline uint64_t le64_get(le64 v)
{
	uint64_t x;

	memcpy(&x, v.b, sizeof(x));
	return le64toh(x);
}

static inline le16 le16_put(uint16_t x)
{
	le16 v;

	x = htole16(x);
	memcpy(v.b, &x, sizeof(x));
	return v;
}

static inline le32 le32_put(uint32_t x)
{
	le32 v;

	x = htole32(x);
	memcpy(v.b, &x, sizeof(x));
	return v;
}

static inline le64 le64_put(uint64_t x)
{
	le64 v;

	x = htole64(x);
	memcpy(v.b, &x, sizeof(x));
	return v;
}

#endif
