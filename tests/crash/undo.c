// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power failures with an undo file: while a device is overwritten, undo must restore it byte for byte from whatever
 * state device and undo file are in; while undo runs, readers must not accept the device as a filesystem, and running
 * undo again must complete it. Then the same with planted defects, which must be detected.
 */
#include "undo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/error.h>
#include <btrkit/filesystem.h>
#include <btrkit/mkfs.h>
#include <btrkit/transaction.h>

#include "lib/base/uuid.h"
#include "lib/commit/txn.h"
#include "lib/format/super.h"
#include "lib/io/undo_log.h"
#include "lib/tree/edit.h"

#define MIB (1ull << 20)

static const uint8_t old_fsid[16] = "an old one 4567", new_fsid[16] = "a new one  4567";

/* Defects made by wrapped functions. */
static struct {
	bool no_sums;		/* checksums of what will be written are not saved */
	unsigned lost;		/* this OLD record, counted from 1, is not written */
	bool no_name;		/* readers ignore the mark */
} planted;
static unsigned old_records;

int __real_undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
			   struct btrkit_error *err);
int __wrap_undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
			   struct btrkit_error *err);
int __real_super_refuse_undo_mark(const struct disk_super *disk, struct btrkit_error *err);
int __wrap_super_refuse_undo_mark(const struct disk_super *disk, struct btrkit_error *err);
int __wrap_base_uuid_random(uint8_t ret[16], struct btrkit_error *err);

int __wrap_undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
			   struct btrkit_error *err)
{
	if (planted.no_sums && head->type == UNDO_NEW)
		return 0;
	if (head->type == UNDO_OLD && ++old_records == planted.lost)
		return 0;
	return __real_undo_log_append(log, head, payload, err);
}

int __wrap_super_refuse_undo_mark(const struct disk_super *disk, struct btrkit_error *err)
{
	return planted.no_name ? 0 : __real_super_refuse_undo_mark(disk, err);
}

/* UUIDs, and with them the states, are equal in every run. */
int __wrap_base_uuid_random(uint8_t ret[16], struct btrkit_error *err)
{
	(void)err;
	memset(ret, 0x42, 16);
	return 0;
}

static void check(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (!ret)
		return;
	fprintf(stderr, "%s\n", btrkit_error_format(err, line, sizeof(line)));
	exit(1);
}

static void make(struct btrkit_io **ios, size_t n, const uint8_t *fsid, uint64_t bytes)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	opts.flags = BTRKIT_MKFS_REPRODUCIBLE | BTRKIT_MKFS_DISCARD;
	opts.fsid = fsid;
	opts.byte_count = bytes;
	check(btrkit_mkfs(ios, n, &opts, NULL, &err), &err);
}

/* Initial contents of the devices. */
static void nothing(struct sparse **s, size_t n)
{
	(void)s;
	(void)n;
}

static void filesystem(struct sparse **s, size_t n)
{
	struct btrkit_io *ios[DEVICES];

	for (size_t i = 0; i < n; i++)
		ios[i] = sparse_io(s[i]);
	make(ios, n, old_fsid, 0);
}

/* Like a foreign filesystem: bytes at both ends, and where superblocks lie. */
static void something(struct sparse **s, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		uint8_t bytes[200000];
		const uint64_t at[] = { 0, 64 * MIB - 100000, sparse_io(s[k])->size - sizeof(bytes) };

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(i * (7 + k) + i / 251 + 1);
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
			sparse_write(s[k], at[i], bytes, sizeof(bytes));
	}
}

static void close_all(struct btrkit_io **ios, size_t n)
{
	for (size_t i = 0; i < n; i++)
		btrkit_io_close(ios[i]);
}

/* What is written while the undo file records. */
static void make_new(struct btrkit_io **ios, size_t n)
{
	make(ios, n, new_fsid, 0);
	close_all(ios, n);
}

static void make_small(struct btrkit_io **ios, size_t n)
{
	make(ios, n, new_fsid, 110 * MIB);
	close_all(ios, n);
}

static void toggle(struct btrkit_txn *txn, unsigned round)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[300] = { 1 };
	struct edit_tree *tree;

	check(txn_tree(txn, OID_FS_TREE, &tree, &err), &err);
	for (unsigned i = 0; i < 400; i++) {
		const struct btrkit_key key = KEY(1000 + i, 99, 0);

		if (i % 3 == round % 3 && round > 2)
			check(edit_delete(tree, &key, &err), &err);
		else if (i % 3 == round % 3)
			check(edit_insert(tree, &key, bytes, sizeof(bytes), &err), &err);
	}
}

static void commit(struct btrkit_io **ios, size_t n)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;

	check(btrkit_fs_open(ios, n, &opts, &fs, &err), &err);
	for (unsigned round = 0; round < 5; round++) {
		struct btrkit_txn *txn;

		check(btrkit_txn_start(fs, &txn, &err), &err);
		toggle(txn, round);
		check(btrkit_txn_commit(txn, NULL, &err), &err);
	}
	btrkit_fs_close(fs);
}

