// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power failures during mkfs: in every state that they can leave, the device holds no valid superblock or a complete
 * filesystem.
 *
 *	crash-mkfs			all cases; then again with planted defects, which must be detected
 *	crash-mkfs --export DIR		write states of one case as images: old-N.img, new-N.img, nothing-N.img
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#include "filling.h"
#include "verify.h"
#include "lib/format/super.h"
#include "states.h"

#define MIB (1ull << 20)
#define SEEDS 32

struct trial {
	const char *name;
	uint64_t size;
	bool has_old;
	bool filled;
	struct btrkit_mkfs_options opts;
	struct check check;
	struct log log;
	/* counts of examined states */
	uint64_t states, holds[3], bad;
	bool planted;		/* a defect is planted: bad states are expected */
	const char *folder;	/* export directory, or NULL */
};

static void export(const struct trial *t, struct sparse *state, int holds)
{
	static const char *const names[] = { "nothing", "old", "new" };
	static uint64_t exported[3];
	char path[4096];

	/* Export the first few states, then fewer and fewer. */
	if (t->holds[holds] & (t->holds[holds] - 1))
		return;
	snprintf(path, sizeof(path), "%s/%s-%" PRIu64 ".img", t->folder, names[holds], exported[holds]++);
	sparse_export(state, path);
}

static void look(void *ctx, const struct disks *disks, const char *what, size_t number)
{
	struct trial *t = ctx;
	struct sparse *state = disks->at[0];
	char why[300];
	int holds = check_state(&t->check, state, why);

	t->states++;
	if (holds < 0) {
		t->bad++;
		if (!t->planted)
			printf("%s: %s %zu: %s\n", t->name, what, number, why);
		return;
	}
	t->holds[holds]++;
	if (t->folder)
		export(t, state, holds);
}

static void make(struct btrkit_io *io, const struct btrkit_mkfs_options *opts)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[512];

	if (btrkit_mkfs(&io, 1, opts, NULL, &err)) {
		fprintf(stderr, "mkfs: %s\n", btrkit_error_format(&err, line, sizeof(line)));
		exit(1);
	}
}

static const struct btrkit_mkfs_source *filling;
static const uint8_t old_fsid[16] = "an old one 4567", new_fsid[16] = "a new one  4567";

/* Planted defects: reorder or drop writes in the log, as an incorrect writer would. */
static size_t find_super(const struct log *log, uint64_t offset, bool last)
{
	size_t found = log->n;

	for (size_t i = 0; i < log->n; i++) {
		const struct event *e = &log->events[i];

		if (e->kind == EVENT_WRITE && e->offset == offset && e->len == SUPER_SIZE && (last || found == log->n))
			found = i;
	}
	if (found == log->n)
		exit(98);
	return found;
}

static size_t find_flush(const struct log *log, size_t from)
{
	while (log->events[from].kind != EVENT_FLUSH)
		from++;
	return from;
}

static void drop(struct log *log, size_t at)
{
	free(log_take(log, at).data);
}

static void no_flush_before_super(struct log *log)
{
	drop(log, find_super(log, super_offset(0), true) - 1);
}

static void no_flush_after_wiping(struct log *log)
{
	drop(log, find_flush(log, 0));
}

static void super_first(struct log *log)
{
	struct event e = log_take(log, find_super(log, super_offset(0), true));

	log_put(log, find_flush(log, 0) + 1, e);
}

static void mirror_not_wiped(struct log *log)
{
	drop(log, find_super(log, super_offset(1), false));
}

static void primary_not_wiped(struct log *log)
{
	drop(log, find_super(log, super_offset(0), false));
}

static void wiped_after_trees(struct log *log)
{
	size_t end = find_super(log, super_offset(0), true) - 1;

	for (size_t flush = find_flush(log, 0); flush; flush--)
		log_put(log, end, log_take(log, 0));
}

static void tree_missing(struct log *log)
{
	drop(log, find_super(log, super_offset(0), true) - 2);
}

static const struct defect {
	const char *name;
	void (*plant)(struct log *log);
} defects[] = {
	{ "no flush before the superblock", no_flush_before_super },
	{ "no flush after wiping the superblocks", no_flush_after_wiping },
	{ "the superblock before the trees", super_first },
	{ "an old mirror is not wiped", mirror_not_wiped },
	{ "the old primary is not wiped", primary_not_wiped },
	{ "wiped after the trees are written", wiped_after_trees },
	{ "the last write of trees is missing", tree_missing },
};

