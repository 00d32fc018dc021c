// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Restores devices from an undo file. Everything is compared before anything is written, and as long as a device is
 * neither in its old nor in its new state it has no valid superblock. With several devices, each step is completed on
 * all of them before the next begins.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/io/undo.h"
#include "lib/io/undo_log.h"
#include "lib/io/undo_run.h"

static_assert(SUPER_SECTOR_SIZE == UNDO_SECTOR, "a mark is a sector");

/* The state of a sector of the device, compared with the undo file. */
enum sector { UNKEPT, SAME, DIFFERENT, WRITTEN };

int undo_blame(const struct undo *u, int ret, struct btrkit_error *err)
{
	if (ret && err)
		undo_blame_file(err, u->file->name);
	return ret;
}

static int damaged(const struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	return undo_blame(u, err_corrupt(err, NULL, "is damaged at %" PRIu64, e->at), err);
}

static unsigned number_of(const struct undo *u)
{
	return (unsigned)(u->t - u->targets);
}

static size_t sector_bytes(const struct undo *u, uint32_t sector)
{
	uint64_t left = u->t->device->size - u->start - (uint64_t)sector * UNDO_SECTOR;

	return left < UNDO_SECTOR ? (size_t)left : UNDO_SECTOR;
}

/* Loads the old and the current contents for an OLD entry. */
static int load_entry(struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	const size_t at = e->offset % UNDO_WINDOW;
	int ret = btrkit_io_read(u->t->device, e->offset, u->now + at, e->len, err);

	if (ret)
		return ret;
	if (e->flags & UNDO_ZEROS)
		memset(u->old + at, 0, e->len);
	else
		ret = undo_blame(u, btrkit_io_read(u->file, e->at, u->old + at, e->len, err), err);
	for (uint32_t s = (uint32_t)(at / UNDO_SECTOR); !ret && s < at / UNDO_SECTOR + undo_sectors(e->len); s++) {
		const size_t from = (size_t)s * UNDO_SECTOR;

		/* If a block were saved twice, it would be unclear which contents are older. */
		if (u->sectors[s] != UNKEPT)
			return damaged(u, e, err);
		u->sectors[s] = memcmp(u->now + from, u->old + from, sector_bytes(u, s)) ? DIFFERENT : SAME;
		/* Computed once, however many NEW entries there are. */
		if (u->sectors[s] == DIFFERENT)
			u->sums[s] = crc32c(~0u, u->now + from, sector_bytes(u, s));
	}
	return ret;
}

static int load_window(struct undo *u, size_t first, size_t n, struct btrkit_error *err)
{
	const struct undo_entry *e = u->index.entries + first;
	int ret = 0;

	memset(u->sectors, UNKEPT, sizeof(u->sectors));
	u->start = e->offset - e->offset % UNDO_WINDOW;
	for (size_t i = 0; !ret && i < n && e[i].type == UNDO_OLD; i++) {
		ret = load_entry(u, &e[i], err);
		u->done += e[i].len;
	}
	if (!ret && u->opts->progress && !u->quiet) {
		ret = u->opts->progress(u->opts->progress_ctx, u->done, 2 * u->index.saved);
		if (ret)
			ret = err_system(err, ret, "undo cancelled");
	}
	return ret;
}

/* A sector with a checksum from a NEW entry was written by the run that is undone. */
static int match_entry(struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	const uint32_t first = (uint32_t)(e->offset % UNDO_WINDOW / UNDO_SECTOR), n = undo_sectors(e->len);
	le32 sums[WINDOW_SECTORS];
	int ret;

	ret = undo_blame(u, btrkit_io_read(u->file, e->at, sums, n * sizeof(sums[0]), err), err);
	for (uint32_t s = first; !ret && s < first + n; s++) {
		if (u->sectors[s] == UNKEPT)
			return damaged(u, e, err);
		if (u->sectors[s] == DIFFERENT && u->sums[s] == le32_get(sums[s - first]))
			u->sectors[s] = WRITTEN;
	}
	return ret;
}

static bool in_window(const struct undo *u, const struct piece *p)
{
	return p->len && p->offset >= u->start && p->offset < u->start + UNDO_WINDOW;
}

/* Accepts the marks that an earlier undo with this file may have left. */
static void match_marks(struct undo *u)
{
	uint8_t mark[UNDO_SECTOR];

	for (unsigned i = 0; i < SUPER_MIRRORS; i++) {
		const struct piece *p = &u->t->pieces[i];
		size_t at = p->offset % UNDO_WINDOW;

		if (!in_window(u, p) || u->sectors[at / UNDO_SECTOR] != DIFFERENT)
			continue;
		super_undo_mark(u->index.id, p->offset, number_of(u), mark);
		if (!memcmp(u->now + at, mark, sizeof(mark)))
			u->sectors[at / UNDO_SECTOR] = WRITTEN;
	}
}

