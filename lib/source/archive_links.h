/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_ARCHIVE_LINKS_H
#define BTRKIT_SOURCE_ARCHIVE_LINKS_H

/*
 * Hard links within a layer whose target a layer above hides. The contents of the target have passed by when the link
 * arrives, so the archive is read a second time for them.
 *
 * Example: the layer above has "a"; this one has "a", and "b" as a hard link to "a". Then "b" is this layer's file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <btrkit/error.h>

/* A name of the archive that was not added. */
struct archive_hidden;
/* A name that is to be added in the second pass. */
struct archive_late {
	char *path;
	struct archive_hidden *target;
};
struct archive_links {
	struct archive_hidden *hidden;
	struct archive_late *late;
	size_t num_late, max_late;
};

/*
 * Notes a name that is hidden. @target: what it is a hard link to, SOURCE_NONE or an inode that was added;
 * @also: another hidden name, or NULL
 */
int archive_links_hide(struct archive_links *l, const char *path, uint32_t target, struct archive_hidden *also,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Finds a hidden name; of a hard link to another one, finds that. *ret: NULL if there is none */
int archive_links_find(const struct archive_links *l, const char *path, struct archive_hidden **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the inode of a hidden name. @return SOURCE_NONE: it is not added (yet) */
uint32_t archive_hidden_inode(const struct archive_hidden *h);
void archive_hidden_set_inode(struct archive_hidden *h, uint32_t inode);
/* Returns whether the contents of a hidden name are needed, and were not read yet. */
bool archive_hidden_wanted(const struct archive_hidden *h);
/* Notes a hard link that is to be added in the second pass. */
int archive_links_later(struct archive_links *l, const char *path, struct archive_hidden *target,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
void archive_links_free(struct archive_links *l);

#endif
