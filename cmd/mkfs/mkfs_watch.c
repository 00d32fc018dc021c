// SPDX-License-Identifier: LGPL-2.1-or-later
/* Progress of mkfs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mkfs/mkfs.h"

#define MIB (1 << 20)

static int discarding(void *ctx, uint64_t done, uint64_t total)
{
	struct mkfs_watch *w = ctx;

	return cmd_progress(&w->progress, done, total);
}

static void show(const struct mkfs_watch *w, const struct btrkit_mkfs_so_far *s)
{
	const double seconds = (double)(w->progress.told - w->began) / 1e9;

	if (s->total_bytes)
		fprintf(stderr, "\rfilling: %d %%", cmd_percent(s->bytes, s->total_bytes));
	else
		fprintf(stderr, "\rfilling: %.1f MiB", (double)s->bytes / MIB);
	fprintf(stderr, ", %.1f MiB/s, %" PRIu64, seconds > 0 ? (double)s->bytes / MIB / seconds : 0.0, s->files);
	if (s->total_files)
		fprintf(stderr, " of %" PRIu64, s->total_files);
	fprintf(stderr, " files\033[K");
}

static int filling(void *ctx, const struct btrkit_mkfs_so_far *so_far)
{
	struct mkfs_watch *w = ctx;

	if (cmd_progress_stopped())
		return -EINTR;
	if (!w->began)
		w->began = cmd_clock();
	if (cmd_progress_due(&w->progress))
		show(w, so_far);
	return 0;
}

static int verifying(void *ctx, uint64_t done, uint64_t total)
{
	struct mkfs_watch *w = ctx;

	if (cmd_progress_stopped())
		return -EINTR;
	if (cmd_progress_due(&w->progress))
		fprintf(stderr, "\rverifying: %d %%\033[K", cmd_percent(done, total));
	return 0;
}

static void warning(void *ctx, const char *what)
{
	struct mkfs_watch *w = ctx;
	struct cmd_note note = { w->cmd, w->device };

	cmd_progress_end(&w->progress);
	cmd_note(&note, what);
}

void mkfs_watch_begin(struct mkfs_watch *w, const struct command *cmd, struct mkfs_request *req)
{
	*w = (struct mkfs_watch){ .cmd = cmd, .device = req->devices[0] };
	cmd_progress_begin(&w->progress, "discarding");
	w->progress.terminal &= req->verbosity > 0;
	req->opts.progress = discarding;
	req->opts.filling = filling;
	req->opts.verifying = verifying;
	req->opts.warning = warning;
	req->opts.progress_ctx = w;
}

void mkfs_watch_end(struct mkfs_watch *w)
{
	cmd_progress_end(&w->progress);
}
