/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_CONTENTS_H
#define BTRKIT_MKFS_CONTENTS_H

/*
 * The contents of files in a new filesystem: the addresses and checksums of their extents. Contents are placed one
 * after another in the order in which they arrive.
 */

#include "lib/io/spool.h"
#include "lib/mkfs/filled/compact.h"
#include "lib/source/source.h"

#define CONTENTS_EXTENT_MAX (128u << 20) /* limit of Linux, in bytes */

struct mkfs_extent {
	uint64_t at; /* logical address; if in_item, offset in inline_bytes */
	uint64_t file_offset;
	uint32_t disk_bytes, ram_bytes;
	uint32_t inode; /* number in the source */
	uint8_t compression;
	bool in_item;
};

/* Checksums of contiguous sectors. */
struct mkfs_csum_run {
	uint64_t logical;
	uint64_t first, count; /* index in sums */
};

struct mkfs_contents {
	struct mkfs_extent *extents; /* by address, inline ones in between; contiguous per file */
	size_t num_extents, extents_size;
	struct mkfs_csum_run *runs;
	size_t num_runs, runs_size;
	struct spool *sums, *inline_bytes;
	uint32_t *marked; /* inodes to be marked NOCOMPRESS */
	size_t num_marked, marked_size;
	/* Totals. */
	uint64_t compressed_from, compressed_to; /* size before and after compression */
	uint64_t digest;			 /* digest of all contents and their places */
	const struct source *shares; /* source that blocks are shared with, or NULL */
	/* Digest of each file (digest.h) by inode, if required. */
	uint64_t *file_digests;
	size_t num_file_digests;
};

/* A piece of a file as it will be on disk. @data is NULL if it is not stored. */
struct mkfs_piece {
	uint32_t inode;
	uint64_t file_offset;
	uint32_t ram_bytes;  /* length in the file */
	uint32_t disk_bytes; /* multiple of the sector size, unless inline */
	const uint8_t *data;
	const uint8_t *sums; /* of all sectors; NULL: none */
	uint8_t digest[8];   /* digest of the data, if required */
	uint32_t shared;     /* leading bytes that can be shared with the source file */
	uint8_t compression; /* 0: none, may be split at any sector */
	bool in_item;
};

int mkfs_contents_create(struct mkfs_contents **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct mkfs_contents *mkfs_contents_destroy(struct mkfs_contents *c);

/* Places the pieces one after another and writes them. The pieces of a file must be in file order and contiguous. */
int mkfs_contents_add(struct mkfs_contents *c, struct mkfs_compact *to, uint32_t csum_size, uint32_t sectorsize,
		      const struct mkfs_piece *pieces, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Records that the file is not worth compressing. @return 0 or -ENOMEM */
int mkfs_contents_mark(struct mkfs_contents *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds a unit (digest.h) to the digest of a file. @return 0 or -ENOMEM */
int mkfs_contents_digest(struct mkfs_contents *c, uint32_t inode, uint64_t offset, uint64_t unit,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Stores the extents of each file and its NOCOMPRESS mark in its inode, after all contents were added. The source is
 * not accessed before that, because it may still grow.
 */
void mkfs_contents_settle(const struct mkfs_contents *c, struct source *source);

#endif
