/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_RUN_H
#define BTRKIT_IO_UNDO_RUN_H

/* State of an undo. */

#include <btrkit/undo.h>

#include "lib/format/super.h"
#include "lib/io/undo_index.h"

#define WINDOW_SECTORS (UNDO_WINDOW / UNDO_SECTOR)

/* What is restored last: the first sector of each superblock, and the first block of the device. */
enum { FIRST_BLOCK = SUPER_MIRRORS, PIECES };

struct piece {
	uint64_t offset;
	uint32_t len;
	bool kept;	/* the file has it */
	uint8_t old[UNDO_BLOCK];
};

/* A device of the file. */
struct undo_target {
	struct btrkit_io *device;
	size_t first, end;	/* range of its entries */
	struct piece pieces[PIECES];
	uint64_t different;	/* bytes that differ */
};

struct undo {
	struct btrkit_io *file;
	struct undo_index index;
	const struct btrkit_undo_options *opts;
	struct undo_target *targets;	/* as many as the file has */
	struct undo_target *t;		/* the one being processed */
	/* The current window. */
	uint64_t start;
	uint8_t *now, *old;	/* its contents on the device and in the file, as far as they were saved */
	uint8_t sectors[WINDOW_SECTORS];
	uint32_t sums[WINDOW_SECTORS];	/* checksums of sectors that differ from the saved ones */
	bool quiet;		/* do not report progress */
	uint64_t done;		/* bytes processed; everything saved is processed twice */
};

/*
 * In undo_run.c: compares target @u->t with its device, completely or, without @all, only the first window.
 * @return 0; -EINVAL: the device has changed since; <0
 */
int undo_check(struct undo *u, bool all, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* If @ret is a failure, prefixes its message with "undo file NAME: ". @return @ret */
int undo_blame(const struct undo *u, int ret, struct btrkit_error *err);

/* In undo_match.c: finds out which of @devices is which device of the file. @return 0; -EINVAL: they do not match */
int undo_match(struct undo *u, struct btrkit_io *const *devices, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
