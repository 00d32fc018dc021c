// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power failures while devices join and leave: in every state that they can leave, the devices that have a superblock
 * are a complete filesystem, the old one or the new one. Then planted defects, each of which must be detected.
 *
 *	crash-devices [--brief] [--without-defects] [--export DIR COUNT]
 *
 *	--brief			fewer states
 *	--without-defects	only the kinds
 *	--export		write COUNT states of each kind into DIR, with a list of them
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/base/hash.h"
#include "lib/commit/supers.h"
#include "lib/commit/write.h"
#include "lib/space/space_device.h"
#include "lib/tree/edit.h"
#include "devices_kinds.h"
#include "planted.h"
#include "states.h"

#define MIB (1ull << 20)

static bool random_uuids;

static bool open_work(struct work *w, unsigned mask)
{
	const struct btrkit_open_options o = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_io *io[DISKS_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < DISKS_MAX; i++)
		if (mask >> i & 1)
			io[n++] = w->io[i];
	if (btrkit_fs_open(io, n, &o, &w->fs, &w->err))
		return false;
	w->owned = mask;
	return !work_start(w);
}

static void close_work(struct work *w)
{
	btrkit_txn_abort(w->txn);
	btrkit_fs_close(w->fs);
}

/* @return 0, or the error of the library */
static int run(const struct disks *d, unsigned mask, int (*does)(struct work *w), struct log *log, char why[WHY_SIZE])
{
	struct work w = { .log = log, .err = BTRKIT_ERROR_INIT, .random_uuids = random_uuids };
	int ret;

	for (unsigned i = 0; i < d->n; i++)
		w.io[i] = log ? log_record(log, i, d->at[i]) : sparse_io(d->at[i]);
	ret = open_work(&w, mask) ? does(&w) : -1;
	if (ret)
		btrkit_error_format(&w.err, why, WHY_SIZE);
	close_work(&w);
	for (unsigned i = 0; i < d->n; i++)
		if (!(w.owned >> i & 1))
			btrkit_io_close(w.io[i]);
	return ret;
}

/* The first devices are a filesystem, the others have something else. */
static struct disks make(const struct kind *k, uint8_t fsid[16])
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disks d = { .n = 4 };
	struct btrkit_io *io[DISKS_MAX];
	uint8_t junk[4096];
	char why[WHY_SIZE];

	memcpy(fsid, "devices that go.", 16);
	if (random_uuids && getentropy(fsid, 16))
		exit(99);
	memset(junk, 0xdb, sizeof(junk));
	o.flags = BTRKIT_MKFS_REPRODUCIBLE;
	o.fsid = fsid;
	o.nodesize = 4096;
	o.data = k->made > 1 ? k->profile : BTRKIT_PROFILE_SINGLE;
	o.metadata = k->profile;
	for (unsigned i = 0; i < d.n; i++) {
		d.at[i] = sparse_create((300 + 20 * i) * MIB, NULL);
		io[i] = sparse_io(d.at[i]);
		for (unsigned mirror = 0; mirror < 2; mirror++)
			sparse_write(d.at[i], super_offset(mirror), junk, sizeof(junk));
	}
	if (btrkit_mkfs(io, k->made, &o, NULL, &err) ||
	    (k->prepare && run(&d, (1u << k->made) - 1, k->prepare, NULL, why))) {
		fprintf(stderr, "%s: %s\n", k->name, err.err ? err.message : why);
		exit(1);
	}
	return d;
}

struct seen {
	uint64_t hash;
	UT_hash_handle hh;
};

struct trial {
	const struct kind *kind;
	struct disks before;
	struct log log;
	struct devices_check check;
	bool planted;
	struct seen *seen;
	uint64_t looked, bad, holds[COMMITS_MAX];
	char why[WHY_SIZE];
	const char *folder;
	FILE *list;
	uint64_t wanted, of;
};

static bool find_committed(struct trial *t)
{
	struct disks state = disks_over(&t->before);
	bool good = devices_check_add(&t->check, &state, t->kind->before, t->why);

	for (size_t i = 0; good && i < t->log.n; i++) {
		log_apply(&t->log.events[i], 1, &state);
		if (t->log.events[i].kind == EVENT_MARK)
			good = devices_check_add(&t->check, &state, t->kind->after[t->check.n - 1], t->why);
	}
	disks_free(&state);
	return good;
}

static size_t durable(const struct trial *t, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < at; i++)
		n += t->log.events[i].kind == EVENT_MARK;
	return n;
}

static void export(struct trial *t, const struct disks *state, int holds)
{
	static unsigned number;
	const uint64_t n = HASH_COUNT(t->seen);
	unsigned mask = 0, newest = 0;
	char path[4096];

	/* An even sample. */
	if (n * t->wanted / t->of == (n - 1) * t->wanted / t->of)
		return;
	for (unsigned i = 0; i < state->n; i++) {
		mask |= devices_claim(&t->check, state, i) >= 0 ? 1u << i : 0;
		newest = devices_claim(&t->check, state, i) == holds ? i : newest;
	}
	snprintf(path, sizeof(path), "%s/%u", t->folder, number);
	disks_export(state, path);
	fprintf(t->list, "%u\t%u\t%u\t%u\t%s\n", number++, newest, mask, t->check.states[holds].members, t->kind->name);
}

