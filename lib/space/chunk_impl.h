/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CHUNK_IMPL_H
#define BTRKIT_SPACE_CHUNK_IMPL_H

/* What chunk.c and chunk_place.c share. */

#include "lib/space/space_impl.h"

/* How many of a chunk's stripes count for its length. */
unsigned chunk_data_stripes(uint64_t type, unsigned num_stripes);

#endif
