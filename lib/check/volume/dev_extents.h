/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DEV_EXTENTS_H
#define BTRKIT_CHECK_DEV_EXTENTS_H

#include "lib/check/volume/volume.h"

/* Checks the device tree. */
int volume_dev_extents(struct volume_check *v);

#endif
