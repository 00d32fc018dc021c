/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_DEVICE_H
#define BTRKIT_TESTS_FUZZ_DEVICE_H

/*
 * The device that an input describes. Input: records of an offset on the device (le64), a length (le32) and that many
 * bytes, as written by pack.py. Each record is a superblock or a tree block, whose checksum is corrected here; an odd
 * offset means file data, which starts one byte before it and is not changed. Everything else reads as zeros. Bytes
 * after the last record are choices for the target.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "tests/fuzz/fuzz.h"

/* The choices for the target; zeros after their end. */
struct fuzz_choices {
	const uint8_t *pos, *end;
};

uint64_t fuzz_choose(struct fuzz_choices *c, size_t bytes);

/*
 * Opens the device. @data is modified, and must remain until the device is closed. @dense: tree blocks are placed one
 * after the other instead of at their offsets, on a device that is no larger.
 * @return NULL if there is no memory
 */
struct btrkit_io *fuzz_device_open(uint8_t *data, size_t size, bool dense, struct fuzz_choices *choices);

/* The address in the header of tree block number @i; 0 after the last block. */
uint64_t fuzz_device_block(const struct btrkit_io *io, size_t i);

/* Aborts unless a failure has an error message; -EFBIG comes from fuzz_write(). */
void fuzz_ended(int ret, const struct btrkit_error *err);

/* A btrkit_write_fn for JSON Lines: the output must be one object per line, with complete strings. */
struct fuzz_json {
	uint64_t left; /* as in fuzz_write() */
	uint32_t depth;
	unsigned utf8; /* remaining bytes of a UTF-8 character */
	bool string, escape;
};

int fuzz_write_json(void *ctx, const void *data, size_t len);
/* @ret: result of the writer; after a failure the output may be truncated */
void fuzz_json_ended(const struct fuzz_json *j, int ret);

#endif
