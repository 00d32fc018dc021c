/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_SECTORS_H
#define BTRKIT_CHECK_DATA_SECTORS_H

#include "lib/check/data/data_progress.h"

/* A run of data in one chunk and one checksum item. */
struct data_piece {
	uint64_t logical, length;
	const uint8_t *sums;
	uint64_t tree; /* the tree with the checksums */
};

void data_check_piece(struct data_check *d, const struct data_piece *p);

#endif
