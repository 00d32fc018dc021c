/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_DU_H
#define CMD_DU_H

/* The request of du. */

#include "cmd/cmd.h"

/* --freed-by: subvolumes to be deleted together. */

struct du_subset {
	char *text;	/* as given */
	uint64_t *ids;
	uint32_t *owners;
	size_t n;
};

/* In du_subset.c: */
/* Parses the argument. Syntax errors are usage errors. @return false: out of memory */
bool du_subset_take(const struct command *cmd, struct du_subset *s, char *text);
void du_subset_free(struct du_subset *s);

/* Finds the ids of the subvolumes. Ids given as numbers are not checked yet. @return 0; <0 */
int du_subset_resolve(struct btrkit_fs *fs, struct du_subset *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Finds the owners for the ids, in ascending order and without duplicates. @return 0; -ENOENT */
int du_subset_find(const struct btrkit_usage *u, struct du_subset *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* --html: the file for the page. */
struct du_page {
	const char *file; /* as given; "-": stdout; NULL: none */
	struct cmd_whole whole;
	int error; /* negative errno of a write */
};

/* In du_page.c: */
bool du_page_is_stdout(const struct du_page *p);
/*
 * Creates the file. Refuses what is not a regular file, and the devices being read. @return 0; <0: call du_page_end()
 * anyway
 */
int du_page_begin(struct du_page *p, const char *const *devices, size_t n,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A btrkit_write_fn; @ctx is a struct du_page. */
int du_page_write(void *ctx, const void *data, size_t len);
/* @ret: the result so far; after a failure the old file stays. @return @ret; <0: the page could not be written */
int du_page_end(struct du_page *p, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
