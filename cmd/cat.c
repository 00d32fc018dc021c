// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/files.h"

#define PIECE ((size_t)1 << 20)

static const struct cmd_option options[] = {
	{ FILES_OPT_ZEROS, "zeros", NULL, "print zeros for what cannot be read, and go on behind it" },
	FILES_OPTION_SUBVOL,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

/* A file that is being printed. */
struct printing {
	struct files_request *req;
	const char *path;
	struct btrkit_file *f;
	char *buf; /* PIECE bytes */
	uint64_t size;
	/* With --zeros: bytes that cannot be read, not reported yet because more may follow. lost_end 0: none */
	uint64_t lost, lost_end;
	struct btrkit_error what;
};

/* Reports the bytes that cannot be read. */
static void tell_lost(struct printing *p)
{
	const size_t room = sizeof(p->what.message);
	char text[128];
	int n;

	if (!p->lost_end)
		return;
	n = snprintf(text, sizeof(text), "bytes %" PRIu64 " to %" PRIu64 " cannot be read%s: ", p->lost,
		     p->lost_end - 1, p->req->zeros ? "" : ", --zeros goes on behind them");
	memmove(p->what.message + n, p->what.message, room - (size_t)n);
	memcpy(p->what.message, text, (size_t)n);
	p->what.message[room - 1] = '\0';
	(void)files_problem(p->req, p->path, strlen(p->path), &p->what);
	p->lost_end = 0;
}

static int print_zeros(const struct printing *p, uint64_t length)
{
	int ret = 0;

	memset(p->buf, 0, PIECE);
	for (size_t n; !ret && length; length -= n) {
		n = length < PIECE ? (size_t)length : PIECE;
		ret = cmd_write(&p->req->out, p->buf, n);
	}
	return ret;
}

/* The bytes at *@at cannot be read. @return 0: go on at *@at; 1: the file ends here; <0 */
static int go_around(struct printing *p, uint64_t *at, const struct btrkit_error *what)
{
	uint64_t lost, length, end = p->size;
	int ret;

	if (!btrkit_file_lost(p->f, &lost, &length))
		end = lost + length;
	if (p->lost_end != *at || p->what.code != what->code || p->what.cause != what->cause)
		tell_lost(p);
	if (!p->lost_end) {
		p->lost = *at;
		p->what = *what;
	}
	p->lost_end = end;
	if (!p->req->zeros)
		return 1;
	ret = print_zeros(p, end - *at);
	*at = end;
	return ret;
}

/* Reads many extents at once, but if there is damage, what is before it. */
static int read_piece(const struct printing *p, uint64_t at, size_t *got, struct btrkit_error *what)
{
	uint64_t lost, length;
	int ret = btrkit_file_read(p->f, at, p->buf, PIECE, got, what);

	if (!ret || btrkit_file_lost(p->f, &lost, &length) || lost <= at || lost - at >= PIECE)
		return ret;
	return btrkit_file_read(p->f, at, p->buf, (size_t)(lost - at), got, what);
}

/* @return 0; 1: stopped at damage; <0 */
static int print_contents(struct printing *p, struct btrkit_error *err)
{
	uint64_t at = 0;
	int ret = 0;

	while (!ret) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		size_t got;

		ret = read_piece(p, at, &got, &what);
		if (ret == -ENOMEM) {
			*err = what;
		} else if (ret) {
			ret = go_around(p, &at, &what);
		} else if (!got) {
			break;
		} else {
			ret = cmd_write(&p->req->out, p->buf, got);
			at += got;
		}
	}
	return ret;
}

/* @return 0; <0: give up */
static int print_path(struct files_request *req, const char *path, char *buf)
{
	struct printing p = { .req = req, .path = path, .buf = buf };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_inode i;
	int ret = btrkit_inode_find_target(req->fs, req->root, path, &i, &err);

	if (!ret && !S_ISREG(i.mode)) {
		ret = -EINVAL;
		err = (struct btrkit_error){ .code = BTRKIT_INVALID, .err = ret, .message = "not a regular file" };
	}
	if (!ret)
		ret = btrkit_file_open(req->fs, i.root, i.inode, &p.f, &err);
	if (!ret) {
		p.size = i.size;
		ret = print_contents(&p, &err);
		tell_lost(&p);
	}
	btrkit_file_close(p.f);
	if (req->out.error)
		return ret;
	return ret < 0 ? files_problem(req, path, strlen(path), &err) : 0;
}

static int cat(struct files_request *req, struct btrkit_error *err)
{
	char *buf = malloc(PIECE);
	int ret = 0;

	if (!buf)
		return cmd_no_memory(err);
	for (size_t i = 0; i < req->num_paths && !ret; i++)
		ret = print_path(req, req->paths[i], buf);
	free(buf);
	return ret;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	return files_run(cmd, argc, argv, 2, cat);
}

const struct command cmd_cat = {
	.name = "cat",
	.args = "DEV PATH...",
	.summary = "Print the contents of files",
	.options = options,
	.run = run,
};
