/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_QUERY_H
#define BTRKIT_USAGE_QUERY_H

#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"

/* Returns the owners of final set number @i by their inner numbers. */
const struct set *usage_set_at(const struct btrkit_usage *u, size_t i);

#endif
