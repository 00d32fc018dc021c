// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power failures during commits: every state that they can leave on the devices is one of the committed states,
 * complete; also with any devices removed that the profile can do without.
 *
 *	crash-txn [--deep | --all] [--brief] [--kind NAME] [--each N] [--defect N] [--export DIR COUNT] IMAGE...
 *
 * Without options, all kinds of transactions run, and then the planted defects, which must be detected.
 *
 *	--deep		more states of each kind, and the kinds of the deep run
 *	--all		the kinds of the deep run too, with the usual number of states
 *	--brief		fewer states
 *	--kind NAME	only this kind
 *	--each N	one in N kinds
 *	--defect N	only this defect; -1: none
 *	--export	write COUNT states from all kinds into DIR, with a list of them
 *
 * crash-modify is the same program with kinds of transactions that change files: each state that was checked is then
 * opened for writing, changed, committed and checked again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"

#include "lib/commit/txn.h"
#include "states.h"
#include "txn_base.h"
#include "txn_defects.h"
#include "txn_check.h"
#include "txn_kinds.h"

struct seen {
	uint64_t hash;
	UT_hash_handle hh;
};

struct trial {
	const struct kind *kind;
	struct disks before;
	struct disks older, first; /* for an earlier power failure: the state before that commit, and after it */
	struct log log;
	struct txn_check check;
	bool planted; /* a defect is planted: one bad state is expected */
	unsigned step; /* continue from one in so many states */
	uint64_t looked, bad;
	struct seen *seen; /* distinct states so far */
	uint64_t torn, again, refused;
	uint64_t holds[64];
	char why[WHY_SIZE];
	/* Export of states: an even sample of the distinct ones. */
	const char *folder;
	FILE *list;
	uint64_t wanted, of;
};

static struct log *recording;

/* When a commit returns, it promises that everything is durable: set a mark. */
int __real_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err);
int __wrap_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err);

int __wrap_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err)
{
	const size_t before = recording ? recording->n : 0;
	int ret;

	defects_commit();
	ret = __real_btrkit_txn_commit(txn, state, err);
	if (!ret && recording && recording->n > before)
		log_mark(recording);
	return ret;
}

/* Also for a commit by reclaim in the middle of a transaction. */
static int note_inner(int ret, size_t before)
{
	if (!ret && recording && recording->n > before)
		log_mark(recording);
	return ret;
}

int __real_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err);
int __wrap_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err);

int __wrap_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t generation = txn->generation;
	const size_t before = recording ? recording->n : 0;
	const int ret = __real_txn_commit_and_go_on(txn, err);

	return txn->generation == generation ? ret : note_inner(ret, before);
}

int __real_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err);
int __wrap_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err);

int __wrap_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t generation = txn->generation;
	const size_t before = recording ? recording->n : 0;
	const int ret = __real_txn_commit_exclusive(txn, err);

	return txn->generation == generation ? ret : note_inner(ret, before);
}

static int work(struct btrkit_io *const *io, unsigned n, int (*does)(struct btrkit_fs *fs, struct btrkit_error *err),
		struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_fs *fs;
	int ret = btrkit_fs_open(io, n, &opts, &fs, err);

	if (ret) {
		for (unsigned i = 0; i < n; i++)
			btrkit_io_close(io[i]);
		return ret;
	}
	ret = does(fs, err);
	btrkit_fs_close(fs);
	return ret;
}

static int record_work(struct trial *t, struct log *log, struct btrkit_error *err)
{
	struct disks after = disks_over(&t->before);
	struct btrkit_io *io[DISKS_MAX];
	int ret;

	for (unsigned i = 0; i < after.n; i++)
		io[i] = log_record(log, i, after.at[i]);
	recording = log;
	ret = work(io, after.n, t->kind->work, err);
	recording = NULL;
	disks_free(&after);
	return ret;
}

static size_t find_mark(const struct log *log, size_t from)
{
	while (from < log->n && log->events[from].kind != EVENT_MARK)
		from++;
	return from;
}

