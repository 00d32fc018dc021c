/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_CRC32C_H
#define BTRKIT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * CRC-32C without the initial and final inversion. Block checksums use the seed ~0 and store the inverted result; name
 * hashes use the seed ~1 and do not invert the result.
 */
uint32_t crc32c(uint32_t seed, const void *data, size_t len);

/* Like crc32c(), from a lookup table: used in builds without ISA-L, and by tests as the reference. */
uint32_t crc32c_by_table(uint32_t seed, const void *data, size_t len);

#endif
