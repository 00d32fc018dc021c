/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_CSUMS_H
#define BTRKIT_CHECK_CSUMS_H

#include "lib/check/state.h"

/* Reads the checksum tree; fills in csums. */
int check_csums(struct check *c);
/* Checks that everything with a checksum is written data, not a hole or preallocated space. */
int check_csum_extents(struct check *c);
/* Returns how many bytes of a range of data have checksums. */
uint64_t check_csum_bytes(const struct check *c, uint64_t logical, uint64_t length, size_t *hint);

#endif