/* Simulates a power failure after the first commit, before the mirrors were written, and starts from there. */
static int crash_before(struct trial *t, struct btrkit_error *err)
{
	struct log log = { 0 };
	int ret = record_work(t, &log, err);
	const size_t end = find_mark(&log, 0);

	t->older = t->before;
	t->first = disks_over(&t->older);
	t->before = disks_over(&t->older);
	log_apply(log.events, end, &t->first);
	for (size_t i = 0; i < end; i++) {
		const struct event *e = &log.events[i];

		/* The length alone is not enough: tree blocks and data writes may have the size of a superblock. */
		if (e->kind != EVENT_WRITE || (e->offset != super_offset(1) && e->offset != super_offset(2)))
			log_apply(e, 1, &t->before);
	}
	log_release(&log);
	return ret;
}

static int record(struct trial *t, struct btrkit_error *err)
{
	int ret = t->kind->behind ? crash_before(t, err) : 0;

	t->check.behind = t->kind->behind;
	return ret ? ret : record_work(t, &t->log, err);
}

/* Collects the committed states: the contents of the devices at each mark. */
static bool find_committed(struct trial *t)
{
	struct disks state = disks_over(t->kind->behind ? &t->older : &t->before);
	bool good = txn_check_add(&t->check, state, t->why);

	if (good && t->kind->behind)
		good = txn_check_add(&t->check, disks_over(&t->first), t->why);
	for (size_t i = find_mark(&t->log, 0); good && i < t->log.n; i = find_mark(&t->log, i + 1)) {
		state = disks_over(&t->before);
		log_apply(t->log.events, i, &state);
		good = txn_check_add(&t->check, state, t->why);
	}
	return good;
}

static size_t durable(const struct trial *t, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < at; i++)
		n += t->log.events[i].kind == EVENT_MARK;
	return n && t->kind->behind ? n + 1 : n;
}

static void export(struct trial *t, const struct disks *state, int holds, bool torn)
{
	static unsigned number;
	const uint64_t n = HASH_COUNT(t->seen);
	char path[4096];

	/* Spread the exported states evenly. */
	if (n * t->wanted / t->of == (n - 1) * t->wanted / t->of)
		return;
	snprintf(path, sizeof(path), "%s/%u", t->folder, number);
	disks_export(state, path);
	fprintf(t->list, "%u\t%u\t%u\t%s\t%s\t%d\n", number++, state->n, t->check.spare, torn ? "torn" : "whole",
		t->kind->name, holds);
}

/*
 * Whether all devices have the newest generation. Otherwise writing is refused: stale devices may lack more than the
 * superblock.
 */
static bool is_level(const struct disks *state)
{
	const uint64_t page = super_offset(0) / SPARSE_PAGE;
	const struct disk_super *first = (const struct disk_super *)sparse_page(state->at[0], page);

	for (unsigned i = 1; i < state->n; i++)
		if (le64_get(((const struct disk_super *)sparse_page(state->at[i], page))->generation) !=
		    le64_get(first->generation))
			return false;
	return true;
}

/* Continues after the crash, by the same work or by other changes. Only for states with a valid primary superblock. */
static bool run_again(struct trial *t, const struct disks *state, char why[WHY_SIZE])
{
	struct disks after = disks_over(state);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io[DISKS_MAX];
	unsigned known;
	bool good;

	for (unsigned i = 0; i < after.n; i++)
		io[i] = sparse_io(after.at[i]);
	if (!work(io, after.n, t->kind->after ? t->kind->after : t->kind->work, &err)) {
		/* If nothing was left to do, the superblocks are as the crash left them. */
		known = disks_hash(&after, state) ? 0 : AUDIT_SUPERS;
		good = is_level(state) && txn_check_whole(&t->check, &after, known, NULL, why);
		t->again++;
	} else {
		btrkit_error_format(&err, why, WHY_SIZE);
		good = !is_level(state) && strstr(why, "stale") && !disks_hash(&after, state);
		t->refused++;
	}
	disks_free(&after);
	return good;
}

static void tell_bad(struct trial *t, const char *what, size_t at, const char *why)
{
	if (!t->bad++ || !t->planted)
		snprintf(t->why, sizeof(t->why), "%s %zu: %.500s", what, at, why);
	if (!t->planted && t->bad <= 5)
		printf("%s: %s\n", t->kind->name, t->why);
}

