/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DATA_H
#define BTRKIT_FS_DATA_H

/* Reads data extents and verifies them with the checksum tree. */

#include "lib/tree/cursor.h"

struct data_reader {
	struct btrkit_fs *fs;
	bool has_csums; /* there is a checksum tree */
	struct cursor csums;
	uint8_t *sums; /* checksums of the current piece */
	bool *known;   /* which sectors have a checksum */
};

/* Maximum bytes that are read in one piece. */
#define DATA_PIECE (1u << 20)

/* Must be released with data_reader_release(), even after a failure. */
int data_reader_init(struct data_reader *r, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void data_reader_release(struct data_reader *r);

/*
 * Reads @len bytes of a data extent. @logical and @len must be multiples of the sector size. With @verify, each sector
 * must have a checksum and match it; otherwise another copy of that sector is read.
 * @return 0; -EUCLEAN: no copy matches, or there is no checksum; -EIO, -ENXIO, -ENOMEM
 */
int data_read(struct data_reader *r, uint64_t logical, void *buf, size_t len, bool verify,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
