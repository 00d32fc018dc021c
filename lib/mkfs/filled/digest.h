/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_DIGEST_H
#define BTRKIT_MKFS_DIGEST_H

/* Digest of the contents of a file that cannot be read again, computed from its units in order. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_UNIT (1u << 20) /* bytes */

/* Returns whether this build has the hash function. */
bool digest_available(void);
/* Returns the digest of one unit of at most DIGEST_UNIT bytes; 0 if it is all zeros. */
uint64_t digest_unit(const void *data, size_t len);
/*
 * Adds a unit at a multiple of DIGEST_UNIT to the digest of a file. Units of zeros change nothing and may be omitted.
 */
uint64_t digest_fold(uint64_t so_far, uint64_t offset, uint64_t unit);

#endif
