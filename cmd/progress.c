// SPDX-License-Identifier: LGPL-2.1-or-later
/* Progress and interruption of long work. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"

#define INTERVAL 200000000 /* ns between two lines */

static volatile sig_atomic_t stopped;

static void stop(int signum)
{
	(void)signum;
	stopped = 1;
}

/* The first signal stops the work in an orderly way, a second one ends the program. */
void cmd_progress_begin(struct cmd_progress *p, const char *what)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND }, old;

	*p = (struct cmd_progress){ .what = what, .terminal = isatty(STDERR_FILENO), .percent = -1 };
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
	}
}

int cmd_percent(uint64_t done, uint64_t total)
{
	return total ? (int)(100.0 * (double)done / (double)total) : 0;
}

int cmd_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct cmd_progress *p = ctx;
	const int percent = cmd_percent(done, total);

	if (stopped)
		return -EINTR;
	if (p->terminal && percent != p->percent) {
		p->percent = percent;
		p->shown = true;
		fprintf(stderr, "\r%s: %d %%", p->what, percent);
	}
	return 0;
}

int64_t cmd_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool cmd_progress_due(struct cmd_progress *p)
{
	int64_t now;

	if (!p->terminal)
		return false;
	now = cmd_clock();
	if (p->told && now - p->told < INTERVAL)
		return false;
	p->told = now;
	p->shown = true;
	return true;
}

void cmd_progress_clear(void)
{
	fprintf(stderr, "\r\033[K");
}

void cmd_progress_end(struct cmd_progress *p)
{
	if (p->shown)
		cmd_progress_clear();
	p->shown = false;
}

bool cmd_progress_stopped(void)
{
	return stopped;
}

bool cmd_was_interrupted(int ret)
{
	return ret == -EINTR && stopped;
}
