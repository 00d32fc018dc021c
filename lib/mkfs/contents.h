/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_CONTENTS_H
#define BTRKIT_MKFS_CONTENTS_H

/*
 * The contents of files in a new filesystem: where each of their extents lies, and the checksums. They are placed in
 * the order in which they come, one behind the other.
 */

#include "lib/io/spool.h"
#include "lib/mkfs/compact.h"
#include "lib/source/source.h"

#define CONTENTS_EXTENT_MAX (128u << 20) /* bytes, as Linux has it */

struct mkfs_extent {
	uint64_t at; /* its address; of one in an item where its bytes are among inline_bytes */
	uint64_t file_offset;
	uint32_t disk_bytes, ram_bytes;
	uint32_t inode; /* of the source */
	uint8_t compression;
	bool in_item;
};

/* Checksums of sectors that lie one behind the other. */
struct mkfs_csum_run {
	uint64_t logical;
	uint64_t first, count; /* among the checksums */
};

struct mkfs_contents {
	struct mkfs_extent *extents; /* in the order of addresses, those in items in between; a file's are together */
	size_t num_extents, extents_size;
	struct mkfs_csum_run *runs;
	size_t num_runs, runs_size;
	struct spool *sums, *inline_bytes;
	uint32_t *marked; /* inodes */
	size_t num_marked, marked_size;
	/* What they come to. */
	uint64_t compressed_from, compressed_to; /* bytes that were compressed, and what became of them */
	uint64_t digest;			 /* of all bytes and where they are */
	const struct source *shares; /* its files share their blocks with the filesystem; NULL: they do not */
	/* Of each file by itself (digest.h), where that is wanted: by inode. */
	uint64_t *file_digests;
	size_t num_file_digests;
};

/* One piece of a file as it will lie on disk; @data is NULL where it is not to be kept. */
struct mkfs_piece {
	uint32_t inode;
	uint64_t file_offset;
	uint32_t ram_bytes;  /* of the file */
	uint32_t disk_bytes; /* whole sectors, unless it goes into an item */
	const uint8_t *data;
	const uint8_t *sums; /* of every sector; NULL: none */
	uint8_t digest[8];   /* of the data, where they are told by that */
	uint32_t shared;     /* so many bytes, from the first on, can be shared with the file that they come from */
	uint8_t compression; /* 0: it may be cut at any sector */
	bool in_item;
};

int mkfs_contents_create(struct mkfs_contents **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct mkfs_contents *mkfs_contents_destroy(struct mkfs_contents *c);

/*
 * Places the pieces one after the other, and writes them. Those of a file come in its order, with none of another file
 * between them.
 */
int mkfs_contents_add(struct mkfs_contents *c, struct mkfs_compact *to, uint32_t csum_size, uint32_t sectorsize,
		      const struct mkfs_piece *pieces, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The file is not worth compressing. @return 0 or -ENOMEM */
int mkfs_contents_mark(struct mkfs_contents *c, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A unit of a file (digest.h) was read. @return 0 or -ENOMEM */
int mkfs_contents_digest(struct mkfs_contents *c, uint32_t inode, uint64_t offset, uint64_t unit,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * All is there, and so are all inodes: each gets where its extents are, and whether it was marked. Until then the
 * source is not looked at, since it may still grow.
 */
void mkfs_contents_settle(const struct mkfs_contents *c, struct source *source);

#endif
