/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_TRIAL_H
#define BTRKIT_VOLUME_TRIAL_H

/* What came of the copies of a range as they were tried, for the error of a read that fails, and for who watches. */

#include "lib/volume/volume_impl.h"

/* The copies that there are at the most; what parity gives; a strip that is left out; what serves. */
#define TRIED_MAX (4 + 3)

struct trial {
	const struct volume *v;
	const struct volume_chunk *chunk;
	uint64_t logical;
	size_t len;
	bool fresh; /* devices that others have left behind do not count */
	bool met;   /* something failed that is not known since the filesystem was opened */
	int ret; /* of the first copy, which is that of the whole; 0: none has failed */
	struct btrkit_error err;
	unsigned num_copies, ways; /* tried; that failed to rebuild it */
	struct btrkit_tried_copy copies[TRIED_MAX];
	char why[TRIED_MAX][sizeof(((struct btrkit_error *)NULL)->message)];
};

void trial_begin(struct trial *t, const struct volume *v, const struct volume_chunk *chunk, uint64_t logical,
		 size_t len, bool fresh);
/* A view failed: @e tells how, and where if it is a copy. */
void trial_failed(struct trial *t, unsigned view, int ret, const struct btrkit_error *e);
/* A strip that is bad, since without it the others agree. */
void trial_left_out(struct trial *t, uint64_t devid, uint64_t physical);
/* A view serves. */
void trial_served(struct trial *t, unsigned view);
/* None does. @return what is to be returned */
int trial_lost(struct trial *t, struct btrkit_error *err);

#endif
