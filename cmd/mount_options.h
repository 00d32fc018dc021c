/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_MOUNT_OPTIONS_H
#define CMD_MOUNT_OPTIONS_H

#include "cmd/cmd.h"

/*
 * Looks for mount options of a filesystem in /etc/fstab and on the kernel's command line that choose another free space
 * cache than @kind. Prints a line on stderr for each, which says what the next mount does.
 */
void cmd_warn_of_mount_options(const struct command *cmd, const struct btrkit_fs_info *info,
			       const struct cmd_devices *devices, enum btrkit_space_cache_kind kind);

#endif
