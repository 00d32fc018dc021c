/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_STORE_H
#define BTRKIT_MODIFY_STORE_H

/*
 * Bytes of a file get their places, and are written there, before anything is changed of the file: when that fails for
 * want of space nothing was changed. Large amounts are compressed, get their checksums and are written by threads.
 */

#include <btrkit/modify.h>

#include "lib/base/encode.h"
#include "lib/modify/data.h"

#define STORE_EXTENT_MAX (128ull << 20)	/* bytes of an extent that is not compressed, as in Linux */
#define STORE_PIECES 256u		/* extents that are stored at a time */

/* Whole sectors of a file: the first and the last of them may lie elsewhere than what is between. */
struct store_bytes {
	uint64_t start, end;		/* in the file, multiples of the sector size */
	uint64_t body_start, body_end;	/* likewise, of what lies in @body */
	const uint8_t *body;
	const uint8_t *head, *tail;	/* of a sector each, where the body does not have them */
};

/* An extent that the file gets. */
struct store_piece {
	uint64_t offset; /* in the file */
	struct file_extent fe;
};

struct store {
	struct op *op;
	uint64_t inode;
	const struct store_bytes *bytes;
	uint8_t compression; /* COMPRESS_NONE: nothing is compressed */
	int level;
	bool sums;
	bool prealloc;	  /* the file may have space that was kept for it */
	unsigned threads; /* 0: as many as there are processors */
	struct store_piece pieces[STORE_PIECES];
	unsigned n;
	uint8_t *sum_bytes; /* of all pieces, one behind the other */
	size_t num_sums;
};

/* Copies @len bytes from @from on, a place in the file. */
void store_bytes_copy(const struct store_bytes *b, uint32_t sector, uint64_t from, size_t len, uint8_t *to);

/*
 * Stores all bytes, store_span() of them at the most, and notes the extents in s->pieces. What was kept for the file is
 * used where nobody else refers to it and nothing was written: the file says so as long as nothing is committed.
 * @return 0; -ENOSPC: nothing was changed; <0
 */
int store_run(struct store *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The checksums of what was stored, once it is part of the file. @return 0; -ENOMEM */
int store_add_sums(struct store *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct store *store_free(struct store *s);

/* How many bytes may be stored at a time. */
static inline uint64_t store_span(uint8_t compression)
{
	/* Half of the pieces are for what does not go in one piece. */
	return compression ? STORE_PIECES / 2 * (uint64_t)ENCODE_MAX : STORE_EXTENT_MAX;
}

#endif
