/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_RANGES_H
#define BTRKIT_USAGE_PATHS_RANGES_H

#include "lib/usage/paths/paths.h"

/* @range_memory: see struct btrkit_usage_paths_options */
int paths_ranges_init(struct paths_ranges *r, uint64_t range_memory, size_t num_nodes, uint32_t sectorsize,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void paths_ranges_release(struct paths_ranges *r);
void paths_ranges_add(struct paths_ranges *r, const struct paths_range *ranges, size_t n);
/* Adds up the ranges in the window, and moves the window to the addresses after it. @return whether there are any */
bool paths_ranges_sum(struct paths_ranges *r, struct btrkit_usage_paths *p);

#endif
