// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LD_PRELOAD library for ignored.py: hides the option IGNORED ("COMMAND:OPTION") and its argument from btrkit. If the
 * command line would be refused because of the option, it is still refused. A file in the directory NOTED records each
 * option given.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In this process the option is kept, and the end of the command line acts like --help. */
static bool checking;

static void note(const char *option)
{
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), "%s/%s", getenv("NOTED"), option);
	const int fd = n < (int)sizeof(path) ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd >= 0)
		close(fd);
}

/*
 * Lets a child process parse the command line with the option. @return whether to keep the option here, which is so in
 * the child and if the child failed
 */
static bool is_taken(void)
{
	int status = 0, null;
	const pid_t pid = fork();

	if (pid) {
		waitpid(pid, &status, 0);
		return status;
	}
	checking = true;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	return true;
}

static int value_of(const struct option *longs, const char *name)
{
	while (strcmp(longs->name, name))
		longs++;
	return longs->val;
}

int getopt_long(int argc, char *const *argv, const char *shorts, const struct option *longs, int *ret_index)
{
	static int (*real)(int, char *const *, const char *, const struct option *, int *);
	const char *ignored = getenv("IGNORED"), *command = basename(argv[0]);
	const bool asked = ignored && getenv("NOTED") && dlsym(RTLD_DEFAULT, "btrkit_version");
	char option[NAME_MAX];

	if (!real)
		real = (int (*)(int, char *const *, const char *, const struct option *, int *))dlsym(RTLD_NEXT,
												      "getopt_long");
	for (;;) {
		int at = -1, c = real(argc, argv, shorts, longs, asked ? &at : ret_index);

		if (!asked || checking)
			return c == -1 && checking ? value_of(longs, "help") : c;
		for (at = at < 0 ? 0 : at; longs[at].name && longs[at].val != c; at++)
			;
		if (c == -1 || !longs[at].name)
			return c;
		snprintf(option, sizeof(option), "%s:%s", strcmp(command, "mkfs.btrfs") ? command : "mkfs",
			 longs[at].name);
		note(option);
		if (strcmp(option, ignored) || is_taken())
			return c;
	}
}
