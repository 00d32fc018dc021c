/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_UNIT_DEVICE_H
#define BTRKIT_TESTS_UNIT_DEVICE_H

/* A device of which only what was written takes memory, which it always gets and which is not counted. */

#include <btrkit/io.h>

#include "tests/crash/sparse.h"

struct device {
	struct btrkit_io io;
	struct sparse *at;
	bool owner; /* closing it frees what it has, and itself */
};

/* One that closing does nothing to. */
void device_init(struct device *d, struct sparse *at, uint64_t size);
struct btrkit_io *device_create(struct sparse *at, uint64_t size);

#endif
