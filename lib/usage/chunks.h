/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_CHUNKS_H
#define BTRKIT_USAGE_CHUNKS_H

#include "lib/usage/state.h"

/* Returns whether a chunk contains the range; *hint is the number of a chunk to try first. */
bool usage_in_chunk(const struct usage_work *w, uint64_t start, uint64_t length, size_t *hint);

#endif
