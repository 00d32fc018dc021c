/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_WRITTEN_H
#define BTRKIT_TESTS_WRITTEN_H

/* A filesystem in memory that outlives the handles opened on it, and whose writes can be made to fail. */

#include <btrkit/btrkit.h>

#include "lib/commit/txn.h"
#include "tests/audit/audit.h"

struct written {
	struct btrkit_io *bytes;
	uint64_t calls;	       /* writes and flushes so far */
	uint64_t flushes;      /* flushes alone */
	uint64_t fail_at;      /* number of calls before one fails; UINT64_MAX: none fails */
	uint64_t failures;     /* number of calls that fail from there on */
	bool no_space;	       /* they fail with ENOSPC, not EIO */
	bool full;	       /* as if the disk below a sparse image were full */
	uint64_t reads;	       /* so far */
	uint64_t fail_read_at; /* number of reads before all fail */
};

/* Makes it with btrkit_mkfs(). A failure fails the test. */
void written_make(struct written *w, const struct btrkit_mkfs_options *opts, uint64_t size);
void written_destroy(struct written *w);
/* A device for the contents, which survive when it is closed. */
struct btrkit_io *written_io(struct written *w);
/* Opens it with BTRKIT_OPEN_* @flags. */
struct btrkit_fs *written_open(struct written *w, unsigned flags);
/* Like written_open(), with a cache of @cache_bytes, so that more is read. */
struct btrkit_fs *written_open_cached(struct written *w, unsigned flags, size_t cache_bytes);

/* Opens it again and audit everything, except for items of unknown types; any finding fails the test. */
void written_verify(struct written *w);
/* Like written_verify(), but the findings AUDIT_* @known are allowed. */
void written_check_but(struct written *w, unsigned known);

struct btrkit_txn *written_start(struct btrkit_fs *fs);
void written_commit(struct btrkit_txn *txn);
/* Fails the test with the message of the error if @ret is not 0. */
void written_check(int ret, const struct btrkit_error *err);

#endif
