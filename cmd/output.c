// SPDX-License-Identifier: LGPL-2.1-or-later
/* Standard output, and the end of a command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/next_step.h"

int cmd_write_fd(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int cmd_write(void *ctx, const void *data, size_t len)
{
	struct cmd_output *out = ctx;
	int ret = cmd_write_fd(STDOUT_FILENO, data, len);

	if (ret)
		out->error = ret;
	return ret;
}

static void say_output_failed(const char *name, int errnum)
{
	if (errnum != EPIPE)
		cmd_say("btrkit %s: standard output: %s", name, strerror(errnum));
}

int cmd_end(const struct command *cmd, const char *device, const struct cmd_output *out, int ret,
	    const struct btrkit_error *err)
{
	if (out->error) {
		say_output_failed(cmd->name, -out->error);
		return cmd_failed(cmd);
	}
	if (cmd_was_interrupted(ret))
		return cmd_fail(cmd, device, &(struct btrkit_error){ .code = BTRKIT_SYSTEM, .err = ret,
								     .message = "interrupted" });
	return ret < 0 ? cmd_fail(cmd, device, err) : EXIT_DONE;
}

int cmd_close_stdout(const struct command *cmd, int status)
{
	const bool done = status == EXIT_DONE || status == EXIT_DIFFER, lost = ferror(stdout);

	errno = EIO;	/* for an earlier error, whose errno is lost */
	if (!fclose(stdout) && !lost)
		return status;
	/* A command that has failed has already printed its line. */
	if (done)
		say_output_failed(cmd->name, errno);
	return done ? cmd_failed(cmd) : status;
}

void cmd_note(void *ctx, const char *line)
{
	const struct cmd_note *note = ctx;

	cmd_say("btrkit %s: %s: %s", note->cmd->name, note->device, line);
}

void cmd_note_device(void *ctx, const struct btrkit_error *what)
{
	const struct cmd_note *note = ctx;
	struct cmd_next_step step;

	cmd_say("btrkit %s: %s: %s%s", note->cmd->name, note->device, what->message,
		cmd_next_step(note->cmd, note->device, what, &step));
}

int cmd_fail_no_memory(const struct command *cmd)
{
	struct btrkit_error err;

	(void)cmd_no_memory(&err);
	return cmd_fail(cmd, NULL, &err);
}