static void look(void *ctx, const struct disks *state, const char *what, size_t at)
{
	struct trial *t = ctx;
	const uint64_t hash = disks_hash(state, &t->before);
	struct seen *seen;
	char why[WHY_SIZE];
	int holds;

	if (t->planted && t->bad)
		return;
	t->looked++;
	HASH_FIND(hh, t->seen, &hash, sizeof(hash), seen);
	if (seen)
		return;
	holds = devices_check_state(&t->check, state, durable(t, at), why);
	if (holds < 0) {
		snprintf(t->why, sizeof(t->why), "%s %zu: %.500s", what, at, why);
		if (t->bad++ < 5 && !t->planted)
			printf("%s: %s\n", t->kind->name, t->why);
		return;
	}
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		exit(99);
	seen->hash = hash;
	HASH_ADD(hh, t->seen, hash, sizeof(hash), seen);
	t->holds[holds]++;
	if (t->folder)
		export(t, state, holds);
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

static void enumerate(struct trial *t, bool brief)
{
	const struct states s = { &t->log, &t->before, brief ? 2 : 60, brief ? 64 : 4, look, t };

	states_seed(1);
	states_enumerate(&s);
}

/* The filesystem of before is made without the defect. @return 0, or the error of the library */
static int record(struct trial *t, int defect)
{
	struct disks after;
	int ret;

	t->before = make(t->kind, t->check.fsid);
	after = disks_over(&t->before);
	planted_begin(defect);
	ret = run(&after, t->kind->before, t->kind->does, &t->log, t->why);
	disks_free(&after);
	return ret;
}

static void release(struct trial *t)
{
	forget_seen(t);
	log_release(&t->log);
	disks_free(&t->before);
}

struct options {
	bool brief, without_defects;
	const char *folder;
	uint64_t count;
};

static void export_states(struct trial *t, const struct options *o)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/list", o->folder);
	t->folder = o->folder;
	t->wanted = o->count;
	t->of = HASH_COUNT(t->seen);
	t->list = fopen(path, "a");
	if (!t->list)
		exit(99);
	forget_seen(t);
	enumerate(t, o->brief);
	fclose(t->list);
}

/* @return whether all states are good, and each committed one was seen */
static bool run_kind(const struct kind *kind, const struct options *o, uint64_t *states)
{
	struct trial t = { .kind = kind };
	bool every = true;

	if (record(&t, -1) || !find_committed(&t)) {
		printf("%s: after commit %zu: %s\n", kind->name, t.check.n, t.why);
		release(&t);
		return false;
	}
	enumerate(&t, o->brief);
	printf("%s: %zu commits, %zu writes and flushes, %" PRIu64 " states looked at, %u distinct: ", kind->name,
	       t.check.n - 1, t.log.n - (t.check.n - 1), t.looked, HASH_COUNT(t.seen));
	for (size_t i = 0; i < t.check.n; i++) {
		printf("%s%" PRIu64, i ? "+" : "", t.holds[i]);
		every &= t.holds[i] > 0;
	}
	printf(" of each committed one, %" PRIu64 " where the old devices are the old filesystem; %" PRIu64 " bad\n",
	       t.check.alone, t.bad);
	*states += HASH_COUNT(t.seen);
	if (o->folder && !t.bad)
		export_states(&t, o);
	release(&t);
	return !t.bad && every;
}

enum defect {
	JOIN_LAST,
	NO_JOIN,
	JOIN_WITHOUT_FLUSH,
	LEAVE_FIRST,
	LEAVE_BEFORE_FLUSH,
	NO_LEAVE,
	NO_MIRROR,
	NO_COUNT,
	NO_ITEM,
	ITEM_LEFT,
	NUM_DEFECTS
};

static const struct {
	const char *name, *kind;
} defects[] = {
	[JOIN_LAST] = { "the superblock of a new device is written last", "joins" },
	[NO_JOIN] = { "the superblock of a new device is not written", "a third joins" },
	[JOIN_WITHOUT_FLUSH] = { "the superblock of a new device is not flushed first", "joins and is used" },
	[LEAVE_FIRST] = { "a device that leaves is cleared first", "leaves" },
	[LEAVE_BEFORE_FLUSH] = { "a device that leaves is cleared before the others are flushed", "leaves" },
	[NO_LEAVE] = { "a device that leaves is not cleared", "leaves with its chunk" },
	[NO_MIRROR] = { "mirrors are not written", "joins" },
	[NO_COUNT] = { "the number of devices is not counted", "a third joins" },
	[NO_ITEM] = { "a new device has no item", "joins and is used" },
	[ITEM_LEFT] = { "the item of a device that leaves stays", "leaves" },
};
_Static_assert(sizeof(defects) / sizeof(defects[0]) == NUM_DEFECTS, "a name for each");
const int planted_reuse = NUM_DEFECTS;

