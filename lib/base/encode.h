/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ENCODE_H
#define BTRKIT_BASE_ENCODE_H

/* Compression of file data, in the forms that codec.h takes apart. */

#include <stddef.h>
#include <stdint.h>

#include <btrkit/types.h>

#define ENCODE_MAX (128u << 10) /* bytes that are compressed as one, as in Linux */

struct encoder;

/*
 * @type: that of file extents. @level: 0 for the default.
 * @return 0; -EINVAL: a level that there is not; -EOPNOTSUPP: a kind that this build does not know, by name; -ENOMEM
 */
int encoder_create(uint8_t type, int level, uint32_t sectorsize, struct encoder **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct encoder *encoder_destroy(struct encoder *e);

/*
 * Compresses @len bytes, ENCODE_MAX at the most, into @size bytes at the most. By one thread at a time. What comes out
 * depends on nothing but what goes in and the library's version.
 * @return 0: *got bytes; 1: it does not fit; -ENOMEM, -EIO
 */
int encoder_run(struct encoder *e, const void *in, size_t len, void *out, size_t size, size_t *got,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The version of the library that compresses that kind, or NULL. */
const char *encoder_library(uint8_t type);

#endif
