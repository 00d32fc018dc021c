/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_FOLD_H
#define CMD_FOLD_H

#include "cmd/cmd.h"

#define CMD_FOLDS 32u	/* causes and devices that are told apart; more are not folded */

#define CMD_FOLD_PLACES 8u	/* of errors without a cause that are remembered */

/* Sets cmd_fold.all. */
#define CMD_VERBOSE_OPTION { 'v', "verbose", NULL, "report each place of damage, also those of one cause" }

/*
 * Damage that is reported while a command runs. What repeats, as the blocks of a missing device do, is one line at the
 * end, with the number and where it is. Starts zeroed but for the first two members; see cmd_fold_end().
 */
struct cmd_fold {
	const struct command *cmd;
	const char *device;
	bool all;    /* fold nothing */
	bool advise; /* say once for each kind what can be done next */
	struct cmd_folded {
		enum btrkit_cause cause;
		uint64_t devid;
		uint64_t times;	      /* 0: unused */
		uint64_t folded;      /* those that were not printed */
		uint64_t low, high;   /* logical addresses, if any is known */
		bool placed;
		struct btrkit_error first; /* of the folded ones */
		char *path;		   /* of that, or NULL */
		bool named;		   /* the first of all had a path, and no advice */
		struct btrkit_error sample; /* that one */
	} kinds[CMD_FOLDS];
	bool told; /* there was damage: something is missing from the output */
	/* Errors without a cause, of which the same place is told once. */
	struct btrkit_error places[CMD_FOLD_PLACES];
	unsigned num_places;
};

/* Prints damage, or counts it to be printed at the end. @path: of @len bytes, or NULL */
void cmd_fold_tell(struct cmd_fold *f, const char *path, size_t len, const struct btrkit_error *what);
/* A btrkit_lost_fn, for damage without a path. @ctx: a struct cmd_fold. @return 0 */
int cmd_fold_lost(void *ctx, const struct btrkit_error *what);
/* Prints what was counted. */
void cmd_fold_end(struct cmd_fold *f);

#endif
