// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/nearest.h"

static const struct command *const commands[] = {
	&cmd_cat,
	&cmd_check,
	&cmd_diff,
	&cmd_du,
	&cmd_dump_super,
	&cmd_dump_tree,
	&cmd_edit,
	&cmd_extract,
	&cmd_features,
	&cmd_fiemap,
	&cmd_inode_resolve,
	&cmd_list_chunks,
	&cmd_list_devices,
	&cmd_list_subvolumes,
	&cmd_logical_resolve,
	&cmd_ls,
	&cmd_map_logical,
	&cmd_mkfs,
	&cmd_space_cache,
	&cmd_stat,
	&cmd_tree_stats,
	&cmd_undo,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(void)
{
	printf("Usage: btrkit COMMAND [OPTION]... ARGUMENT...\n"
	       "Read, make and change btrfs filesystems without mounting them.\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-24s  %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-24s  %s\n", "--help", "print this help and exit");
	printf("  %-24s  %s\n", "--version", "print version, build options and licence, and exit");
	printf("\nbtrkit COMMAND --help lists the options of a command.\n");
}

static void print_version(void)
{
	printf("btrkit %s\nbuilt with %s\nlicence %s\n", btrkit_version(), btrkit_build_features(),
	       btrkit_build_license());
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	return NULL;
}

/* Reports an unknown word: an option or a command. */
static void refuse_word(const char *name)
{
	struct cmd_nearest nearest = { .given = name };
	struct cmd_hint hint;

	if (*name == '-') {
		cmd_nearest_try(&nearest, "--help");
		cmd_nearest_try(&nearest, "--version");
		cmd_say("btrkit: unknown option '%s'%s (see btrkit --help)", name,
			cmd_nearest_hint(&nearest, "", &hint));
		return;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		cmd_nearest_try(&nearest, commands[i]->name);
	cmd_say("btrkit: unknown command '%s'%s (see btrkit --help)", name, cmd_nearest_hint(&nearest, "", &hint));
}

/* Handles a word that is not a command. */
static int run(const char *name)
{
	if (!name) {
		cmd_say("btrkit: no command (see btrkit --help)");
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "help")) {
		print_help();
		return EXIT_DONE;
	}
	if (!strcmp(name, "--version")) {
		print_version();
		return EXIT_DONE;
	}
	refuse_word(name);
	return EXIT_USAGE;
}

/*
 * Occupies standard descriptors that are closed. Otherwise the first device opened would get such a number, and
 * messages would be written to it. Reading and writing the replacement fails as for a closed descriptor. @return false:
 * cannot open
 */
static bool hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_DIRECTORY) != fd)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct command none = { .name = argc > 1 ? argv[1] : "" };
	const struct command *cmd = NULL;
	int status;

	if (!hold_standard_descriptors())
		return EXIT_FAILED;
	/* Let write() report a closed pipe, so that files get closed properly. */
	signal(SIGPIPE, SIG_IGN);
	/* The same for the file size limit. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc && !strcmp(basename(argv[0]), "mkfs.btrfs")) {
		cmd_is_mkfs_btrfs = true;
		return cmd_close_stdout(&cmd_mkfs, cmd_mkfs.run(&cmd_mkfs, argc, argv));
	}
	if (argc > 1)
		cmd = find(argv[1]);
	status = cmd ? cmd->run(cmd, argc - 1, argv + 1) : run(argc > 1 ? argv[1] : NULL);
	return cmd_close_stdout(cmd ? cmd : &none, status);
}
