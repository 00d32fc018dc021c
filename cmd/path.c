// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments that are paths in a filesystem. */
#include "cmd/cmd.h"


const char *cmd_path(const struct command *cmd, const char *path)
{
	if (!*path)
		cmd_usage_error(cmd, "empty path (the root directory is /)");
	return path;
}

void cmd_check_paths(const struct command *cmd, int argc, char **argv, int first)
{
	for (int i = first; i < argc; i++)
		(void)cmd_path(cmd, argv[i]);
}

int cmd_find_subvolume(struct btrkit_fs *fs, const char *subvol, uint64_t *ret, struct btrkit_error *err)
{
	if (subvol)
		return btrkit_subvolume_find(fs, subvol, ret, err);
	*ret = BTRKIT_TOP_LEVEL;
	return 0;
}
