/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_H
#define BTRKIT_CHECK_DATA_H

#include "lib/check/state.h"

#define DATA_BAD_MAX 65536u /* addresses that are kept */

/* What the passes over the data share; under the lock of the check. */
struct data_check {
	struct check *c;
	uint64_t bytes; /* done, for progress */
	uint64_t *bad;	/* addresses of sectors of which a copy is damaged; ascending when all were read */
	size_t num_bad;
};

/* @n bytes of what has to be read are done. */
void data_progress(struct data_check *d, uint64_t n);

/* data_sectors.c: a run of data in one chunk and one checksum item. */
struct data_piece {
	uint64_t logical, length;
	const uint8_t *sums;
	uint64_t tree; /* that has them */
};
void data_judge_piece(struct data_check *d, const struct data_piece *p);

/* data_bare.c: c->bare has been filled in, and is put in the order of addresses, none touching the next. */
void data_sort_bare(struct check *c);

/* data_parity.c */
uint64_t data_parity_bytes(const struct check *c);
void data_judge_parity(struct data_check *d);

#endif
