/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_STORE_H
#define BTRKIT_MODIFY_STORE_H

/*
 * Allocates space for file data and writes it before the file is changed, so that running out of space changes nothing.
 * Large amounts are compressed, checksummed and written by several threads.
 */

#include <btrkit/modify.h>

#include "lib/base/compression/encode.h"
#include "lib/modify/data.h"

#define STORE_EXTENT_MAX (128ull << 20)	/* bytes of an uncompressed extent, as in Linux */
#define STORE_PIECES 256u		/* extents stored by one run */

/* Whole sectors of a file. The first and the last one may be in separate buffers. */
struct store_bytes {
	uint64_t start, end;		/* in the file, multiples of the sector size */
	uint64_t body_start, body_end;	/* likewise, the part that is in @body */
	const uint8_t *body;
	const uint8_t *head, *tail;	/* a sector each, if not in the body; otherwise NULL */
};

/* An extent of the file that was stored. */
struct store_piece {
	uint64_t offset; /* in the file */
	struct file_extent fe;
};

struct store {
	struct op *op;
	uint64_t inode;
	const struct store_bytes *bytes;
	uint8_t compression; /* COMPRESS_NONE: do not compress */
	int level;
	bool sums;
	bool prealloc;	  /* the file may have preallocated space */
	unsigned threads; /* 0: as many as there are processors */
	struct store_piece pieces[STORE_PIECES];
	unsigned n;
	uint8_t *sum_bytes; /* checksums of all pieces, in order */
	size_t num_sums;
};

/* Copies @len bytes starting at offset @from of the file. */
void store_bytes_copy(const struct store_bytes *b, uint32_t sector, uint64_t from, size_t len, uint8_t *to);

/*
 * Stores all bytes, at most store_span(), and records the extents in s->pieces. Preallocated space is used where
 * nothing else refers to it and nothing was written yet: until a commit the file still has it as preallocated.
 * @return 0; -ENOSPC: nothing was changed; <0
 */
int store_run(struct store *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the checksums of the stored data, once it is part of the file. @return 0; -ENOMEM */
int store_add_sums(struct store *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @s may be NULL. */
struct store *store_free(struct store *s);

/* The number of bytes that can be stored by one run. */
static inline uint64_t store_span(uint8_t compression)
{
	/* Half of the pieces are left for data that needs more than one extent. */
	return compression ? STORE_PIECES / 2 * (uint64_t)ENCODE_MAX : STORE_EXTENT_MAX;
}

#endif
