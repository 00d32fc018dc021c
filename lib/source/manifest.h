/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_MANIFEST_H
#define BTRKIT_SOURCE_MANIFEST_H

/* Manifests are the dumpfiles of composefs: a line for each name, composefs-dump(5) says what is in it. */

#include "lib/source/files.h"

struct manifest {
	struct source *s;
	uint64_t line; /* the last one that was read */
	/* Hard links to what has not come yet. */
	struct manifest_link *links;
	size_t num_links, max_links;
};

/* The next line, without its end; it is written to. */
int manifest_read_line(struct manifest *m, char *line, size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After the last one. */
int manifest_finish(struct manifest *m, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void manifest_free(struct manifest *m);

#endif
