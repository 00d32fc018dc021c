/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_UNITS_H
#define BTRKIT_MKFS_UNITS_H

/*
 * The contents of files as pieces of work for threads: up to a MiB each, of one file or of many small ones, read,
 * looked through for zeros, compressed and given checksums. What comes of them is placed in their order, so that it
 * does not depend on how many threads there are.
 */

#include "lib/base/csum.h"
#include "lib/mkfs/contents.h"

struct units;

struct units_config {
	struct source *source;
	struct mkfs_contents *contents;
	struct mkfs_compact *compact;
	const struct csum_kind *csum;
	uint32_t sectorsize, inline_max; /* bytes that an item has room for */
	uint8_t compression;		 /* as in file extents; 0: none */
	int level;			 /* 0: the default */
	unsigned threads;		 /* 0: as many as there are processors */
	bool digest;			 /* of all that comes */
	bool file_digests;		 /* of each file */
	/* Told by the thread that calls how much was given out; ends all when it is not 0. */
	int (*progress)(void *ctx, uint64_t bytes, uint64_t files);
	void *progress_ctx;
};

/* @config must live as long. @return 0; <0 */
int units_create(const struct units_config *config, struct units **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct units *units_destroy(struct units *u);

/* Takes the contents of a file that can be opened. */
int units_add_file(struct units *u, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Takes the contents of files as they come. */
struct source_sink units_sink(struct units *u);

/* Until all of it is placed. */
int units_finish(struct units *u, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