static bool no_flush;

WRAPPED(int, commit_flush, struct btrkit_txn *txn, struct btrkit_error *err)
{
	return no_flush ? 0 : __real_commit_flush(txn, err);
}

WRAPPED(int, commit_supers_leave, struct btrkit_txn *txn, struct btrkit_error *err)
{
	return planted_wrong(NO_LEAVE, 0) ? 0 : __real_commit_supers_leave(txn, err);
}

WRAPPED(int, commit_supers_join, struct btrkit_txn *txn, const struct commit_supers *s, struct btrkit_error *err)
{
	int ret = 0;

	if (planted_now == JOIN_LAST || planted_wrong(NO_JOIN, 0))
		return 0;
	no_flush = planted_wrong(JOIN_WITHOUT_FLUSH, 0);
	if (planted_wrong(LEAVE_FIRST, 1))
		ret = __real_commit_supers_leave(txn, err);
	if (!ret)
		ret = __real_commit_supers_join(txn, s, err);
	no_flush = false;
	return ret;
}

WRAPPED(int, commit_supers_write, struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
	struct btrkit_error *err)
{
	int ret;

	if (mirror && planted_wrong(NO_MIRROR, 0))
		return 0;
	ret = __real_commit_supers_write(txn, s, mirror, err);
	if (!ret && !mirror && planted_wrong(JOIN_LAST, 0))
		ret = __real_commit_supers_join(txn, s, err);
	if (!ret && !mirror && planted_wrong(LEAVE_BEFORE_FLUSH, 1)) {
		no_flush = true;
		ret = __real_commit_supers_leave(txn, err);
		no_flush = false;
	}
	return ret;
}

WRAPPED(int, space_device_add, struct space *s, struct btrkit_io *io, const uint8_t uuid[16], struct disk_super *super,
	uint64_t *devid, struct btrkit_error *err)
{
	const int ret = __real_space_device_add(s, io, uuid, super, devid, err);

	if (!ret && planted_wrong(NO_COUNT, 1))
		super->num_devices = le64_put(le64_get(super->num_devices) - 1);
	return ret;
}

WRAPPED(int, edit_insert, struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
	struct btrkit_error *err)
{
	if (key->type == KEY_DEV_ITEM && key->objectid == OID_DEV_ITEMS && planted_wrong(NO_ITEM, 0))
		return 0;
	return __real_edit_insert(t, key, data, size, err);
}

WRAPPED(int, edit_delete, struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	if (key->type == KEY_DEV_ITEM && key->objectid == OID_DEV_ITEMS && planted_wrong(ITEM_LEFT, 0))
		return 0;
	return __real_edit_delete(t, key, err);
}

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < num_kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	fprintf(stderr, "no kind '%s'\n", name);
	exit(2);
}

/* @return whether the defect was detected */
static bool run_defect(unsigned number)
{
	struct trial t = { .kind = kind_find(defects[number].kind), .planted = true };
	const char *how = "a state";
	int ret;

	ret = record(&t, (int)number);
	if (ret) {
		how = "the library";
		t.bad++;
	} else if (!find_committed(&t)) {
		how = "what was committed";
		t.bad++;
	} else {
		enumerate(&t, false);
	}
	printf("planted: %s: %s\n\tby %s: %s\n", defects[number].name,
	       !planted_seen() ? "NOT PLANTED" :
	       t.bad	       ? "seen" :
				 "NOT SEEN",
	       how, t.bad ? t.why : "");
	ret = planted_seen() && t.bad;
	planted_begin(-1);
	release(&t);
	return ret;
}

static void parse(char **argv, struct options *o)
{
	*o = (struct options){ 0 };
	for (argv++; *argv; argv++) {
		if (!strcmp(*argv, "--brief")) {
			o->brief = true;
		} else if (!strcmp(*argv, "--without-defects")) {
			o->without_defects = true;
		} else if (!strcmp(*argv, "--export") && argv[1] && argv[2]) {
			o->folder = *++argv;
			o->count = strtoull(*++argv, NULL, 10);
		} else {
			fprintf(stderr, "crash-devices: unknown option %s\n", *argv);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t states = 0;
	unsigned missed = 0, planted = 0;
	struct options o;
	bool good = true;

	(void)argc;
	parse(argv, &o);
	random_uuids = o.folder;
	for (size_t i = 0; i < num_kinds; i++) {
		good &= run_kind(&kinds[i], &o, &states);
		fflush(stdout);
	}
	for (unsigned i = 0; i < NUM_DEFECTS && !o.without_defects && !o.folder; i++) {
		missed += !run_defect(i);
		planted++;
		fflush(stdout);
	}
	printf("compared %" PRIu64 " states of %zu kinds with what was committed; %u planted defects, %u not seen\n",
	       states, num_kinds, planted, missed);
	return !good || missed;
}
