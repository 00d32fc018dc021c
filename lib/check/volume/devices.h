/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DEVICES_H
#define BTRKIT_CHECK_DEVICES_H

#include "lib/check/volume/volume.h"

/* Finds a device item, or returns NULL. */
const struct dev_item *volume_find_device(const struct volume_check *v, uint64_t devid);
/* Checks the device items against the superblock, the devices and their extents. */
void volume_devices(const struct volume_check *v);

#endif
