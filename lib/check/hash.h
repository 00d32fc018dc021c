/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_HASH_H
#define BTRKIT_CHECK_HASH_H

#include "lib/check/state.h"

/* Hash of a reference. A reference with a count contributes its hash @ref->count times. */
uint64_t check_ref_hash(const struct check *c, const struct extent_ref *ref, uint64_t bytenr);
/* Keyed hash of something that must occur in two places, such as a name or an inode. @kind separates the domains. */
uint64_t check_hash(const struct check *c, unsigned kind, const uint64_t *numbers, size_t n, const void *bytes,
		    size_t len);

#endif
