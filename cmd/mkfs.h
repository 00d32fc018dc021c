/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_MKFS_H
#define CMD_MKFS_H

/* btrkit mkfs: what its command line asks for. */

#include "cmd.h"

#define MKFS_SECTORSIZE 4096u	/* where none is asked for */
#define MKFS_MIXED_GROUPS 0x4u	/* bit of the incompat features */

struct mkfs_request {
	struct btrkit_mkfs_options opts;
	uint8_t fsid[16], device_uuid[16];	/* what opts points to, where given */
	bool force;
	unsigned verbosity;			/* 0: print nothing, 1: the summary, from 2 on more */
	const char *device;
	const char *undo;			/* file for what is overwritten, or NULL */
};

extern const struct cmd_option mkfs_options[];

/* Fills in what the command line and the environment say, or ends the program. */
void mkfs_parse(const struct command *cmd, int argc, char **argv, struct mkfs_request *req);

/* The list of -O; changes it. */
void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list);

/* Names of the features that are set, as -O takes them, each but the first after a comma. */
void mkfs_print_features(uint64_t incompat, uint64_t compat_ro);

/* Words about the options that do not stop them: one line each to stderr. */
void mkfs_warn(const struct command *cmd, const struct mkfs_request *req);

#endif
