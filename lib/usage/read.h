/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_READ_H
#define BTRKIT_USAGE_READ_H

#include "lib/usage/state.h"

/*
 * Reads blocks into @buf one after another, and contiguous ones in one request. ok[i] is set if block i was read;
 * unreadable blocks are reported.
 *
 * @sets: owners of each block; NULL if @refs have owners
 */
int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
