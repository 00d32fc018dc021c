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

/* Whether the state has not been seen before. */
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

/* Recorder of one device; all of them append to one log. */
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

/* @tap must outlive the device. */
static struct btrkit_io *record(struct log *log, struct sparse *below, uint64_t tag, struct tap *tap)
{
	static const struct btrkit_io_record_ops ops = { on_write, on_flush, NULL };
	struct btrkit_io *io;

	*tap = (struct tap){ log, tag };
	if (btrkit_io_record(sparse_io(below), &ops, tap, &io, NULL))
		exit(99);
	return io;
}

/* Where an event belongs: the number of a device, or DEVICES for the undo file. */
static size_t place(const struct event *e)
{
	return e->offset & IN_FILE ? DEVICES : (size_t)(e->offset >> 56);
}

static struct start copy_start(const struct trial *t, const struct start *from)
{
	struct start s = { .file = sparse_create(1ull << 40, from->file), .file_size = from->file_size };

	for (size_t i = 0; i < t->devices; i++)
		s.device[i] = sparse_create(sparse_io(t->before[i])->size, from->device[i]);
	return s;
}

static struct start first_start(const struct trial *t)
{
	struct start s = { 0 };

	memcpy(s.device, t->before, sizeof(s.device));
	return copy_start(t, &s);
}

void start_release(const struct trial *t, struct start *s)
{
	for (size_t i = 0; i < t->devices; i++)
		sparse_free(s->device[i]);
	sparse_free(s->file);
}

void trial_start(struct trial *t, struct sparse *const *before, struct btrkit_io **ios)
{
	static struct tap taps[DEVICES + 1];
	struct btrkit_io *device;
	struct undo_log *log;

	memcpy(t->before, before, t->devices * sizeof(before[0]));
	t->now = first_start(t);
	if (undo_log_create(record(&t->log, t->now.file, IN_FILE, &taps[DEVICES]), &log, NULL))
		exit(99);
	for (size_t i = 0; i < t->devices; i++) {
		device = record(&t->log, t->now.device[i], ON_DEVICE(i), &taps[i]);
		if (undo_io_create(log, device, &ios[i], NULL))
			exit(99);
	}
	undo_log_drop(log);
}

void trial_release(struct trial *t)
{
	struct hash_set *each, *next;

	HASH_ITER(hh, t->seen, each, next) {
		HASH_DEL(t->seen, each);
		free(each);
	}
	log_release(&t->log);
	start_release(t, &t->now);
}

/* Passes the devices in either order: undo must identify them itself wherever their contents allow that. */
static int undo(struct trial *t, const struct start *s, bool turned, struct btrkit_error *err)
{
	const struct btrkit_undo_options ordered = { .flags = BTRKIT_UNDO_ORDERED };
	struct btrkit_io *ios[DEVICES], *other[DEVICES];
	int ret;

	for (size_t i = 0; i < t->devices; i++) {
		ios[i] = sparse_io(s->device[i]);
		other[t->devices - 1 - i] = ios[i];
	}
	sparse_io(s->file)->size = s->file_size;
	ret = undo_run(sparse_io(s->file), turned ? other : ios, t->devices, NULL, NULL, err);
	if (ret != -EINVAL || !strstr(err->message, "cannot determine which device"))
		return ret;
	t->alike++;
	return undo_run(sparse_io(s->file), ios, t->devices, &ordered, NULL, err);
}

static bool is_undone(const struct trial *t, const struct start *s)
{
	for (size_t i = 0; i < t->devices; i++)
		if (!sparse_equal(s->device[i], t->before[i]))
			return false;
	return true;
}

static uint64_t hash_devices(const struct trial *t, const struct start *s)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < t->devices; i++)
		hash = hash * 41 + sparse_hash(s->device[i], t->before[i]);
	return hash;
}

/* Undo from this state, which is modified. */
static void check_state(struct trial *t, const struct start *s, const char *what, size_t number)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const uint64_t hash = hash_devices(t, s) * 31 + sparse_hash(s->file, NULL);
	char why[WHY] = "undone, and yet not as it was";
	int ret;

	if (!is_new(t, hash))
		return;
	ret = undo(t, s, hash & 1, &err);
	/* An undo file without a valid header means that nothing was written to the devices yet. */
	if ((ret && !strstr(err.message, "is not an undo file")) || !is_undone(t, s)) {
		if (ret)
			btrkit_error_format(&err, why, WHY);
		bad(t, what, number, why);
	}
}

