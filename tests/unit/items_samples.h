/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_ITEMS_SAMPLES_H
#define BTRKIT_TESTS_ITEMS_SAMPLES_H

/*
 * Hand-made items: for each row of the registry one valid item, and an invalid one for every field that is validated.
 */

#include "lib/format/feature_bits.h"
#include "lib/format/item.h"

/* Initializers of little-endian fields. */
#define BYTE(v, n) ((uint8_t)((uint64_t)(v) >> (8 * (n))))
#define LE16(v) { { BYTE(v, 0), BYTE(v, 1) } }
#define LE32(v) { { BYTE(v, 0), BYTE(v, 1), BYTE(v, 2), BYTE(v, 3) } }
#define LE64(v) \
	{ { BYTE(v, 0), BYTE(v, 1), BYTE(v, 2), BYTE(v, 3), BYTE(v, 4), BYTE(v, 5), BYTE(v, 6), BYTE(v, 7) } }
#define DISK_KEY(o, t, off) { LE64(o), t, LE64(off) }
#define DISK_TIME(s, ns) { LE64(s), LE32(ns) }
#define UUID_OF(b) { b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b }

#define GENERATION 100
#define INCOMPAT (INCOMPAT_MIXED_BACKREF | INCOMPAT_BIG_METADATA | INCOMPAT_EXTENDED_IREF | INCOMPAT_SKINNY_METADATA)

/* One change that makes a valid item invalid. */
struct bad {
	const char *field;	/* the field that the error must name */
	enum { BAD_END, BAD_BYTES, BAD_OBJECTID, BAD_OFFSET, BAD_SIZE, BAD_INCOMPAT } what;
	size_t at, width;	/* position of the change; width may be BAD_BYTES */
	uint64_t value;		/* the new value */
};

#define BYTES_AT(name, offset, width, v) { name, BAD_BYTES, offset, width, v }
#define FIELD_NAMED(name, type, member, v) \
	{ name, BAD_BYTES, offsetof(struct type, member), sizeof(((struct type *)0)->member), v }
#define FIELD(type, member, v) FIELD_NAMED(#member, type, member, v)
#define OBJECTID(v) { "key.objectid", BAD_OBJECTID, 0, 0, v }
#define OFFSET(v) { "key.offset", BAD_OFFSET, 0, 0, v }
#define SIZE(v) { "item_size", BAD_SIZE, 0, 0, v }
#define WITH_INCOMPAT(name, v) { name, BAD_INCOMPAT, 0, 0, v }

struct sample {
	struct btrkit_key key;
	const void *data;
	uint32_t size;
	uint64_t incompat;	/* incompat bits in addition to INCOMPAT */
	const char *text;	/* expected rendering */
	const char *json;
	const struct bad *bad;	/* terminated by BAD_END */
};

#define BAD(...) (const struct bad[]){ __VA_ARGS__, { .what = BAD_END } }
#define DATA(x) &(x), sizeof(x)

#endif