/* Writes parts of blocks and sectors repeatedly, up to the last byte. */
static void scribble_on(struct btrkit_io *io, uint64_t at)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[9000];
	const uint64_t room = io->size < 200000 ? io->size : 200000;

	for (unsigned i = 0; i < 60; i++) {
		size_t len = 1 + i * 149;

		memset(bytes, (int)i + 1, sizeof(bytes));
		at = (at * 48271) % 2147483647;
		if (i % 5 == 4)
			check(btrkit_io_reserve(io, at % (room - len), len, &err), &err);
		check(btrkit_io_write(io, i % 7 ? at % (room - len) : io->size - len, bytes, len, &err), &err);
		if (i % 4 == 3)
			check(btrkit_io_flush(io, &err), &err);
	}
}

static void scribble(struct btrkit_io **ios, size_t n)
{
	for (size_t i = 0; i < n; i++)
		scribble_on(ios[i], i + 1);
	close_all(ios, n);
}

struct setup {
	const char *name;
	uint64_t size;
	void (*before)(struct sparse **, size_t);
	void (*write)(struct btrkit_io **, size_t);
	size_t devices; /* 0: one */
};

static const struct setup setups[] = {
	{ "a filesystem over a filesystem", 128 * MIB, filesystem, make_new },
	{ "over something else", 128 * MIB, something, make_new },
	{ "over nothing", 128 * MIB, nothing, make_new },
	{ "a small one over one with three superblocks", 300 * 1024 * MIB, filesystem, make_small },
	{ "commits", 256 * MIB, filesystem, commit },
	{ "pieces of blocks", 70 * MIB + 333, something, scribble },
	{ "pieces of blocks on a tiny device", 201000, nothing, scribble },
	{ "two devices: a filesystem over a filesystem", 128 * MIB, filesystem, make_new, 2 },
	{ "two devices: over something else", 128 * MIB, something, make_new, 2 },
	{ "two devices: over nothing", 128 * MIB, nothing, make_new, 2 },
	{ "two devices: commits", 256 * MIB, filesystem, commit, 2 },
	{ "two devices: pieces of blocks", 201000, something, scribble, 2 },
};

struct defect {
	const char *name;
	void (*plant)(struct log *);
	bool in_undo;	/* alters the log of the undo, not of the writer */
	bool no_sums, no_name;
	unsigned lost;
};

static void plant_in_code(const struct defect *defect)
{
	memset(&planted, 0, sizeof(planted));
	if (defect) {
		planted.no_sums = defect->no_sums;
		planted.no_name = defect->no_name;
		planted.lost = defect->lost;
	}
	old_records = 0;
}

/* @return number of bad states */
static uint64_t run(const struct setup *setup, const struct defect *defect, struct trial *t)
{
	static const unsigned parts[] = { 4, 3, 2, 1 };
	struct sparse *before[DEVICES] = { NULL };
	struct btrkit_io *ios[DEVICES];

	*t = (struct trial){ .name = setup->name, .planted = defect, .devices = setup->devices ? setup->devices : 1 };
	for (size_t i = 0; i < t->devices; i++)
		before[i] = sparse_create(setup->size, NULL);
	plant_in_code(defect);
	setup->before(before, t->devices);
	trial_start(t, before, ios);
	setup->write(ios, t->devices);
	if (defect && !defect->in_undo && defect->plant)
		defect->plant(&t->log);
	if (!defect || !defect->in_undo)
		check_writing(t);
	/* Undo from the end, and from states where the writer was interrupted. */
	for (size_t i = 0; i < 4 && (!defect || (defect->in_undo && !i)); i++) {
		struct start start = start_at(t, t->log.n * parts[i] / 4);

		check_undoing(t, &start, defect ? defect->plant : NULL, !defect);
		start_release(t, &start);
	}
	trial_release(t);
	for (size_t i = 0; i < t->devices; i++)
		sparse_free(before[i]);
	return t->bad;
}

/* Defects made by altering the log. */
static void drop(struct log *log, size_t at)
{
	free(log_take(log, at).data);
}

static uint64_t device_range_of(const struct event *e)
{
	return e->offset & (IN_FILE | ON_DEVICE(1));
}

static size_t find(const struct log *log, enum event_kind kind, uint64_t offset, size_t nth)
{
	for (size_t i = 0; i < log->n; i++)
		if (log->events[i].kind == kind && log->events[i].offset == offset && !nth--)
			return i;
	exit(98);
}

static void file_not_flushed(struct log *log)
{
	for (size_t i = log->n; i--;)
		if (log->events[i].kind == EVENT_FLUSH && log->events[i].offset == IN_FILE)
			drop(log, i);
}

/* Old contents are saved only after they were overwritten. */
static void saved_too_late(struct log *log)
{
	size_t flush = find(log, EVENT_FLUSH, IN_FILE, 0), end = flush + 1;

	while (log->events[end].kind == EVENT_WRITE && !(log->events[end].offset & IN_FILE))
		end++;
	for (size_t n = end - flush - 1; n--;)
		log_put(log, 0, log_take(log, end - 1));
}

