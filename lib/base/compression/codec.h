/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_CODEC_H
#define BTRKIT_BASE_CODEC_H

/* Decompression of file data. */

#include <stddef.h>
#include <stdint.h>

#include <btrkit/types.h>

/*
 * Decompresses @in, an extent on disk, which is compressed with method @type. If the stream ends before @out is full,
 * the rest of @out is zeroed, like Linux does for readers.
 * @return 0; -EOPNOTSUPP: method unknown or not supported by this build, the message names it; -EUCLEAN; -ENOMEM
 */
int codec_decompress(uint8_t type, const void *in, size_t in_len, void *out, size_t out_len, uint32_t sectorsize,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Like codec_decompress(), for the data of an inline extent. Linux does not read one whose stream ends before @out is
 * full, so the result is then -EUCLEAN.
 */
int codec_decompress_inline(uint8_t type, const void *in, size_t in_len, void *out, size_t out_len,
			    uint32_t sectorsize, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
