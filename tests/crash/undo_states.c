// SPDX-License-Identifier: LGPL-2.1-or-later
#include "undo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include <btrkit/error.h>
#include <btrkit/filesystem.h>

#include "lib/format/super.h"
#include "lib/io/undo.h"
#include "lib/io/undo_log.h"

#define SEEDS 32
#define WHY 400

struct hash_set {
	uint64_t hash;
	UT_hash_handle hh;
};

static uint64_t seed_state;

/* xorshift64*: the same states on every machine. */
static uint64_t draw(void)
{
	seed_state ^= seed_state >> 12;
	seed_state ^= seed_state << 25;
	seed_state ^= seed_state >> 27;
	return seed_state * 0x2545f4914f6cdd1dull;
}

/* Whether the state is a new one. */
static bool is_new(struct trial *t, uint64_t hash)
{
	struct hash_set *found;

	HASH_FIND(hh, t->seen, &hash, sizeof(hash), found);
	if (found)
		return false;
	found = calloc(1, sizeof(*found));
	if (!found)
		exit(99);
	found->hash = hash;
	HASH_ADD(hh, t->seen, hash, sizeof(hash), found);
	t->states++;
	return true;
}

static void bad(struct trial *t, const char *what, size_t number, const char *why)
{
	t->bad++;
	if (!t->planted)
		printf("%s: %s %zu: %s\n", t->name, what, number, why);
}

/* Recording: each of the two taps the one log. */
struct tap {
	struct log *log;
	uint64_t tag;
};

static int on_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	const struct tap *tap = ctx;
	uint8_t *copy = malloc(len);

	if (!copy)
		exit(99);
	memcpy(copy, data, len);
	log_put(tap->log, tap->log->n, (struct event){ EVENT_WRITE, offset | tap->tag, len, copy });
	return 0;
}

static int on_flush(void *ctx)
{
	const struct tap *tap = ctx;

	log_put(tap->log, tap->log->n, (struct event){ .kind = EVENT_FLUSH, .offset = tap->tag });
	return 0;
}

struct btrkit_io *trial_io(struct trial *t, struct sparse *before)
{
	static const struct btrkit_io_record_ops ops = { on_write, on_flush, NULL };
	static struct tap taps[2];
	struct btrkit_io *file, *device, *io;
	struct undo_log *log;

	t->before = before;
	t->device = sparse_create(sparse_io(before)->size, before);
	t->file = sparse_create(1ull << 40, NULL);
	taps[0] = (struct tap){ &t->log, 0 };
	taps[1] = (struct tap){ &t->log, IN_FILE };
	if (btrkit_io_record(sparse_io(t->device), &ops, &taps[0], &device, NULL) ||
	    btrkit_io_record(sparse_io(t->file), &ops, &taps[1], &file, NULL) || undo_log_create(file, &log, NULL) ||
	    undo_io_create(log, device, &io, NULL))
		exit(99);
	undo_log_drop(log);
	return io;
}

void trial_release(struct trial *t)
{
	struct hash_set *each, *next;

	HASH_ITER(hh, t->seen, each, next) {
		HASH_DEL(t->seen, each);
		free(each);
	}
	log_release(&t->log);
	sparse_free(t->file);
	sparse_free(t->device);
}

static int undo(struct sparse *device, struct sparse *file, uint64_t file_size, struct btrkit_error *err)
{
	struct btrkit_io *io = sparse_io(device);

	sparse_io(file)->size = file_size;
	return undo_run(sparse_io(file), &io, 1, NULL, NULL, err);
}

/* A state of both, which the undo changes. */
static void judge_pair(struct trial *t, struct sparse *device, struct sparse *file, uint64_t file_size,
		       const char *what, size_t number)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t hash = sparse_hash(device, t->before) * 31 + sparse_hash(file, NULL);
	char why[WHY] = "undone, and yet not as it was";
	int ret;

	if (!is_new(t, hash))
		return;
	ret = undo(device, file, file_size, &err);
	/* A file without a beginning is one before which nothing was written. */
	if ((ret && !strstr(err.message, "is none")) || !sparse_equal(device, t->before)) {
		if (ret)
			btrkit_error_format(&err, why, WHY);
		bad(t, what, number, why);
	}
}

static void apply(const struct event *e, struct sparse *device, struct sparse *file, uint64_t *file_size, size_t sector,
		  uint64_t mask)
{
	struct event here = *e;

	here.offset &= ~IN_FILE;
	if (e->kind != EVENT_WRITE)
		return;
	event_apply(&here, e->offset & IN_FILE ? file : device, sector ? sector : here.len, mask);
	if (e->offset & IN_FILE && here.offset + here.len > *file_size)
		*file_size = here.offset + here.len;
}