static void file_write_lost(struct log *log)
{
	for (size_t i = log->n, n = 0; i--;)
		if (log->events[i].kind == EVENT_WRITE && log->events[i].offset & IN_FILE && ++n == 3)
			drop(log, i);
}

static void marks_not_flushed(struct log *log)
{
	drop(log, find(log, EVENT_FLUSH, 0, 0));
}

static void primary_not_marked(struct log *log)
{
	drop(log, find(log, EVENT_WRITE, super_offset(0), 0));
}

static void mirror_not_marked(struct log *log)
{
	drop(log, find(log, EVENT_WRITE, super_offset(1), 0));
}

static void primary_back_first(struct log *log)
{
	struct event e = log_take(log, find(log, EVENT_WRITE, super_offset(0), 1));

	log_put(log, find(log, EVENT_FLUSH, 0, 0) + 1, e);
}

static void not_flushed_before_superblocks(struct log *log)
{
	drop(log, find(log, EVENT_FLUSH, 0, 2));
	drop(log, find(log, EVENT_FLUSH, 0, 1));
}

static void first_block_not_last(struct log *log)
{
	struct event e = log_take(log, find(log, EVENT_WRITE, 0, 0));

	log_put(log, find(log, EVENT_FLUSH, 0, 0) + 1, e);
}

/* All events of the second device come after those of the first. */
static void one_device_first(struct log *log)
{
	for (size_t i = 0, n = log->n; n--;) {
		if (log->events[i].offset & ON_DEVICE(1))
			log_put(log, log->n - 1, log_take(log, i));
		else
			i++;
	}
}

static void second_not_marked(struct log *log)
{
	drop(log, find(log, EVENT_WRITE, super_offset(0) | ON_DEVICE(1), 0));
}

/* The second device is overwritten while the undo file covers only the first. */
static void second_written_too_early(struct log *log)
{
	size_t i = 0;

	while (device_range_of(&log->events[i]) != ON_DEVICE(1) || log->events[i].kind != EVENT_WRITE)
		i++;
	log_put(log, 0, log_take(log, i));
}

static const struct defect_at {
	unsigned setup;
	struct defect defect;
} defects[] = {
	{ 0, { "the undo file is not flushed before the device is written", file_not_flushed, false } },
	{ 0, { "old contents are saved when they are overwritten", saved_too_late, false } },
	{ 0, { "a write of the undo file is lost", file_write_lost, false } },
	{ 4, { "what will be written is not announced", NULL, false, .no_sums = true } },
	{ 0, { "a superblock is not saved", NULL, false, .lost = 2 } },
	{ 4, { "a block is not saved", NULL, false, .lost = 12 } },
	{ 0, { "the marks are not flushed", marks_not_flushed, true } },
	{ 0, { "the primary superblock is not marked", primary_not_marked, true } },
	{ 0, { "a mirror is not marked", mirror_not_marked, true } },
	{ 0, { "the primary superblock is back first", primary_back_first, true } },
	{ 0, { "no flush before the superblocks are back", not_flushed_before_superblocks, true } },
	{ 0, { "readers do not know the mark", NULL, true, .no_name = true } },
	{ 1, { "the first block of something else is not the last", first_block_not_last, true } },
	{ 10, { "one device is put back before the other is marked", one_device_first, true } },
	{ 7, { "the second device is not marked", second_not_marked, true } },
	{ 7, { "the second device is written to before its old contents are saved", second_written_too_early } },
};

int main(int argc, char **argv)
{
	/* With sanitizers, where many states exercise the same code: every other setup, and no defects. */
	const bool brief = argc == 2 && !strcmp(argv[1], "--brief");
	const size_t num_defects = brief ? 0 : sizeof(defects) / sizeof(defects[0]);
	uint64_t states = 0, unfinished = 0;
	int failed = 0;

	for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i += brief ? 2 : 1) {
		struct trial t;

		failed |= !!run(&setups[i], NULL, &t);
		printf("%s: %" PRIu64 " states, %" PRIu64 " with an unfinished undo, %" PRIu64 " bad\n",
		       t.name, t.states, t.unfinished, t.bad);
		failed |= !t.unfinished;
		states += t.states;
		unfinished += t.unfinished;
	}
	for (size_t i = 0; i < num_defects; i++) {
		struct trial t;
		uint64_t bad = run(&setups[defects[i].setup], &defects[i].defect, &t);

		printf("planted: %s: %" PRIu64 " of %" PRIu64 " states are bad\n", defects[i].defect.name, bad,
		       t.states);
		failed |= !bad;
	}
	printf("compared %" PRIu64 " states of a device and its undo file, %" PRIu64 " of them of an undo; "
	       "%zu planted defects\n", states, unfinished, num_defects);
	return failed;
}
