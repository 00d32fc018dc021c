/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_WRITTEN_H
#define BTRKIT_TESTS_WRITTEN_H

/*
 * A filesystem in memory that outlives the handles on it, and whose writes can be made to fail.
 */

#include <btrkit/btrkit.h>

#include "lib/txn/txn.h"
#include "tests/audit/audit.h"

struct written {
	struct btrkit_io *bytes;
	uint64_t calls;	       /* writes and flushes so far */
	uint64_t flushes;      /* of them */
	uint64_t fail_at;      /* this many succeed; UINT64_MAX: all */
	uint64_t failures;     /* so many fail from there on */
	bool no_space;	       /* they say ENOSPC, not EIO */
	bool full;	       /* the disk below a sparse image */
	uint64_t reads;	       /* so far */
	uint64_t fail_read_at; /* this many succeed, none of the others */
};

/* One that btrkit_mkfs() made. Fails the test when that fails. */
void written_make(struct written *w, const struct btrkit_mkfs_options *opts, uint64_t size);
void written_destroy(struct written *w);
/* A device for the bytes, which stay when it is closed. */
struct btrkit_io *written_io(struct written *w);
/* A handle, of BTRKIT_OPEN_* @flags. */
struct btrkit_fs *written_open(struct written *w, unsigned flags);
/* The same with a cache of so many bytes, so that more is read. */
struct btrkit_fs *written_open_cached(struct written *w, unsigned flags, size_t cache_bytes);

/* Opens it anew and judges all that is there, items of unknown types aside: fails the test unless everything agrees. */
void written_judge(struct written *w);
/* The same but for AUDIT_* @known. */
void written_judge_but(struct written *w, unsigned known);

struct btrkit_txn *written_start(struct btrkit_fs *fs);
void written_commit(struct btrkit_txn *txn);
/* Fails the test with the error's line if @ret is one. */
void written_check(int ret, const struct btrkit_error *err);

#endif
