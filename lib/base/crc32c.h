/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_CRC32C_H
#define BTRKIT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * CRC-32C without the inversions before and after: the seed is ~0 for what btrfs stores after inverting the result
 * (block checksums), ~1 for the hash of a name, which is not inverted.
 */
uint32_t crc32c(uint32_t seed, const void *data, size_t len);

/* The same by table: what builds without ISA-L use, and what tests hold the other against. */
uint32_t crc32c_by_table(uint32_t seed, const void *data, size_t len);

#endif
