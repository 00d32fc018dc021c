/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ENCODE_H
#define BTRKIT_BASE_ENCODE_H

/* Compression of file data, in the formats that codec.h decompresses. */

#include <stddef.h>
#include <stdint.h>

#include <btrkit/types.h>

#define ENCODE_MAX (128u << 10) /* maximum bytes compressed at once, like in Linux */

struct encoder;

/*
 * Creates an encoder. @type is the compression type of file extents; @level is 0 for the default level.
 * @return 0; -EINVAL: no such level; -EOPNOTSUPP: not supported by this build, the message names it; -ENOMEM
 */
int encoder_create(uint8_t type, int level, uint32_t sectorsize, struct encoder **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @e may be NULL. */
struct encoder *encoder_destroy(struct encoder *e);

/*
 * Compress @len bytes (at most ENCODE_MAX) to at most @size bytes. An encoder may be used by one thread at a time. The
 * output depends only on the input and on the version of the library.
 * @return 0: *got bytes were written; 1: the result does not fit; -ENOMEM; -EIO
 */
int encoder_run(struct encoder *e, const void *in, size_t len, void *out, size_t size, size_t *got,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Version of the library for this compression type, or NULL. */
const char *encoder_library(uint8_t type);

#endif