static void run(struct trial *t, const struct defect *defect)
{
	struct btrkit_mkfs_options old = t->opts;
	struct disks base;
	struct sparse *before = sparse_create(t->size, NULL), *after = sparse_create(t->size, before);
	struct btrkit_io *io;

	states_seed(1);
	old.fsid = old_fsid;
	old.label = "old";
	old.byte_count = 0;
	old.flags &= ~(unsigned)BTRKIT_MKFS_FIT;
	if (t->has_old)
		make(sparse_io(before), &old);
	t->opts.fsid = new_fsid;
	t->opts.source = t->filled ? filling : NULL;
	if (t->filled)
		t->opts.flags |= BTRKIT_MKFS_REPRODUCIBLE;
	io = log_record(&t->log, 0, after);
	make(io, &t->opts);
	btrkit_io_close(io);
	t->check = check_create(before, after);
	t->planted = defect;
	if (defect)
		defect->plant(&t->log);
	base = disks_one(t->check.before);
	states_enumerate(&(struct states){ &t->log, &base, SEEDS, 1, look, t });
	check_release(&t->check);
	log_release(&t->log);
	sparse_free(after);
	sparse_free(before);
}

#define OPTS(data_profile, metadata_profile, mixed_groups, flag_bits, node, bytes, incompat_bits, compat_ro_bits)     \
	{                                                                                                            \
		.flags = flag_bits, .nodesize = node, .byte_count = bytes, .data = data_profile,                    \
		.metadata = metadata_profile, .mixed = mixed_groups, .incompat = incompat_bits,                     \
		.compat_ro = compat_ro_bits, .time = 1                                                              \
	}
#define DEFAULT(flags, bytes)                                                                                 \
	OPTS(BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, flags, 0, bytes, BTRKIT_MKFS_INCOMPAT_DEFAULT, \
	     BTRKIT_MKFS_COMPAT_RO_DEFAULT)

static const struct trial cases[] = {
	{ "over a filesystem", 128 * MIB, true, false, DEFAULT(0, 0) },
	{ "on an empty device", 128 * MIB, false, false, DEFAULT(0, 0) },
	{ "with three superblocks", 300 * 1024 * MIB, true, false, DEFAULT(0, 0) },
	{ "a small one where a large one was", 300 * 1024 * MIB, true, false, DEFAULT(0, 110 * MIB) },
	{ "discarding", 300 * 1024 * MIB, true, false, DEFAULT(BTRKIT_MKFS_DISCARD, 0) },
	{ "small nodes in mixed groups", 256 * MIB, true, false,
	  OPTS(BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 0, 4096, 0, 0x341, 0x3) },
	{ "a superblock in the last bytes", 64 * MIB + 8192, true, false,
	  OPTS(BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 0, 0, 0, BTRKIT_MKFS_INCOMPAT_DEFAULT,
	       BTRKIT_MKFS_COMPAT_RO_DEFAULT) },
	{ "old features, two copies of all", 256 * MIB, true, false,
	  OPTS(BTRKIT_PROFILE_DUP, BTRKIT_PROFILE_DUP, false, 0, 65536, 0, 1, 0) },
	{ "filled, over a filesystem", 128 * MIB, true, true, DEFAULT(0, 0) },
	{ "filled, two copies of all, as small as can be", 300 * 1024 * MIB, true, true,
	  OPTS(BTRKIT_PROFILE_DUP, BTRKIT_PROFILE_DUP, false, BTRKIT_MKFS_FIT, 4096, 0, BTRKIT_MKFS_INCOMPAT_DEFAULT,
	       0) },
};

static int run_cases(uint64_t *states)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trial t = cases[i];

		run(&t, NULL);
		printf("%s: %" PRIu64 " states, %" PRIu64 " without a filesystem, ", t.name, t.states,
		       t.holds[HOLDS_NOTHING]);
		printf("%" PRIu64 " with the old one, ", t.holds[HOLDS_OLD]);
		printf("%" PRIu64 " with the new one, %" PRIu64 " bad\n", t.holds[HOLDS_NEW], t.bad);
		*states += t.states;
		/* Each kind of state must have been seen, or the enumeration missed something. */
		failed |= t.bad || !t.holds[HOLDS_NOTHING] || !t.holds[HOLDS_NEW] || t.has_old != !!t.holds[HOLDS_OLD];
	}
	return failed;
}

static int run_defects(const struct trial *of)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct trial t = *of;

		run(&t, &defects[i]);
		printf("planted, %s: %s: %" PRIu64 " of %" PRIu64 " states are bad\n", t.name, defects[i].name, t.bad,
		       t.states);
		failed |= !t.bad;
	}
	return failed;
}

int main(int argc, char **argv)
{
	const bool without_defects = argc == 2 && !strcmp(argv[1], "--without-defects");
	uint64_t states = 0;
	int failed;

	if (argc == 3 && !strcmp(argv[1], "--export")) {
		struct trial t = cases[0];

		t.folder = argv[2];
		run(&t, NULL);
		return t.bad != 0;
	}
	if (argc != 1 && !without_defects) {
		fprintf(stderr, "usage: crash-mkfs [--export DIR | --without-defects]\n");
		return 2;
	}
	filling = filling_create();
	failed = run_cases(&states);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !without_defects; i++)
		if (!i || (cases[i].filled && !cases[i - 1].filled))
			failed |= run_defects(&cases[i]);
	filling_remove();
	printf("compared %" PRIu64 " states of a device with what it may hold; %zu planted defects\n", states,
	       without_defects ? 0 : 2 * sizeof(defects) / sizeof(defects[0]));
	return failed;
}