static void apply(const struct event *e, struct start *s, size_t sector, uint64_t mask)
{
	struct event here = *e;

	here.offset &= ON_DEVICE(1) - 1;
	if (e->kind != EVENT_WRITE)
		return;
	event_apply(&here, e->offset & IN_FILE ? s->file : s->device[place(e)], sector ? sector : here.len, mask);
	if (e->offset & IN_FILE && here.offset + here.len > s->file_size)
		s->file_size = here.offset + here.len;
}

struct start start_at(struct trial *t, size_t n)
{
	struct start s = first_start(t);

	for (size_t i = 0; i < n && i < t->log.n; i++)
		apply(&t->log.events[i], &s, 0, UINT64_MAX);
	return s;
}

/* The durable state of a log, and the last flush of each device and of the file. */
struct durable {
	const struct log *log;
	struct start is;
	size_t flushed[DEVICES + 1];
};

static bool pending(const struct durable *d, size_t i)
{
	const struct event *e = &d->log->events[i];

	return e->kind == EVENT_WRITE && i >= d->flushed[place(e)];
}

/* Event number @end is a flush: make what it covers durable. */
static void make_durable(struct durable *d, size_t end)
{
	const size_t at = place(&d->log->events[end]);

	for (size_t i = d->flushed[at]; i < end; i++)
		if (place(&d->log->events[i]) == at)
			apply(&d->log->events[i], &d->is, 0, UINT64_MAX);
	d->flushed[at] = end;
}

/* A random state at event number @end: the durable state and some of the later events in random order. */
static struct start draw_subset(const struct trial *t, const struct durable *d, size_t end, size_t sector)
{
	struct start s = copy_start(t, &d->is);
	size_t *order = calloc(end + 1, sizeof(*order)), n = 0;
	uint64_t keep = draw() % 4;

	for (size_t i = 0; i < end; i++) {
		size_t j;

		if (!pending(d, i))
			continue;
		j = draw() % (n + 1);
		order[n] = order[j];
		order[j] = i;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (draw() % 4 <= keep)
			apply(&d->log->events[order[i]], &s, sector, sector ? draw() | draw() : UINT64_MAX);
	free(order);
	return s;
}

/* Passes every prefix of the log to @rules, and random subsets of the unflushed events before each flush. */
static void check_log(struct trial *t, const struct log *log, const struct start *first,
		      void (*check)(void *ctx, const struct start *s, const char *what, size_t number), void *ctx)
{
	static const size_t sectors[] = { 0, 512, 4096 };
	struct durable durable = { .log = log, .is = copy_start(t, first) };
	struct start whole = copy_start(t, first);

	seed_state = 1;
	for (size_t end = 0; end <= log->n; end++) {
		bool flush = end == log->n || log->events[end].kind == EVENT_FLUSH;
		struct start s = copy_start(t, &whole);

		check(ctx, &s, "prefix", end);
		start_release(t, &s);
		for (unsigned i = 0; flush && i < 3; i++) {
			for (unsigned seed = 0; seed < SEEDS / t->devices; seed++) {
				s = draw_subset(t, &durable, end, sectors[i]);
				check(ctx, &s, i ? "torn subset before event" : "subset before event", end);
				start_release(t, &s);
			}
		}
		if (end == log->n)
			break;
		apply(&log->events[end], &whole, 0, UINT64_MAX);
		if (flush)
			make_durable(&durable, end);
	}
	start_release(t, &whole);
	start_release(t, &durable.is);
}

static void check_written(void *ctx, const struct start *s, const char *what, size_t number)
{
	check_state(ctx, s, what, number);
}

void check_writing(struct trial *t)
{
	struct start first = first_start(t);

	check_log(t, &t->log, &first, check_written, t);
	start_release(t, &first);
}

/* An undo in progress. */
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

static int try_open(struct sparse *const *states, size_t n, const struct btrkit_open_options *opts,
		    struct btrkit_error *err)
{
	struct btrkit_io *ios[DEVICES];
	struct btrkit_fs *fs;
	int ret;