static void look(void *ctx, const struct disks *state, const char *what, size_t at)
{
	struct trial *t = ctx;
	const uint64_t hash = disks_hash(state, &t->before);
	struct seen *seen;
	bool torn = false;
	char why[WHY_SIZE];
	int holds;

	if (t->planted && t->bad)
		return;
	/* A device with a single superblock has no valid one if that is torn. Linux has the same limitation. */
	if (supers_of(state->at[0]) < 2 && strcmp(what, "prefix"))
		return;
	t->looked++;
	holds = txn_check_state(&t->check, state, durable(t, at), &torn, why);
	HASH_FIND(hh, t->seen, &hash, sizeof(hash), seen);
	if (holds < 0)
		tell_bad(t, what, at, why);
	if (seen || holds < 0)
		return;
	if ((t->kind->again || t->kind->after) && !torn && !t->planted && !(HASH_COUNT(t->seen) % t->step) &&
	    !t->folder && !run_again(t, state, why))
		tell_bad(t, "run again", at, why);
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		exit(99);
	seen->hash = hash;
	HASH_ADD(hh, t->seen, hash, sizeof(hash), seen);
	t->holds[holds]++;
	t->torn += torn;
	if (t->folder)
		export(t, state, holds, torn);
}

static void forget_seen(struct trial *t)
{
	struct seen *s, *next;

	HASH_ITER(hh, t->seen, s, next)
	{
		HASH_DEL(t->seen, s);
		free(s);
	}
}

static void release(struct trial *t)
{
	forget_seen(t);
	txn_check_release(&t->check);
	log_release(&t->log);
	disks_free(&t->before);
	disks_free(&t->first);
	disks_free(&t->older);
}

static void enumerate(struct trial *t, const struct effort *effort)
{
	const struct states s = { &t->log, &t->before, effort->seeds, effort->torn_step, look, t };

	states_seed(1);
	states_enumerate(&s);
}

/* Export the committed states too, for comparison. */
static void export_committed(struct trial *t, unsigned kind)
{
	char path[4096];

	for (size_t i = 0; i < t->check.n; i++) {
		snprintf(path, sizeof(path), "%s/committed-%u-%zu", t->folder, kind, i);
		disks_export(&t->check.states[i].disks, path);
		fprintf(t->list, "committed-%u-%zu\t%u\t%u\tcommitted\t%s\t%zu\n", kind, i, t->before.n, t->check.spare,
			t->kind->name, i);
	}
}

struct options {
	const struct effort *effort;
	bool deep, all;
	unsigned each;
	const char *kind, *folder;
	int defect; /* -2: all */
	uint64_t count;
};

/* @return whether all states are good */
static bool run_kind(const struct kind *kind, char **images, const struct options *o, uint64_t wanted, uint64_t *states,
		     uint64_t *removed)
{
	struct trial t = { .kind = kind,
			   .before = base_of(kind, images),
			   .check = { .spare = spare_of(kind), .files = kind->after },
			   .step = o->effort->again };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool every = true;
	char line[512];

	if (record(&t, &err)) {
		printf("%s: %s\n", kind->name, btrkit_error_format(&err, line, sizeof(line)));
		t.bad++;
	} else if (!find_committed(&t)) {
		printf("%s: after commit %zu: %s\n", kind->name, t.check.n, t.why);
		t.bad++;
	} else {
		enumerate(&t, o->effort);
		printf("%s: %zu commits, %zu writes and flushes, %" PRIu64 " states looked at, %u distinct: ",
		       kind->name, t.check.n - 1, t.log.n - (t.check.n - 1), t.looked, HASH_COUNT(t.seen));
		for (size_t i = 0; i < t.check.n; i++) {
			printf("%s%" PRIu64, i ? "+" : "", t.holds[i]);
			every &= t.holds[i] || (!i && kind->behind);
		}
		printf(" of each committed one, %" PRIu64 " with a torn primary, %" PRIu64
		       " where it was run again, %" PRIu64 " where that was refused; devices were removed %" PRIu64
		       " times, all was read %" PRIu64 " times; %" PRIu64 " bad\n",
		       t.torn, t.again, t.refused, t.check.removed, t.check.checked, t.bad);
	}
	*states += HASH_COUNT(t.seen);
	*removed += t.check.removed;
	if (o->folder && !t.bad) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/list", o->folder);
		t.folder = o->folder;
		t.wanted = wanted;
		t.of = HASH_COUNT(t.seen);
		t.list = fopen(path, "a");
		if (!t.list)
			exit(99);
		forget_seen(&t);
		export_committed(&t, (unsigned)(kind - kinds));
		enumerate(&t, o->effort);
		fclose(t.list);
	}
	release(&t);
	return !t.bad && every;
}

