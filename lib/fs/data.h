/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DATA_H
#define BTRKIT_FS_DATA_H

/* The bytes of data extents, verified by the checksum tree. */

#include "lib/tree/cursor.h"

struct data_reader {
	struct btrkit_fs *fs;
	bool has_csums; /* there is a checksum tree */
	struct cursor csums;
	uint8_t *sums; /* of the piece that is read */
	bool *known;   /* which of its sectors have one */
};

/* Data is read in pieces of so many bytes at the most. */
#define DATA_PIECE (1u << 20)

/* Free with data_reader_release(), on failure too. */
int data_reader_init(struct data_reader *r, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void data_reader_release(struct data_reader *r);

/*
 * Reads @len bytes of a data extent; both numbers are multiples of the sector size. With @verify each sector must have
 * a checksum and agree with it, else another copy of that sector is read.
 * @return 0; -EUCLEAN: no copy agrees, or there is no checksum; -EIO, -ENODATA, -ENOMEM
 */
int data_read(struct data_reader *r, uint64_t logical, void *buf, size_t len, bool verify,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