	for (size_t i = 0; i < n; i++)
		ios[i] = sparse_io(states[i]);
	ret = btrkit_fs_open(ios, n, opts, &fs, err);
	if (!ret)
		btrkit_fs_close(fs);
	return ret;
}

static bool is_whole(const struct undoing *u, struct sparse *const *states, size_t first, size_t n)
{
	bool old = true, new = true;

	for (size_t i = 0; i < n; i++) {
		old &= !sparse_differs(states[i], u->t->before[first + i]);
		new &= !sparse_differs(states[i], u->start->device[first + i]);
	}
	return old || new;
}

static bool same_block(struct sparse *a, struct sparse *b, uint64_t offset)
{
	uint8_t x[4096], y[4096];

	sparse_read(a, offset, x, sizeof(x));
	sparse_read(b, offset, y, sizeof(y));
	return !memcmp(x, y, sizeof(x));
}

/* Checks how @n devices from number @first on can be opened. @return the complaint, or NULL */
static const char *check_opening(const struct undoing *u, struct sparse *const *states, size_t first, size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool whole = is_whole(u, states, first, n), marked = false;
	int ret = try_open(states, n, NULL, &err);

	for (size_t i = 0; i < n; i++)
		marked |= has_magic(states[i], 0, SUPER_MAGIC_UNDO);
	if (!ret && (!whole || marked))
		return "neither the old state nor the new one, and yet opened";
	/* With several devices, the first may be restored already, and may have had no filesystem. */
	if (marked && (ret != -EMEDIUMTYPE ||
		       (!strstr(err.message, "an undo is unfinished") && (u->was_btrfs || n == 1))))
		return "the mark is not named";
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
		const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_SUPER_MIRROR, .super_mirror = mirror };

		if (!try_open(states, n, &opts, NULL) && !whole)
			return "neither the old state nor the new one, and yet opened by a mirror";
	}
	return NULL;
}

/* Checks one device alone. */
static const char *verify_device(const struct undoing *u, struct sparse *state, size_t i)
{
	if (is_whole(u, &state, i, 1))
		return NULL;
	if (u->was_btrfs)
		return has_magic(state, 0, SUPER_MAGIC_UNDO) ? NULL :
							       "neither the old state nor the new one, and no mark";
	/* Other filesystems are recognized by their first block, regardless of the mark. */
	if (same_block(state, u->t->before[i], 0) && !same_block(u->start->device[i], u->t->before[i], 0))
		return "the first block is back before all else is";
	return NULL;
}

static const char *check_readers(const struct undoing *u, const struct start *s)
{
	const char *why = check_opening(u, s->device, 0, u->t->devices);

	for (size_t i = 0; !why && i < u->t->devices; i++) {
		why = verify_device(u, s->device[i], i);
		if (!why && u->t->devices > 1)
			why = check_opening(u, &s->device[i], i, 1);
	}
	return why;
}

static void check_undone(void *ctx, const struct start *s, const char *what, size_t number)
{
	struct undoing *u = ctx;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct trial *t = u->t;
	const uint64_t hash = hash_devices(t, s) * 37 + sparse_hash(u->start->file, NULL);
	bool marked = false;
	const char *why;
	char line[WHY];
	int ret;

	if (!is_new(t, hash))
		return;
	why = check_readers(u, s);
	for (size_t i = 0; i < t->devices; i++)
		marked |= has_magic(s->device[i], 0, SUPER_MAGIC_UNDO);
	t->unfinished += marked;
	ret = undo(t, s, hash & 1, &err);
	if (ret)
		why = btrkit_error_format(&err, line, sizeof(line));
	else if (!why && !is_undone(t, s))
		why = "undone again, and yet not as it was";
	if (why)
		bad(t, what, number, why);
}

/* An undo that starts from the state of an interrupted one. */
static void check_second(struct undoing *u)
{
	struct start start = copy_start(u->t, u->start);

	for (size_t i = 0; i < u->log.n / 2; i++)
		apply(&u->log.events[i], &start, 0, UINT64_MAX);
	check_undoing(u->t, &start, NULL, false);
	start_release(u->t, &start);
}

void check_undoing(struct trial *t, const struct start *start, void (*plant)(struct log *), bool again)
{
	const struct btrkit_undo_options ordered = { .flags = BTRKIT_UNDO_ORDERED };
	struct undoing u = { .t = t, .start = start, .was_btrfs = has_magic(t->before[0], 0, SUPER_MAGIC) };
	struct start first = copy_start(t, start);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *ios[DEVICES];
	struct tap taps[DEVICES];

	for (size_t i = 0; i < t->devices; i++)
		ios[i] = record(&u.log, first.device[i], ON_DEVICE(i), &taps[i]);
	sparse_io(start->file)->size = start->file_size;
	if (undo_run(sparse_io(start->file), ios, t->devices, &ordered, NULL, &err))
		bad(t, "undo", 0, err.message);
	for (size_t i = 0; i < t->devices; i++)
		btrkit_io_close(ios[i]);
	start_release(t, &first);
	if (plant)
		plant(&u.log);
	check_log(t, &u.log, start, check_undone, &u);
	if (again)
		check_second(&u);
	log_release(&u.log);
}
