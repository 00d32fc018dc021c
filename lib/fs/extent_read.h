/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_EXTENT_READ_H
#define BTRKIT_FS_EXTENT_READ_H

/* The bytes that a file extent stands for, whatever its form. */

#include "lib/format/items/file_extent.h"
#include "lib/fs/data.h"

/* Linux compresses at most 128 KiB to one extent; nobody makes one that is larger than this, on disk or plain. */
#define EXTENT_COMPRESSED_MAX (1u << 20)

struct extent_reader {
	struct btrkit_fs *fs;
	bool verify; /* data has checksums */
	struct data_reader data;
	/* The part of an extent that was read for the sake of a few of its bytes: decompressed, or a sector. */
	uint8_t *plain;
	size_t plain_size;
	uint64_t plain_bytenr; /* address of what is in it; 0: nothing */
	size_t plain_len;
	bool plain_compressed;
};

/* Free with extent_reader_release(), on failure too. */
int extent_reader_init(struct extent_reader *r, struct btrkit_fs *fs, bool verify,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void extent_reader_release(struct extent_reader *r);

/* @len bytes from @offset of what the extent covers. @return 0; -EUCLEAN; -EOPNOTSUPP; -EIO, -ENODATA, -ENOMEM */
int extent_read(struct extent_reader *r, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
