/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_UNIT_DEVICE_H
#define BTRKIT_TESTS_UNIT_DEVICE_H

/* A sparse device in memory: only written ranges take memory, and these allocations never fail and are not counted. */

#include <btrkit/io.h>

#include "tests/crash/sparse.h"

struct device {
	struct btrkit_io io;
	struct sparse *at;
	bool owner; /* closing frees the contents and the device */
};

/* Closing such a device does nothing. */
void device_init(struct device *d, struct sparse *at, uint64_t size);
struct btrkit_io *device_create(struct sparse *at, uint64_t size);

#endif
