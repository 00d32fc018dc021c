/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_UNDO_RIG_H
#define BTRKIT_TESTS_UNDO_RIG_H

/* A device that is written through an undo file, with records of what reaches both. */

#include "tests/unit/unit.h"

#include <btrkit/error.h>
#include <btrkit/undo.h>

#include "lib/format/super.h"
#include "lib/io/undo.h"
#include "lib/io/undo_log.h"
#include "tests/crash/sparse.h"

#define MIB (1u << 20)

struct rig {
	struct sparse *before, *device, *file;
	struct btrkit_io *io;
	uint64_t file_end;
	bool file_waits;	/* written to since its last flush */
	unsigned device_writes, early_writes, discards;
	uint64_t calls, fail_at;	/* of the file */
	int error;
};

/* Pseudo-random numbers, the same on every machine. */
void rig_seed(uint64_t seed);
uint64_t rig_draw(void);

/* Call number @file_fails_at of the file, counted from 0, and all after it return @error. */
int rig_start(struct rig *r, uint64_t size, uint64_t file_fails_at, int error, struct btrkit_error *err);
/* Asserts that nothing reached the device before its undo record was on disk. */
void rig_close(struct rig *r);
void rig_end(struct rig *r);

int rig_undo(struct rig *r, struct sparse *device, struct btrkit_undo_result *result, struct btrkit_error *err);
void rig_must_undo(struct rig *r, struct sparse *device);

/* Writes 5,000 bytes. */
void rig_write(struct rig *r, uint64_t at, uint8_t byte);
/* Write in three steps, the superblock last, as writers of filesystems do, then close. */
void rig_use(struct rig *r);

#endif
