/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_TAR_H
#define BTRKIT_EXTRACT_TAR_H

#include <locale.h>

#include "lib/extract/extract.h"

struct archive;
struct archive_entry;

/* A part of a file that is no hole. */
struct tar_region {
	uint64_t start, end;
};

struct tar {
	struct archive *a;
	struct archive_entry *e;
	locale_t utf8; /* or 0 */
	btrkit_write_fn write;
	void *ctx;
	int error;	/* what the write function returned; from then on nothing is written */
	bool abandoned; /* nor is it worth the trouble */
	bool silent;	/* what libarchive writes is not wanted */
	/* What is written at once: libarchive hands on each piece as it comes. */
	uint8_t *out;
	size_t out_len;
	uint64_t written; /* in all */
	/* Of the file that is written: where it is. */
	uint64_t position;
	/* Where its data is, if not everywhere, and which of that comes next. */
	struct tar_region *regions;
	size_t num_regions, room_regions, at;
	bool listed; /* in the archive */
};

/* Bytes of the archive, past libarchive. */
void tar_output(struct tar *t, const void *data, size_t len);
/* The same through it: of a file. */
int tar_write(struct extract *x, const void *data, size_t len) BTRKIT_MUST_CHECK;

/*
 * Holes: libarchive tells of them before the contents of a file, and then wants to be given all of them as zeros, 2 GiB
 * at a time. So what follows the list is written past it.
 *
 * Where the data of a file is, for the entry. Behind what cannot be read there is a hole.
 * @return 0; 1: there are holes; -ENOMEM
 */
int tar_find_holes(struct extract *x, struct btrkit_file *f, const struct extract_item *item) BTRKIT_MUST_CHECK;
/* Data of a file with holes, when its header is there; an extract_put_fn. */
int tar_put_sparse(void *ctx, uint64_t offset, const void *data, size_t len);
/* Zeros where data is missing, and the end of the entry. */
int tar_end_sparse(struct extract *x, const struct extract_item *item) BTRKIT_MUST_CHECK;

/* ACLs, the other attributes and the flags of an inode, in the forms of an archive. */
int tar_attributes(struct extract *x, struct archive_entry *e, const struct extract_item *item) BTRKIT_MUST_CHECK;

#endif
