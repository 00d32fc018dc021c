/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_EXTENT_READ_H
#define BTRKIT_FS_EXTENT_READ_H

/* Reads the contents of a file extent of any type. */

#include "lib/format/items/files/file_extent.h"
#include "lib/fs/data.h"

/* Limit of compressed extents, compressed and uncompressed. Linux uses at most 128 KiB. */
#define EXTENT_COMPRESSED_MAX (1u << 20)

struct extent_reader {
	struct btrkit_fs *fs;
	bool verify; /* data has checksums */
	struct data_reader data;
	/* Cache for partial reads: a decompressed extent, or one sector. */
	uint8_t *plain;
	size_t plain_size;
	uint64_t plain_bytenr; /* address of its contents; 0: empty */
	size_t plain_len;
	bool plain_compressed;
};

/* Must be released with extent_reader_release(), even after a failure. */
int extent_reader_init(struct extent_reader *r, struct btrkit_fs *fs, bool verify,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void extent_reader_release(struct extent_reader *r);

/*
 * Reads @len bytes from @offset in the range of the file that the extent covers. @return 0; -EUCLEAN; -EOPNOTSUPP;
 * -EIO, -ENXIO, -ENOMEM
 */
int extent_read(struct extent_reader *r, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
