/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_H
#define BTRKIT_TESTS_FUZZ_H

/*
 * Common to all fuzz targets. A target is a file that defines LLVMFuzzerTestOneInput(), which is called by libFuzzer or
 * by replay.c. The library cannot be told to ignore checksums: a target that needs valid ones computes them.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sets the crc32c at the start of a superblock or tree block. */
static inline void fuzz_seal(uint8_t *block, size_t size)
{
	le32 sum = le32_put(~crc32c(~0u, block + 32, size - 32));

	memcpy(block, &sum, sizeof(sum));
}

/* A btrkit_write_fn that fails once the number of bytes in @ctx, an uint64_t, is used up: output must be bounded. */
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
