/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SPEC_H
#define BTRKIT_IO_SPEC_H

/* Device specifications: PATH, PATH?offset=N[&size=N], PATH?partition=N. */

#include <btrkit/types.h>

struct io_spec {
	char *path;		/* owned by the caller after a successful parse */
	uint64_t offset;
	uint64_t size;		/* 0: up to the end */
	unsigned partition;	/* 0: none */
};

/*
 * Parses @spec. If it names an existing file, including the question mark, it is only a path.
 * @return 0, -EINVAL (unknown or repeated option, invalid number), -ENOMEM
 */
int io_spec_parse(const char *spec, struct io_spec *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Determines offset and size of a partition, and checks that the part lies within @device_size.
 * @return 0; -EINVAL: it does not; -ENOENT: no such partition
 */
int io_spec_locate(struct io_spec *spec, int fd, uint64_t device_size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
