/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_TAR_H
#define BTRKIT_EXTRACT_TAR_H

#include <locale.h>

#include "lib/extract/extract.h"

struct archive;
struct archive_entry;

/* A range of a file that is not a hole. */
struct tar_region {
	uint64_t start, end;
};

struct tar {
	struct archive *a;
	struct archive_entry *e;
	locale_t utf8; /* may be 0 */
	btrkit_write_fn write;
	void *ctx;
	int error;	/* result of the write function; nothing is written after a failure */
	bool abandoned; /* the archive is incomplete, output is discarded */
	bool silent;	/* output of libarchive is discarded */
	/* Output buffer, because libarchive writes in small pieces. */
	uint8_t *out;
	size_t out_len;
	uint64_t written; /* total bytes */
	/* Position in the current file. */
	uint64_t position;
	/* Data ranges of a file with holes, and index of the next one. */
	struct tar_region *regions;
	size_t num_regions, room_regions, at;
	bool listed; /* the list of ranges was written */
};

/* Writes to the archive, bypassing libarchive. */
void tar_output(struct tar *t, const void *data, size_t len);
/* Writes contents of a file through libarchive. */
int tar_write(struct extract *x, const void *data, size_t len) BTRKIT_MUST_CHECK;

/* In tar_sparse.c: */
/*
 * Holes: libarchive is given the list of data ranges before the contents of a file, and would then require all holes to
 * be written as zeros, 2 GiB at a time. So everything after the list is written bypassing libarchive.
 *
 * Adds the data ranges of a file to the entry. Unreadable parts at the end become holes.
 * @return 0; 1: there are holes; -ENOMEM
 */
int tar_find_holes(struct extract *x, struct btrkit_file *f, const struct extract_item *item) BTRKIT_MUST_CHECK;
/* Writes data of a file with holes, after its header; an extract_put_fn. */
int tar_put_sparse(void *ctx, uint64_t offset, const void *data, size_t len);
/* Writes zeros for missing data, and finishes the entry. */
int tar_end_sparse(struct extract *x, const struct extract_item *item) BTRKIT_MUST_CHECK;

/* In tar_attributes.c: */
/* Adds ACLs, other attributes and flags of an inode to the entry. */
int tar_attributes(struct extract *x, struct archive_entry *e, const struct extract_item *item) BTRKIT_MUST_CHECK;

#endif
