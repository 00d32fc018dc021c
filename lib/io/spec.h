/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SPEC_H
#define BTRKIT_IO_SPEC_H

/* PATH, PATH?offset=N[&size=N], PATH?partition=N: which part of a device or file is meant. */

#include <btrkit/types.h>

struct io_spec {
	char *path;		/* owned by the caller after a successful parse */
	uint64_t offset;
	uint64_t size;		/* 0: up to the end */
	unsigned partition;	/* 0: none */
};

/*
 * Splits @spec. A path that exists as it stands, question mark and all, is taken as it stands.
 * @return 0, -EINVAL (unknown word, bad number, overlap of options), -ENOMEM
 */
int io_spec_parse(const char *spec, struct io_spec *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Turns a partition number into offset and size, and holds both against @device_size.
 * @return 0; -EINVAL when the part does not lie in the device; -ENOENT: no such partition
 */
int io_spec_locate(struct io_spec *spec, int fd, uint64_t device_size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
