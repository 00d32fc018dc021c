// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cmd/fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/next_step.h"

/* Damage of one cause on one device that is printed when it is met: what a missing device takes needs no list. */
#define SHOWN_BLOCKS 0u	/* blocks on a missing or stale device */
#define SHOWN_NAMES 3u	/* files that lose something with it */
#define SHOWN_OTHERS 8u

static bool of_device(const struct btrkit_error *what)
{
	return what->cause == BTRKIT_CAUSE_DEVICE_MISSING || what->cause == BTRKIT_CAUSE_DEVICE_STALE;
}

/* @advise: with what can be done next, which is not to be repeated for each */
static void print(const struct cmd_fold *f, const char *path, size_t len, const struct btrkit_error *what, bool advise)
{
	char line[BTRKIT_ERROR_LINE];

	if (path) {
		cmd_fail_path(f->cmd, f->device, path, len, what);
		return;
	}
	if (advise) {
		cmd_fail(f->cmd, f->device, what);
		return;
	}
	btrkit_error_format(what, line, sizeof(line));
	cmd_say("btrkit %s: %s: %s", f->cmd->name, f->device, line);
}

/* @return NULL: not to be folded */
static struct cmd_folded *kind_of(struct cmd_fold *f, const struct btrkit_error *what)
{
	for (size_t i = 0; what->cause && !f->all && i < CMD_FOLDS; i++) {
		struct cmd_folded *k = &f->kinds[i];

		if (!k->times)
			*k = (struct cmd_folded){ .cause = what->cause, .devid = what->devid };
		if (k->cause == what->cause && k->devid == what->devid)
			return k;
	}
	return NULL;
}

static void note_place(struct cmd_folded *k, const struct btrkit_error *what)
{
	if (!(what->places & BTRKIT_AT_LOGICAL))
		return;
	if (!k->placed || what->logical < k->low)
		k->low = what->logical;
	if (!k->placed || what->logical > k->high)
		k->high = what->logical;
	k->placed = true;
}

/* Whether an error without a cause was told of this very place. Several trees, or checks, may meet it. */
static bool is_known(struct cmd_fold *f, const struct btrkit_error *what)
{
	if (what->cause || !what->places || f->all)
		return false;
	for (unsigned i = 0; i < f->num_places; i++) {
		const struct btrkit_error *e = &f->places[i];

		if (e->places == what->places && e->logical == what->logical && e->slot == what->slot &&
		    e->devid == what->devid && e->physical == what->physical && e->tree == what->tree &&
		    !strcmp(e->message, what->message))
			return true;
	}
	if (f->num_places < CMD_FOLD_PLACES)
		f->places[f->num_places++] = *what;
	return false;
}

void cmd_fold_tell(struct cmd_fold *f, const char *path, size_t len, const struct btrkit_error *what)
{
	const unsigned shown = !of_device(what) ? SHOWN_OTHERS : path ? SHOWN_NAMES : SHOWN_BLOCKS;
	struct cmd_folded *k = kind_of(f, what);

	f->told = true;
	if (!path && is_known(f, what))
		return;
	if (k && !k->times && path) {
		k->named = true;
		k->sample = *what;
	}
	if (!k || k->times++ < shown) {
		print(f, path, len, what, f->advise && (!k || k->times == 1));
		return;
	}
	note_place(k, what);
	/* One alone is printed at the end as it is. */
	if (k->folded++)
		return;
	k->first = *what;
	k->path = path ? strndup(path, len) : NULL;
}

int cmd_fold_lost(void *ctx, const struct btrkit_error *what)
{
	cmd_fold_tell(ctx, NULL, 0, what);
	return 0;
}

static void print_folded(const struct cmd_fold *f, const struct cmd_folded *k)
{
	struct cmd_next_step step = { "" };
	const char *next = of_device(&k->first) ? cmd_next_step(f->cmd, f->device, &k->first, &step) : "";
	char what[64], place[80] = "";

	if (of_device(&k->first))
		snprintf(what, sizeof(what), "device %" PRIu64 " is %s", k->devid,
			 k->cause == BTRKIT_CAUSE_DEVICE_MISSING ? "missing" : "stale");
	else if (k->devid)
		snprintf(what, sizeof(what), "device %" PRIu64 ", %s", k->devid, btrkit_cause_name(k->cause));
	else
		snprintf(what, sizeof(what), "%s", btrkit_cause_name(k->cause));
	if (k->placed && k->low == k->high)
		snprintf(place, sizeof(place), ", block %" PRIu64, k->low);
	else if (k->placed)
		snprintf(place, sizeof(place), ", blocks %" PRIu64 " to %" PRIu64, k->low, k->high);
	cmd_say("btrkit %s: %s: %s: %" PRIu64 "%s places that cannot be read%s (--verbose lists them)%s", f->cmd->name,
		f->device, what, k->folded, k->times > k->folded ? " more" : "", place, next);
}

/*
 * Lines with a path do not say what can be done, because it would be the same in each. That an older state may be whole
 * is worth a line of its own.
 */
static void advise(const struct cmd_fold *f, const struct cmd_folded *k)
{
	struct cmd_next_step step;
	const char *text;

	if (!f->advise || !k->named || k->cause != BTRKIT_CAUSE_GENERATION)
		return;
	text = cmd_next_step(f->cmd, f->device, &k->sample, &step);
	if (*text)
		cmd_say("btrkit %s: %s: %s", f->cmd->name, f->device, text + strlen("; "));
}

void cmd_fold_end(struct cmd_fold *f)
{
	for (size_t i = 0; i < CMD_FOLDS && f->kinds[i].times; i++) {
		struct cmd_folded *k = &f->kinds[i];

		if (k->folded == 1)
			print(f, k->path, k->path ? strlen(k->path) : 0, &k->first, f->advise && k->times == 1);
		else if (k->folded)
			print_folded(f, k);
		advise(f, k);
		free(k->path);
	}
}