static int check_window(struct undo *u, size_t first, size_t n, struct btrkit_error *err)
{
	const struct undo_entry *e = u->index.entries + first;
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		if (e[i].type == UNDO_NEW)
			ret = match_entry(u, &e[i], err);
	if (ret)
		return ret;
	match_marks(u);
	for (uint32_t s = 0; s < WINDOW_SECTORS; s++) {
		if (u->sectors[s] == DIFFERENT) {
			ret = err_set(err, BTRKIT_INVALID,
				      "the device has changed since, or the undo file belongs to another device");
			if (err) {
				err->places |= BTRKIT_AT_PHYSICAL;
				err->physical = u->start + (uint64_t)s * UNDO_SECTOR;
			}
			return ret;
		}
		if (u->sectors[s] == WRITTEN)
			u->t->different += sector_bytes(u, s);
	}
	return 0;
}

/* Keeps what will be restored last. */
static void keep_pieces(struct undo *u)
{
	for (unsigned i = 0; i < PIECES; i++) {
		struct piece *p = &u->t->pieces[i];
		size_t at = p->offset % UNDO_WINDOW;

		if (!in_window(u, p) || u->sectors[at / UNDO_SECTOR] == UNKEPT)
			continue;
		p->kept = true;
		memcpy(p->old, u->old + at, p->len);
	}
}

int undo_check(struct undo *u, bool all, struct btrkit_error *err)
{
	struct undo_target *t = u->t;
	int ret = 0;

	t->different = 0;
	for (unsigned i = 0; i < PIECES; i++)
		t->pieces[i].kept = false;
	for (size_t i = t->first, n; !ret && i < t->end && (all || i == t->first); i += n) {
		n = undo_index_window(&u->index, i);
		ret = load_window(u, i, n, err);
		if (!ret)
			ret = check_window(u, i, n, err);
		if (!ret)
			keep_pieces(u);
	}
	for (unsigned i = 0; !ret && all && i < SUPER_MIRRORS; i++)
		if (t->pieces[i].len && !t->pieces[i].kept)
			ret = undo_blame(u, err_corrupt(err, NULL, "lacks a superblock"), err);
	return ret;
}

/*
 * Whether the device contained btrfs: then restoring its primary superblock last makes it valid again. Otherwise the
 * first block has that role, which decides in most formats.
 */
static bool was_btrfs(const struct undo *u)
{
	const struct piece *p = &u->t->pieces[0];
	le64 magic;

	memcpy(&magic, p->old + offsetof(struct disk_super, magic), sizeof(magic));
	return p->kept && le64_get(magic) == SUPER_MAGIC;
}

static bool comes_last(const struct undo *u, uint32_t sector)
{
	const uint64_t at = u->start + (uint64_t)sector * UNDO_SECTOR;

	for (unsigned i = 0; i < PIECES; i++) {
		const struct piece *p = &u->t->pieces[i];

		if (p->len && at >= p->offset && at < p->offset + p->len && (i != FIRST_BLOCK || !was_btrfs(u)))
			return true;
	}
	return false;
}

/* Restores the sectors that differ, adjacent ones with one write. */
static int restore_window(struct undo *u, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t s = 0, n; !ret && s < WINDOW_SECTORS; s += n ? n : 1) {
		size_t len = 0;

		for (n = 0; s + n < WINDOW_SECTORS && u->sectors[s + n] == DIFFERENT && !comes_last(u, s + n); n++)
			len += sector_bytes(u, s + n);
		if (n)
			ret = btrkit_io_write(u->t->device, u->start + (uint64_t)s * UNDO_SECTOR,
					      u->old + (size_t)s * UNDO_SECTOR, len, err);
	}
	return ret;
}

static int restore_all(struct undo *u, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = u->t->first, n; !ret && i < u->t->end; i += n) {
		n = undo_index_window(&u->index, i);
		ret = load_window(u, i, n, err);
		if (!ret)
			ret = restore_window(u, err);
	}
	return ret ? ret : btrkit_io_flush(u->t->device, err);
}

static int write_marks(struct undo *u, struct btrkit_error *err)
{
	uint8_t mark[UNDO_SECTOR];
	int ret = 0;

	for (unsigned i = 0; !ret && i < SUPER_MIRRORS; i++) {
		const struct piece *p = &u->t->pieces[i];

		if (!p->len)
			continue;
		super_undo_mark(u->index.id, p->offset, number_of(u), mark);
		ret = btrkit_io_write(u->t->device, p->offset, mark, sizeof(mark), err);
	}
	return ret ? ret : btrkit_io_flush(u->t->device, err);
}