struct start start_at(struct trial *t, size_t n)
{
	struct start s = { sparse_create(sparse_io(t->before)->size, t->before), sparse_create(1ull << 40, NULL), 0 };

	for (size_t i = 0; i < n && i < t->log.n; i++)
		apply(&t->log.events[i], s.device, s.file, &s.file_size, 0, UINT64_MAX);
	return s;
}

void start_release(struct start *s)
{
	sparse_free(s->device);
	sparse_free(s->file);
}

static bool pending(const struct log *log, size_t i, const size_t flushed[2])
{
	const struct event *e = &log->events[i];

	return e->kind == EVENT_WRITE && i >= flushed[!!(e->offset & IN_FILE)];
}

/*
 * What is durable, and of what was written since, up to event number @end, some in some order. @durable is what there
 * is up to the latest flush of each; @flushed the events that these were.
 */
static void judge_subset(struct trial *t, const struct start *durable, const size_t flushed[2], size_t end,
			 size_t sector)
{
	struct start s = { sparse_create(sparse_io(t->before)->size, durable->device),
			   sparse_create(1ull << 40, durable->file), durable->file_size };
	size_t *order = calloc(end + 1, sizeof(*order)), n = 0;
	uint64_t keep = draw() % 4;

	for (size_t i = flushed[0] < flushed[1] ? flushed[0] : flushed[1]; i < end; i++) {
		size_t j = draw() % (n + 1);

		if (!pending(&t->log, i, flushed))
			continue;
		order[n] = order[j];
		order[j] = i;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (draw() % 4 <= keep)
			apply(&t->log.events[order[i]], s.device, s.file, &s.file_size, sector,
			      sector ? draw() | draw() : UINT64_MAX);
	judge_pair(t, s.device, s.file, s.file_size, sector ? "torn subset before event" : "subset before event", end);
	free(order);
	start_release(&s);
}

void judge_writing(struct trial *t)
{
	static const size_t sectors[] = { 0, 512, 4096 };
	struct start durable = { sparse_create(sparse_io(t->before)->size, t->before), sparse_create(1ull << 40, NULL),
				 0 };
	size_t flushed[2] = { 0, 0 };

	seed_state = 1;
	for (size_t end = 0; end <= t->log.n; end++) {
		const struct event *e = &t->log.events[end];
		struct start whole = start_at(t, end);
		bool flush = end == t->log.n || e->kind == EVENT_FLUSH;

		judge_pair(t, whole.device, whole.file, whole.file_size, "prefix", end);
		start_release(&whole);
		for (unsigned i = 0; flush && i < 3; i++)
			for (unsigned seed = 0; seed < SEEDS; seed++)
				judge_subset(t, &durable, flushed, end, sectors[i]);
		if (!flush || end == t->log.n)
			continue;
		for (size_t i = flushed[!!e->offset]; i < end; i++)
			if ((t->log.events[i].offset & IN_FILE) == e->offset)
				apply(&t->log.events[i], durable.device, durable.file, &durable.file_size, 0,
				      UINT64_MAX);
		flushed[!!e->offset] = end;
	}
	start_release(&durable);
}

/* An undo that is under way. */
struct undoing {
	struct trial *t;
	const struct start *start;
	struct log log;
	bool was_btrfs;
};

static bool has_magic(struct sparse *s, unsigned mirror, uint64_t magic)
{
	struct disk_super disk;

	if (sparse_io(s)->size < super_offset(mirror) + SUPER_SIZE)
		return false;
	sparse_read(s, super_offset(mirror), &disk, sizeof(disk));
	return le64_get(disk.magic) == magic;
}

static int try_open(struct sparse *state, const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	struct btrkit_io *io = sparse_io(state);
	struct btrkit_fs *fs;
	int ret = btrkit_fs_open(&io, 1, opts, &fs, err);

	if (!ret)
		btrkit_fs_close(fs);
	return ret;
}

static bool is_whole(const struct undoing *u, struct sparse *state)
{
	return !sparse_differs(state, u->start->device) || !sparse_differs(state, u->t->before);
}

static bool same_block(struct sparse *a, struct sparse *b, uint64_t offset)
{
	uint8_t x[4096], y[4096];

	sparse_read(a, offset, x, sizeof(x));
	sparse_read(b, offset, y, sizeof(y));
	return !memcmp(x, y, sizeof(x));
}

/* Whether readers are told what they have to be. @return why not, or NULL */
static const char *judge_readers(const struct undoing *u, struct sparse *state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool whole = is_whole(u, state), marked = has_magic(state, 0, SUPER_MAGIC_UNDO);
	int ret = try_open(state, NULL, &err);

	if (!ret && (!whole || marked))
		return "neither the old state nor the new one, and yet opened";
	if (marked && (ret != -EMEDIUMTYPE || !strstr(err.message, "an undo is unfinished")))
		return "the mark is not named";
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
		const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_SUPER_MIRROR, .super_mirror = mirror };

		if (!try_open(state, &opts, NULL) && !whole)
			return "neither the old state nor the new one, and yet opened by a mirror";
	}
	if (whole)
		return NULL;
	if (u->was_btrfs)
		return marked ? NULL : "neither the old state nor the new one, and no mark";
	/* The first block is what makes other filesystems be seen, whatever the mark. */
	if (same_block(state, u->t->before, 0) && !same_block(u->start->device, u->t->before, 0))
		return "the first block is back before all else is";
	return NULL;
}

