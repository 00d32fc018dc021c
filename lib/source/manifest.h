/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_MANIFEST_H
#define BTRKIT_SOURCE_MANIFEST_H

/* Manifests are composefs dump files with one line per name; see composefs-dump(5). */

#include "lib/source/files.h"

struct manifest {
	struct source *s;
	uint64_t line; /* number of the last line read */
	/* Hard links whose target was not found yet. */
	struct manifest_link *links;
	size_t num_links, max_links;
};

/* Processes the next line, without the newline. The buffer is modified. */
int manifest_read_line(struct manifest *m, char *line, size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To be called after the last line. */
int manifest_finish(struct manifest *m, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void manifest_free(struct manifest *m);

#endif
