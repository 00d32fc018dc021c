/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_VOLUME_H
#define BTRKIT_CHECK_VOLUME_H

/* Contents of the chunk tree and the device tree, for the files that compare them. */

#include "lib/check/state.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/devices/dev.h"
#include "lib/volume/volume.h"

/* A chunk in the chunk tree. */
struct known_chunk {
	uint64_t logical, length, type;
};

/* A stripe of a chunk, according to the chunk item. */
struct known_stripe {
	struct dev_extent is;
	uint8_t dev_uuid[16];
};

struct volume_check {
	struct check *c;
	struct array chunks;  /* struct known_chunk, by address, not overlapping */
	struct array stripes; /* struct known_stripe of all chunks */
	struct array devices; /* struct dev_item, by devid */
	struct array extents; /* struct dev_extent, in key order */
	bool devices_lost;    /* device items could not be read */
	bool extents_lost;    /* some of the device tree could not be read */
};

/* Checks chunks, device extents, devices and block group items; fills in groups. */
int check_volume(struct check *c);

#endif
