/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_GROUPS_H
#define BTRKIT_CHECK_GROUPS_H

#include "lib/check/state.h"
#include "lib/check/volume/volume.h"

/* Finds the group that contains an address, or returns NULL. *hint: where the search starts; updated. */
const struct check_group *check_group_of(const struct check *c, uint64_t logical, size_t *hint);
/* Called by extents.c for each block group item. */
void check_group_item(struct check *c, const struct btrkit_key *key);
/* Reads the block group items; fills in groups. */
int volume_groups(struct volume_check *v);

#endif
