/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_DIGEST_H
#define BTRKIT_MKFS_DIGEST_H

/* What the contents of a file are known by that cannot be read again: a number, made of units in their order. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_UNIT (1u << 20) /* bytes */

/* Whether this build can. */
bool digest_available(void);
/* Of the bytes of a unit, at most DIGEST_UNIT of them; 0: they are zeros. */
uint64_t digest_unit(const void *data, size_t len);
/* The number of a file after another unit, at a multiple of DIGEST_UNIT. Zeros change nothing: they may be left out. */
uint64_t digest_fold(uint64_t so_far, uint64_t offset, uint64_t unit);

#endif
