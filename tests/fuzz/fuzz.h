/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_H
#define BTRKIT_TESTS_FUZZ_H

/*
 * What the fuzz targets share. A target is a file that defines LLVMFuzzerTestOneInput(); libFuzzer or replay.c calls
 * it. The library has no switch that turns checksums off: a target that needs good ones computes them.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The crc32c that a superblock or tree block begins with. */
static inline void fuzz_seal(uint8_t *block, size_t size)
{
	le32 sum = le32_put(~crc32c(~0u, block + 32, size - 32));

	memcpy(block, &sum, sizeof(sum));
}

/* A btrkit_write_fn that refuses after @ctx, an uint64_t, has counted down to nothing: output must end. */
static inline int fuzz_write(void *ctx, const void *data, size_t len)
{
	uint64_t *left = ctx;

	(void)data;
	if (*left < len)
		return -27; /* EFBIG */
	*left -= len;
	return 0;
}

#endif
