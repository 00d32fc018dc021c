/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_DU_H
#define CMD_DU_H

/* --freed-by of du: subvolumes that are to be deleted together. */

#include "cmd.h"

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

#endif
