/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_UNITS_H
#define BTRKIT_MKFS_UNITS_H

/*
 * Splits the contents of files into units of work for threads: up to one MiB each, of one file or of many small ones.
 * Units are read, searched for zeros, compressed and checksummed in parallel. The results are placed in order, so that
 * they do not depend on the number of threads.
 */

#include "lib/base/csum.h"
#include "lib/mkfs/filled/contents.h"

struct units;

struct units_config {
	struct source *source;
	struct mkfs_contents *contents;
	struct mkfs_compact *compact;
	const struct csum_kind *csum;
	uint32_t sectorsize, inline_max; /* maximum inline bytes */
	uint8_t compression;		 /* as in file extents; 0: none */
	int level;			 /* 0: the default */
	unsigned threads;		 /* 0: number of processors */
	bool digest;			 /* compute a digest of all contents */
	bool file_digests;		 /* compute a digest of each file */
	/* Called by the submitting thread with what was submitted so far. Aborts if it returns nonzero. */
	int (*progress)(void *ctx, uint64_t bytes, uint64_t files);
	void *progress_ctx;
};

/* The pointers in @config must stay valid. @return 0; <0 */
int units_create(const struct units_config *config, struct units **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct units *units_destroy(struct units *u);

/* Submits the contents of a file that can be opened. */
int units_add_file(struct units *u, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns a sink that submits contents as they arrive. */
struct source_sink units_sink(struct units *u);

/* Waits until all contents are placed. */
int units_finish(struct units *u, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
