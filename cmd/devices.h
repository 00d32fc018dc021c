/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_DEVICES_H
#define CMD_DEVICES_H

/* The options that say which devices a filesystem has, and from where to start reading it. Included by cmd.h. */

#include "cmd/cmd.h"

/* The devices of the filesystem of a command. */
struct cmd_devices {
	const char **at; /* the first is the argument, which the command stores there */
	size_t n;
	bool noscan;
	bool no_links;	 /* PATH follows no symbolic links */
	bool degraded;	 /* write without devices that are missing or stale */
};
#define CMD_OPT_DEVICE 1000
#define CMD_OPT_NOSCAN 1001
#define CMD_OPT_NO_LINKS 1005
#define CMD_OPT_DEGRADED 1006
/* For commands that take paths of files. */
#define CMD_LINKS_OPTION { CMD_OPT_NO_LINKS, "no-dereference", NULL, "follow no symbolic links in PATH" }
#define CMD_DEGRADED_OPTION { CMD_OPT_DEGRADED, "degraded", NULL, "write without devices that are missing or stale" }
/* For commands that only open devices given as arguments. */
#define CMD_NOSCAN_OPTION { CMD_OPT_NOSCAN, "noscan", NULL, "use only the given devices, do not look for others" }
#define CMD_DEVICE_OPTIONS \
	{ CMD_OPT_DEVICE, "device", "DEV", "also use this device of the same filesystem (repeatable)" }, \
	CMD_NOSCAN_OPTION
/* For commands that can start from roots other than the newest. */
#define CMD_OPT_SUPER 's'
#define CMD_OPT_BACKUP 1002
#define CMD_OPT_TREE_ROOT 1003
#define CMD_OPT_CHUNK_ROOT 1004
#define CMD_START_OPTIONS \
	{ CMD_OPT_SUPER, "super", "N", "start from copy N of the superblock: 0, 1 or 2" }, \
	{ CMD_OPT_BACKUP, "backup", "N", "start from the backup roots in slot N, 0 to 3" }, \
	{ CMD_OPT_TREE_ROOT, "tree-root", "BYTENR", "use the block at this address as root of the root tree" }, \
	{ CMD_OPT_CHUNK_ROOT, "chunk-root", "BYTENR", "use the block at this address as root of the chunk tree" }

/* Handles the option just returned by getopt_long() if it is one of CMD_START_OPTIONS. @return whether it is */
bool cmd_start_option(const struct command *cmd, struct btrkit_open_options *o, int option);

/* Allocates room for as many devices as there are arguments. @return 0; the exit status, after reporting a failure */
int cmd_devices_begin(const struct command *cmd, int argc, struct cmd_devices *ret);
/* Handles the option just returned by getopt_long() if it is one of those above. @return whether it is */
bool cmd_devices_option(struct cmd_devices *d, int option);
void cmd_devices_end(struct cmd_devices *d);
/* Calls cmd_open(). */
struct btrkit_fs *cmd_devices_open(const struct command *cmd, const struct cmd_devices *d,
				   const struct btrkit_open_options *opts);
/*
 * Like cmd_devices_open(), for commands that show files: prints a note if the log tree has newer contents, which Linux
 * would show.
 */
struct btrkit_fs *cmd_files_open(const struct command *cmd, const struct cmd_devices *d);

#endif
