/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_RUN_H
#define BTRKIT_IO_UNDO_RUN_H

/* An undo at work. */

#include <btrkit/undo.h>

#include "lib/format/super.h"
#include "lib/io/undo_index.h"

#define WINDOW_SECTORS (UNDO_WINDOW / UNDO_SECTOR)

/* What comes back last: the first sector of each superblock, and the device's first block. */
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
	size_t first, end;	/* its entries */
	struct piece pieces[PIECES];
	uint64_t different;	/* bytes */
};

struct undo {
	struct btrkit_io *file;
	struct undo_index index;
	const struct btrkit_undo_options *opts;
	struct undo_target *targets;	/* as many as the file has */
	struct undo_target *t;		/* at work */
	/* A window. */
	uint64_t start;
	uint8_t *now, *old;	/* as it is on the device and in the file, where that has it */
	uint8_t sectors[WINDOW_SECTORS];
	uint32_t sums[WINDOW_SECTORS];	/* of what is on the device, where that is not as it was */
	bool quiet;		/* nobody is told how far it is */
	uint64_t done;		/* bytes of two times what was saved */
};

/* undo_run.c: compares target @u->t with what is on its device, @all of it or the first window. @return 0; -EINVAL: it
 * has changed since; <0 */
int undo_judge(struct undo *u, bool all, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* "undo file NAME: " before the failure @ret, if it is one. @return @ret */
int undo_blame(const struct undo *u, int ret, struct btrkit_error *err);

/* undo_match.c: which of @devices is which of the file. @return 0; -EINVAL: they are not those of the file */
int undo_match(struct undo *u, struct btrkit_io *const *devices, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
