/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_DEVICE_H
#define BTRKIT_TESTS_FUZZ_DEVICE_H

/*
 * The device that an input stands for. Input: records of an offset on the device (le64), a length (le32) and that many
 * bytes, as pack.py writes them: each is a superblock or a tree block, whose checksum is made good here; an odd offset
 * is that of data, one byte before, which stays as it is. What no record covers reads as zero. What is behind the last
 * record are choices for the target.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "tests/fuzz/fuzz.h"

/* The bytes that a target makes its choices by; zeros behind their end. */
struct fuzz_choices {
	const uint8_t *pos, *end;
};

uint64_t fuzz_choose(struct fuzz_choices *c, size_t bytes);

/*
 * @data is changed, and has to stay until the device is closed. NULL: no memory.
 * @dense: tree blocks stand one behind the other instead of at their offsets, and the device is no larger than they are
 */
struct btrkit_io *fuzz_device_open(uint8_t *data, size_t size, bool dense, struct fuzz_choices *choices);

/* What the header of tree block number @i says its address is; 0 behind the last. */
uint64_t fuzz_device_block(const struct btrkit_io *io, size_t i);

/* A failure must say what it is; -EFBIG is that of fuzz_write(). */
void fuzz_ended(int ret, const struct btrkit_error *err);

/* A btrkit_write_fn for JSON Lines: what it is given must be objects with strings that are closed, one a line. */
struct fuzz_json {
	uint64_t left; /* as fuzz_write() counts */
	uint32_t depth;
	unsigned utf8; /* bytes to come of a character */
	bool string, escape;
};

int fuzz_write_json(void *ctx, const void *data, size_t len);
/* @ret: of who wrote; output that was cut off is as good as its start. */
void fuzz_json_ended(const struct fuzz_json *j, int ret);

#endif
