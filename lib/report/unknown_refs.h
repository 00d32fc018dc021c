/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNKNOWN_REFS_H
#define UNKNOWN_REFS_H

#include <btrkit/error.h>
#include <btrkit/fiemap.h>

/* What a listing of extents does not know of some of them. */
enum unknown_fact {
	UNKNOWN_SHARED, /* whether they are shared */
	UNKNOWN_OWNERS, /* all that refers to them */
	UNKNOWN_FACTS
};

/*
 * Extents whose references are not all known. A root of the extent tree that cannot be read is a reason for all files,
 * so a reason is told once for all files in a row that it concerns. Starts zeroed but for @sink.
 */
struct unknown_refs {
	const struct btrkit_fiemap_sink *sink;
	struct unknown_extents {
		struct btrkit_error why;
		uint64_t extents, files;	/* that wait to be told for this reason */
		struct btrkit_fiemap_file file; /* the first of them, without its path */
		char *path;
	} facts[UNKNOWN_FACTS];
	bool stopped; /* by the sink */
};

/* Adds @extents of @file. If the reason is another one than before, that one is told first. @return 0; <0 */
int unknown_refs_add(struct unknown_refs *u, enum unknown_fact fact, const struct btrkit_fiemap_file *file,
		     uint64_t extents, const struct btrkit_error *why, struct btrkit_error *err);
/*
 * Tells what waits, if @ret says that the listing went well, and releases all: one file is told with its path, several
 * with their number. @return @ret; <0: the sink's
 */
int unknown_refs_end(struct unknown_refs *u, int ret, struct btrkit_error *err);

#endif
