/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_VOLUME_H
#define BTRKIT_CHECK_VOLUME_H

/* What chunk and device tree say, for the files that hold it against each other. */

#include "lib/check/state.h"
#include "lib/format/items/chunk.h"
#include "lib/format/items/dev.h"
#include "lib/volume/volume.h"

/* Of a chunk in the chunk tree. */
struct known_chunk {
	uint64_t logical, length, type;
};

/* The place of a copy of a chunk, as the chunk tells it. */
struct known_stripe {
	struct dev_extent is;
	uint8_t dev_uuid[16];
};

struct volume_check {
	struct check *c;
	struct check_list chunks;  /* struct known_chunk, by address, none overlapping another */
	struct check_list stripes; /* struct known_stripe of all chunks */
	struct check_list devices; /* struct dev_item, by devid */
	struct check_list extents; /* struct dev_extent, in the order of their keys */
	bool devices_lost;	   /* items of devices */
	bool extents_lost;	   /* of the device tree */
};

/* groups.c: the block group items; fills in groups. */
int volume_groups(struct volume_check *v);
/* dev_extents.c: the device tree. */
int volume_dev_extents(struct volume_check *v);
/* devices.c */
const struct dev_item *volume_find_device(const struct volume_check *v, uint64_t devid);
void volume_devices(const struct volume_check *v);
/* system_chunks.c: one of the chunk tree; and those of the superblock. */
void volume_system_chunk(struct volume_check *v, const struct item *item);
void volume_system_chunks(const struct volume_check *v);

#endif
