/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_TRIAL_H
#define BTRKIT_VOLUME_TRIAL_H

/*
 * Results of the copies of a range that were tried, for the error message of a failed read and for the callback that
 * is told of bad reads.
 */

#include "lib/volume/volume_impl.h"

/* maximum number of copies, plus: a rebuild from parity, a strip that was left out, the copy that was used */
#define TRIED_MAX (4 + 3)

struct trial {
	const struct volume *v;
	const struct volume_chunk *chunk;
	uint64_t logical;
	size_t len;
	bool fresh; /* stale devices are skipped */
	bool met;   /* there was a failure other than a device that was known to be missing or stale when opening */
	int ret; /* of the first copy, returned if all fail; 0: none has failed */
	struct btrkit_error err;
	unsigned num_copies, ways; /* number of copies tried, and of failed ways to rebuild it */
	struct btrkit_tried_copy copies[TRIED_MAX];
	char why[TRIED_MAX][sizeof(((struct btrkit_error *)NULL)->message)];
};

void trial_begin(struct trial *t, const struct volume *v, const struct volume_chunk *chunk, uint64_t logical,
		 size_t len, bool fresh);
/* Adds a mirror that failed. @e has the reason, and for a copy also the location. */
void trial_failed(struct trial *t, unsigned mirror, int ret, const struct btrkit_error *e);
/* Adds a bad strip: the rest of the full stripe is consistent without it. */
void trial_left_out(struct trial *t, uint64_t devid, uint64_t physical);
/* End: a mirror was read successfully. */
void trial_served(struct trial *t, unsigned mirror);
/* End: all mirrors failed. @return the error for the caller */
int trial_lost(struct trial *t, struct btrkit_error *err);

#endif
