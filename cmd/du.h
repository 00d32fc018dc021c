/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_DU_H
#define CMD_DU_H

/* What du is asked for. */

#include "cmd.h"

/* --freed-by: subvolumes that are to be deleted together. */

struct du_subset {
	char *text;	/* as given */
	uint64_t *ids;
	uint32_t *owners;
	size_t n;
};

/* Takes the argument; what is wrong with it is a usage error. @return false: no memory */
bool du_subset_take(const struct command *cmd, struct du_subset *s, char *text);
void du_subset_free(struct du_subset *s);

/* Finds the numbers of the subvolumes. A number may turn out to be of none. @return 0; <0 */
int du_subset_resolve(struct btrkit_fs *fs, struct du_subset *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Finds the owners that they are, in ascending order, each once. @return 0; -ENOENT */
int du_subset_find(const struct btrkit_usage *u, struct du_subset *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* --html: the file that a page goes to. */
struct du_page {
	const char *file; /* as given; "-": the standard output; NULL: there is none */
	struct cmd_whole whole;
	int error; /* negative errno, of writing */
};

bool du_page_is_stdout(const struct du_page *p);
/* Refuses what is no file to be written, devices among it. @return 0; <0: du_page_end() is due all the same */
int du_page_begin(struct du_page *p, const char *const *devices, size_t n,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A btrkit_write_fn; @ctx is a struct du_page. */
int du_page_write(void *ctx, const void *data, size_t len);
/* @ret: what happened meanwhile; after a failure all is as before. @return @ret; <0: the page could not be written */
int du_page_end(struct du_page *p, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
