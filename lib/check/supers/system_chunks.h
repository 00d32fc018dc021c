/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SYSTEM_CHUNKS_H
#define BTRKIT_CHECK_SYSTEM_CHUNKS_H

#include "lib/check/volume/volume.h"

/* Checks a system chunk of the chunk tree, and those in the superblock. */
void volume_system_chunk(struct volume_check *v, const struct item *item);
void volume_system_chunks(const struct volume_check *v);

#endif
