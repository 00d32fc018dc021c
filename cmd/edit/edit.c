// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"
#include "cmd/next_step.h"

enum {
	OPT_COMMIT_EVERY = 256,
	OPT_COMPRESS,
	OPT_FORCE_READONLY,
	OPT_SUBVOL,
	OPT_UNDO
};

static const struct cmd_option options[] = {
	{ OPT_COMMIT_EVERY, "commit-every", "N", "commit after every N operations" },
	{ OPT_COMPRESS, "compress", "TYPE[:LEVEL]", "compress written data: no (the default), zlib (1 to 9),\n"
						    "lzo, zstd (1 to 15)" },
	{ OPT_FORCE_READONLY, "force-readonly", NULL,
	  "also write to read-only subvolumes; their received_uuid\nis cleared" },
	{ OPT_SUBVOL, "subvol", "ID|PATH", "start paths from this subvolume (default: the top level)" },
	{ OPT_UNDO, "undo", "FILE", "save what is overwritten in the new FILE, for btrkit undo" },
	CMD_LINKS_OPTION,
	CMD_DEGRADED_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	const struct command *cmd;
	struct cmd_devices devices;
	const char *undo, *subvol;
	uint64_t commit_every;	/* 0: only at the end */
	unsigned long line, committed; /* line of the script being executed; last line that is committed */
};

#define OPERATION_WIDTH 40	/* in --help, for name and words */

static void more_help(void)
{
	printf("\nWithout OPERATION a script is read from the standard input, one operation on each line:\n\n");
	for (const struct edit_op *op = edit_ops; op->name; op++) {
		const char *end = strchrnul(op->help, '\n');

		printf("  %s %-*s %.*s\n", op->name, OPERATION_WIDTH - (int)strlen(op->name), op->args,
		       (int)(end - op->help), op->help);
		if (*end)
			printf("  %*s  %s\n", OPERATION_WIDTH, "", end + 1);
	}
	printf("\nIf an operation fails, nothing is changed; if its line begins with -, that is only reported.\n");
}

/* Reports a failure, followed by the text for its errno unless the message contains that. */
static void say_failed(struct request *req, const struct btrkit_error *err)
{
	const char *reason = strerror(-err->err);
	char line[BTRKIT_ERROR_LINE], where[32] = "", kept[64] = "";
	struct cmd_next_step step;

	btrkit_error_format(err, line, sizeof(line));
	if (req->line)
		snprintf(where, sizeof(where), "line %lu: ", req->line);
	if (req->committed)
		snprintf(kept, sizeof(kept), "; what was done up to line %lu is kept", req->committed);
	cmd_say("btrkit %s: %s: %s%s%s%s%s%s", req->cmd->name, req->devices.at[0], where, line,
		strcasestr(line, reason) ? "" : ": ", strcasestr(line, reason) ? "" : reason,
		cmd_next_step(req->cmd, req->devices.at[0], err, &step), kept);
}

/* Whether something is half done, or another program has written: the library refuses to commit then. */
static bool has_failed(const struct edit *e)
{
	return !e->txn || btrkit_txn_failure(e->txn, NULL);
}

static int commit(struct request *req, struct edit *e, struct btrkit_error *err)
{
	const struct cmd_note to = { req->cmd, req->devices.at[0] };
	int ret = edit_lock_again(e, err);

	if (ret)
		return ret;
	ret = btrkit_txn_commit(e->txn, NULL, err);
	e->txn = NULL;
	if (ret)
		return ret;
	req->committed = req->line;
	edit_say_forced(e, &to);
	return 0;
}

/* Executes one line. @return 0; 1: it had an operation; <0 */
static int do_line(struct request *req, struct edit *e, char *line, size_t len, struct edit_words *words,
		   struct btrkit_error *err)
{
	struct edit_call call;
	bool may_fail;
	int ret;

	ret = edit_split(line, len, words, err);
	if (ret || !words->n)
		return ret;
	may_fail = words->word[0][0] == '-' && words->word[0][1] && words->word[0][1] != '-';
	words->word[0] += may_fail;
	ret = edit_check(words->word, words->n, &call, err);
	if (ret)
		return ret;
	ret = edit_do(e, &call, err);
	if (!ret || !may_fail || has_failed(e))
		return ret ? ret : 1;
	say_failed(req, err);
	return 1;
}

