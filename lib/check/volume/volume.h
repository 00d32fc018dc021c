/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_VOLUME_H
#define BTRKIT_CHECK_VOLUME_H

/* Contents of the chunk tree and the device tree, for the files that compare them. */

#include "lib/check/state.h"
#include "lib/format/items/chunk.h"
#include "lib/format/items/dev.h"
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

/* groups.c: reads the block group items; fills in groups. */
int volume_groups(struct volume_check *v);
/* dev_extents.c: checks the device tree. */
int volume_dev_extents(struct volume_check *v);
/* devices.c */
const struct dev_item *volume_find_device(const struct volume_check *v, uint64_t devid);
void volume_devices(const struct volume_check *v);
/* system_chunks.c: checks a system chunk of the chunk tree, and those in the superblock. */
void volume_system_chunk(struct volume_check *v, const struct item *item);
void volume_system_chunks(const struct volume_check *v);

#endif
