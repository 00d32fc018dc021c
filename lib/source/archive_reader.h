/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_ARCHIVE_READER_H
#define BTRKIT_SOURCE_ARCHIVE_READER_H

/* Reading one archive: archive.c finds members, archive_add.c adds them. */

#include "lib/source/archive.h"
#include "lib/source/archive_links.h"
#include "lib/source/members.h"

struct archive_reader {
	struct source *s;
	const struct source_sink *sink;
	struct archive_stream stream;
	struct archive_entry *e;
	const char *path;
	struct source_time mtime;
	struct archive_links links;
	bool again; /* the second pass, for hard links to hidden names */
	unsigned seen; /* of a saved image of containers, by archive_image.c */
};

/* In archive_add.c: */
/* Adds the current member, or what it hides. */
int archive_add_member(struct archive_reader *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* In the second pass: adds the current member under the names that wait for it. */
int archive_add_late(struct archive_reader *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the other names that wait, after the second pass. */
int archive_link_late(struct archive_reader *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In archive.c: */
/* Reports "PATH: ..." for the current member. @return -errnum */
int archive_refuse(const struct archive_reader *r, struct btrkit_error *err, int errnum, const char *fmt, ...)
	BTRKIT_PRINTF(4, 5);

/* In archive_image.c: */
/* Refuses an archive that has images of containers instead of files. */
int archive_check_image(struct archive_reader *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
