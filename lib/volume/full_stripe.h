/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_FULL_STRIPE_H
#define BTRKIT_VOLUME_FULL_STRIPE_H

/*
 * Writes to chunks with parity in full stripes. Nothing is read: bytes of a full stripe that the caller does not
 * provide become zero, and the parity is computed from the result. The caller must ensure that the full stripe has no
 * other contents.
 *
 * Consecutive full stripes are collected, so that each stripe is written with one write.
 */

#include "lib/volume/volume.h"

struct full_stripe_writer;

/* Statistics of what was written. */
struct full_stripe_writes {
	uint64_t writes, bytes;
};

/* Whether an address is in a chunk with parity. */
bool full_stripe_wanted(const struct volume *v, uint64_t logical);

/*
 * @reserve: reserve space for the full stripes with btrkit_io_reserve() instead of writing them. @return 0 or -ENOMEM
 */
int full_stripe_create(const struct volume *v, bool reserve, struct full_stripe_writer **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @w may be NULL. */
struct full_stripe_writer *full_stripe_destroy(struct full_stripe_writer *w);
/*
 * Adds bytes to full stripes. All contents of a full stripe must be added before those of any full stripe that does not
 * follow it, because that may write the pending full stripes.
 * @return 0; -EOPNOTSUPP: build without ISA-L; -EUCLEAN: the range is not in a chunk with parity; error of a device
 */
int full_stripe_put(struct full_stripe_writer *w, uint64_t logical, const void *data, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes the pending full stripes. */
int full_stripe_finish(struct full_stripe_writer *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

struct full_stripe_writes full_stripe_written(const struct full_stripe_writer *w);

#endif