static int run_script(struct request *req, struct edit *e, struct btrkit_error *err)
{
	struct edit_words words = { 0 };
	uint64_t done = 0;
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (ret >= 0) {
		const ssize_t len = getline(&line, &size, stdin);

		if (len < 0)
			break;
		req->line++;
		ret = do_line(req, e, line, (size_t)len, &words, err);
		if (ret != 1 || ++done != req->commit_every)
			continue;
		done = 0;
		ret = commit(req, e, err);
		if (!ret)
			ret = btrkit_txn_start(e->fs, &e->txn, err);
	}
	/* This may also be out of memory, for a very long line. */
	if (ret >= 0 && !feof(stdin))
		ret = edit_fail(err, errno ? errno : EIO, "cannot read the script");
	free(words.word);
	free(line);
	return ret < 0 ? ret : 0;
}

static int edit(struct request *req, struct edit *e, const struct edit_call *call, struct btrkit_error *err)
{
	int ret = cmd_find_subvolume(e->fs, req->subvol, &e->root, err);

	e->script = !call->op;
	if (!ret)
		ret = btrkit_txn_start(e->fs, &e->txn, err);
	if (ret)
		return ret;
	/* As mounting the subvolume does. */
	ret = btrkit_txn_orphans_clean(e->txn, e->root, NULL, err);
	if (!ret)
		ret = call->op ? edit_do(e, call, err) : run_script(req, e, err);
	if (!ret)
		ret = commit(req, e, err);
	e->txn = btrkit_txn_abort(e->txn);
	return ret;
}

static void take_option(struct request *req, struct edit *e, int c)
{
	enum btrkit_compression kind;

	switch (c) {
	case OPT_COMMIT_EVERY:
		req->commit_every = cmd_number(req->cmd, "--commit-every", optarg, false);
		if (!req->commit_every)
			cmd_usage_error(req->cmd, "--commit-every: must not be 0");
		break;
	case OPT_COMPRESS:
		cmd_compression(req->cmd, optarg, &kind, &e->write.level);
		e->write.compression = (uint8_t)kind;
		break;
	case OPT_FORCE_READONLY:
		e->force_readonly = true;
		break;
	case OPT_SUBVOL:
		req->subvol = cmd_path(req->cmd, optarg);
		break;
	case OPT_UNDO:
		req->undo = optarg;
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct request req = { .cmd = cmd };
	struct edit_call call = { 0 };
	struct edit e = { 0 };
	int c, ret;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(&req, &e, c);
	cmd_check_args(cmd, argc, 1, -1);
	req.devices.at[0] = argv[optind];
	if (optind + 1 < argc && edit_check(argv + optind + 1, (size_t)(argc - optind - 1), &call, &err))
		cmd_usage_error(cmd, "%s", err.message);
	e.no_links = req.devices.no_links;
	if (call.op && req.commit_every)
		cmd_usage_error(cmd, "--commit-every requires a script");
	e.fs = cmd_open_write(cmd, req.devices.at, req.devices.n, !req.devices.noscan,
			      BTRKIT_OPEN_WRITE | (e.no_links ? BTRKIT_OPEN_NO_LINKS : 0) |
				      (req.devices.degraded ? BTRKIT_OPEN_DEGRADED : 0),
			      req.undo);
	ret = e.fs ? edit(&req, &e, &call, &err) : 0;
	if (ret)
		say_failed(&req, &err);
	if (e.fs)
		btrkit_fs_close(e.fs);
	free(e.forced);
	free(e.buffer);
	free(e.above);
	cmd_devices_end(&req.devices);
	return ret || !e.fs ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_edit = {
	.name = "edit",
	.args = "DEV [OPERATION ARG...]",
	.summary = "Change files in an unmounted filesystem",
	.options = options,
	.run = run,
	.options_first = true,
	.more_help = more_help,
};