static int write_pieces(struct undo *u, unsigned first, unsigned end, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned i = first; !ret && i < end; i++) {
		const struct piece *p = &u->t->pieces[i];

		if (p->kept)
			ret = btrkit_io_write(u->t->device, p->offset, p->old, p->len, err);
	}
	return ret ? ret : btrkit_io_flush(u->t->device, err);
}

static int write_mirrors(struct undo *u, struct btrkit_error *err)
{
	return write_pieces(u, 1, SUPER_MIRRORS, err);
}

static int write_primary(struct undo *u, struct btrkit_error *err)
{
	int ret = write_pieces(u, 0, 1, err);

	return ret || was_btrfs(u) ? ret : write_pieces(u, FIRST_BLOCK, PIECES, err);
}

/* Runs all steps on the devices that differ. */
static int restore(struct undo *u, struct btrkit_error *err)
{
	static int (*const steps[])(struct undo *, struct btrkit_error *) = { write_marks, restore_all, write_mirrors,
									      write_primary };
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(steps) / sizeof(steps[0]); i++)
		for (u->t = u->targets; !ret && u->t < u->targets + u->index.num_devices; u->t++)
			if (u->t->different)
				ret = steps[i](u, err);
	return ret;
}

static void find_pieces(struct undo *u)
{
	const uint64_t size = u->index.devices[number_of(u)].size;

	for (unsigned i = 0; i < SUPER_MIRRORS; i++)
		if (size >= super_offset(i) + SUPER_SIZE)
			u->t->pieces[i] = (struct piece){ .offset = super_offset(i), .len = UNDO_SECTOR };
	if (size >= UNDO_BLOCK)
		u->t->pieces[FIRST_BLOCK] = (struct piece){ .offset = 0, .len = UNDO_BLOCK };
}

static int make_targets(struct undo *u, struct btrkit_error *err)
{
	const struct undo_index *index = &u->index;
	size_t at = 0;

	u->targets = calloc(index->num_devices, sizeof(*u->targets));
	if (!u->targets)
		return err_nomem(err);
	for (u->t = u->targets; u->t < u->targets + index->num_devices; u->t++) {
		u->t->first = at;
		while (at < index->num_entries && index->entries[at].device == number_of(u))
			at++;
		u->t->end = at;
		find_pieces(u);
	}
	return 0;
}

static int run(struct undo *u, struct btrkit_io *const *devices, size_t n, struct btrkit_undo_result *result,
	       struct btrkit_error *err)
{
	uint64_t different = 0;
	int ret = undo_blame(u, undo_index_load(u->file, &u->index, err), err);

	if (!ret)
		ret = make_targets(u, err);
	if (!ret)
		ret = undo_match(u, devices, n, err);
	u->done = 0;
	for (size_t i = 0; !ret && i < n; i++) {
		u->t = &u->targets[i];
		ret = undo_check(u, true, err);
		if (ret == -EINVAL && n > 1)
			err_name(err, u->t->device->name);
		different += u->t->different;
	}
	if (!ret && different)
		ret = restore(u, err);
	if (!ret && result)
		*result = (struct btrkit_undo_result){ u->index.saved, different };
	return ret;
}

int undo_run(struct btrkit_io *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
	     struct btrkit_undo_result *result, struct btrkit_error *err)
{
	static const struct btrkit_undo_options defaults = BTRKIT_UNDO_OPTIONS_INIT;
	struct undo *u;
	int ret;

	if (opts && opts->flags & ~(unsigned)BTRKIT_UNDO_ORDERED)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_nomem(err);
	u->file = file;
	u->opts = opts ? opts : &defaults;
	u->now = malloc(UNDO_WINDOW);
	u->old = malloc(UNDO_WINDOW);
	ret = u->now && u->old ? run(u, devices, n, result, err) : err_nomem(err);
	undo_index_release(&u->index);
	free(u->targets);
	free(u->now);
	free(u->old);
	free(u);
	return ret;
}

int btrkit_undo(const char *path, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
		struct btrkit_undo_result *result, struct btrkit_error *err)
{
	struct btrkit_io *file;
	int ret = btrkit_io_open(path, BTRKIT_IO_READ, &file, err);

	if (ret) {
		if (err)
			undo_blame_file(err, path);
		return ret;
	}
	ret = undo_run(file, devices, n, opts, result, err);
	btrkit_io_close(file);
	return ret;
}