/* @return whether the defect was detected */
static bool run_defect(unsigned number, char **images)
{
	const struct kind *kind = kind_find(defects[number].kind);
	struct trial t = {
		.kind = kind, .check = { .spare = spare_of(kind), .files = kind->after }, .planted = true, .step = 1
	};
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const char *how = "a state";
	bool planted;
	int ret;

	if (!kind) {
		fprintf(stderr, "no kind '%s'\n", defects[number].kind);
		exit(2);
	}
	t.before = base_of(kind, images);
	defects_plant((int)number);
	ret = record(&t, &err);
	planted = !defects[number].spoil || defects[number].spoil(&t.log, &t.before);
	if (!find_committed(&t)) {
		how = "what was committed";
		t.bad++;
	} else if (ret) {
		how = "the library";
		btrkit_error_format(&err, t.why, sizeof(t.why));
		t.bad++;
	} else {
		planted &= !defects[number].doctor || defects[number].doctor(&t.log, &t.before);
		enumerate(&t, &efforts[EFFORT_USUAL]);
	}
	planted &= defects_planted();
	defects_plant(-1);
	printf("planted: %s: %s\n\tby %s: %s\n", defects[number].name,
	       !planted ? "NOT PLANTED" :
	       t.bad	? "seen" :
			  "NOT SEEN",
	       how, t.bad ? t.why : "");
	release(&t);
	return planted && t.bad;
}

static char **parse(char **argv, struct options *o)
{
	*o = (struct options){ .effort = &efforts[EFFORT_USUAL], .defect = -2, .each = 1 };
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		if (!strcmp(*argv, "--deep")) {
			o->deep = true;
			o->effort = &efforts[EFFORT_DEEP];
		} else if (!strcmp(*argv, "--brief")) {
			o->effort = &efforts[EFFORT_BRIEF];
		} else if (!strcmp(*argv, "--all")) {
			o->all = true;
		} else if (!strcmp(*argv, "--kind") && argv[1]) {
			o->kind = *++argv;
		} else if (!strcmp(*argv, "--each") && argv[1] && atoi(argv[1]) > 0) {
			o->each = (unsigned)atoi(*++argv);
		} else if (!strcmp(*argv, "--defect") && argv[1]) {
			o->defect = atoi(*++argv);
		} else if (!strcmp(*argv, "--export") && argv[1] && argv[2]) {
			o->folder = *++argv;
			o->count = strtoull(*++argv, NULL, 10);
		} else {
			fprintf(stderr, "crash-txn: unknown option %s\n", *argv);
			exit(2);
		}
	}
	return argv;
}

static bool is_to_run(unsigned number, const struct options *o)
{
	unsigned before = 0;

	if (o->kind)
		return !strcmp(kinds[number].name, o->kind);
	for (unsigned i = 0; i < number; i++)
		before += o->deep || o->all || !kinds[i].deep;
	return (o->deep || o->all || !kinds[number].deep) && !(before % o->each);
}

/* Number of kinds to run. */
static unsigned runs(const struct options *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < num_kinds; i++)
		n += is_to_run(i, o);
	return n;
}

int main(int argc, char **argv)
{
	uint64_t states = 0, removed = 0;
	unsigned ran = 0, missed = 0, planted = 0;
	struct options o;
	char **images = parse(argv, &o);
	bool good = true;

	(void)argc;
	if (o.folder)
		base_use_random_uuids();
	for (unsigned i = 0; i < num_kinds && o.defect < 0; i++) {
		if (!is_to_run(i, &o))
			continue;
		good &= run_kind(&kinds[i], images, &o, o.count / runs(&o) + 1, &states, &removed);
		fflush(stdout);
		ran++;
	}
	for (unsigned i = 0; i < num_defects && !o.folder && o.defect != -1; i++) {
		if ((o.defect >= 0 && o.defect != (int)i) || (o.kind && strcmp(o.kind, defects[i].kind)))
			continue;
		missed += !run_defect(i, images);
		fflush(stdout);
		planted++;
	}
	printf("compared %" PRIu64
	       " states of %u kinds of transactions with what was committed, %" PRIu64
	       " times with devices removed; %u planted defects, %u not seen\n",
	       states, ran, removed, planted, missed);
	return !good || missed || !(ran || planted);
}