static void judge_undo_state(struct undoing *u, struct sparse *state, const char *what, size_t number)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct trial *t = u->t;
	const char *why;
	char line[WHY];
	int ret;

	if (!is_new(t, sparse_hash(state, t->before) * 37 + sparse_hash(u->start->file, NULL)))
		return;
	why = judge_readers(u, state);
	t->unfinished += has_magic(state, 0, SUPER_MAGIC_UNDO);
	ret = undo(state, u->start->file, u->start->file_size, &err);
	if (ret)
		why = btrkit_error_format(&err, line, sizeof(line));
	else if (!why && !sparse_equal(state, t->before))
		why = "undone again, and yet not as it was";
	if (why)
		bad(t, what, number, why);
}

static void judge_undo_prefix(struct undoing *u, size_t n)
{
	struct sparse *state = sparse_create(sparse_io(u->t->before)->size, u->start->device);

	for (size_t i = 0; i < n; i++)
		event_apply(&u->log.events[i], state, u->log.events[i].len, UINT64_MAX);
	judge_undo_state(u, state, "undo, prefix", n);
	sparse_free(state);
}

static void judge_undo_subset(struct undoing *u, struct sparse *durable, size_t first, size_t end, size_t sector)
{
	struct sparse *state = sparse_create(sparse_io(u->t->before)->size, durable);
	uint64_t keep = draw() % 4;

	/* Writes of one stretch do not overlap, so their order is nothing that could be seen. */
	for (size_t i = first; i < end; i++) {
		const struct event *e = &u->log.events[i];

		if (e->kind == EVENT_WRITE && draw() % 4 <= keep)
			event_apply(e, state, sector ? sector : e->len, sector ? draw() | draw() : UINT64_MAX);
	}
	judge_undo_state(u, state, sector ? "undo, torn subset from event" : "undo, subset from event", first);
	sparse_free(state);
}

static void judge_stretches(struct undoing *u)
{
	static const size_t sectors[] = { 0, 512, 4096 };
	struct sparse *durable = sparse_create(sparse_io(u->t->before)->size, u->start->device);

	for (size_t first = 0, end; first < u->log.n; first = end + 1) {
		for (end = first; end < u->log.n && u->log.events[end].kind != EVENT_FLUSH;)
			end++;
		for (unsigned i = 0; i < 3; i++)
			for (unsigned seed = 0; seed < SEEDS; seed++)
				judge_undo_subset(u, durable, first, end, sectors[i]);
		for (size_t i = first; i < end; i++)
			event_apply(&u->log.events[i], durable, u->log.events[i].len, UINT64_MAX);
	}
	sparse_free(durable);
}

/* The state in the middle of an undo, from which another one starts. */
static void judge_second(struct undoing *u)
{
	struct start start = *u->start;

	start.device = sparse_create(sparse_io(u->t->before)->size, u->start->device);
	for (size_t i = 0; i < u->log.n / 2; i++)
		event_apply(&u->log.events[i], start.device, u->log.events[i].len, UINT64_MAX);
	judge_undoing(u->t, &start, NULL, false);
	sparse_free(start.device);
}

void judge_undoing(struct trial *t, const struct start *start, void (*plant)(struct log *), bool again)
{
	struct undoing u = { .t = t, .start = start, .was_btrfs = has_magic(t->before, 0, SUPER_MAGIC) };
	struct sparse *device = sparse_create(sparse_io(t->before)->size, start->device);
	struct btrkit_io *io = log_record(&u.log, 0, device);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	sparse_io(start->file)->size = start->file_size;
	if (undo_run(sparse_io(start->file), &io, 1, NULL, NULL, &err))
		bad(t, "undo", 0, err.message);
	btrkit_io_close(io);
	sparse_free(device);
	if (plant)
		plant(&u.log);
	for (size_t n = 0; n <= u.log.n; n++)
		judge_undo_prefix(&u, n);
	judge_stretches(&u);
	if (again)
		judge_second(&u);
	log_release(&u.log);
}
