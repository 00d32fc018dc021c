// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Puts a device back to what its undo file has: all is compared before anything is written, and while there is
 * something else than one state or the other on the device no superblock is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/super.h"
#include "lib/io/undo.h"
#include "lib/io/undo_index.h"
#include "lib/io/undo_log.h"

#define WINDOW_SECTORS (UNDO_WINDOW / UNDO_SECTOR)

static_assert(SUPER_SECTOR_SIZE == UNDO_SECTOR, "a mark is a sector");

/* What a sector of the device is, as the undo file has it. */
enum sector { UNKEPT, SAME, DIFFERENT, WRITTEN };

/* What comes back last: the first sector of each superblock, and the device's first block. */
enum { FIRST_BLOCK = SUPER_MIRRORS, PIECES };

struct piece {
	uint64_t offset;
	uint32_t len;
	bool kept;	/* the file has it */
	uint8_t old[UNDO_BLOCK];
};

struct undo {
	struct btrkit_io *file, *device;
	struct undo_index index;
	const struct btrkit_undo_options *opts;
	/* A window. */
	uint64_t start;
	uint8_t *now, *old;	/* as it is on the device and in the file, where that has it */
	uint8_t sectors[WINDOW_SECTORS];	/* enum sector */
	struct piece pieces[PIECES];
	uint64_t different;	/* bytes */
	uint64_t done;		/* bytes of two times what was saved */
};

static int blame_file(const struct undo *u, int ret, struct btrkit_error *err)
{
	if (ret && err)
		undo_blame_file(err, u->file->name);
	return ret;
}

static int damaged(const struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	return blame_file(u, err_corrupt(err, NULL, "is damaged at %" PRIu64, e->at), err);
}

static size_t sector_bytes(const struct undo *u, uint32_t sector)
{
	uint64_t left = u->device->size - u->start - (uint64_t)sector * UNDO_SECTOR;

	return left < UNDO_SECTOR ? (size_t)left : UNDO_SECTOR;
}

/* Old and present contents of what an OLD entry is about. */
static int load_entry(struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	const size_t at = e->offset % UNDO_WINDOW;
	int ret = btrkit_io_read(u->device, e->offset, u->now + at, e->len, err);

	if (ret)
		return ret;
	if (e->flags & UNDO_ZEROS)
		memset(u->old + at, 0, e->len);
	else
		ret = blame_file(u, btrkit_io_read(u->file, e->at, u->old + at, e->len, err), err);
	for (uint32_t s = (uint32_t)(at / UNDO_SECTOR); !ret && s < at / UNDO_SECTOR + undo_sectors(e->len); s++) {
		const size_t from = (size_t)s * UNDO_SECTOR;

		/* Nothing is saved twice: which of the two would be older? */
		if (u->sectors[s] != UNKEPT)
			return damaged(u, e, err);
		u->sectors[s] = memcmp(u->now + from, u->old + from, sector_bytes(u, s)) ? DIFFERENT : SAME;
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
	if (!ret && u->opts->progress) {
		ret = u->opts->progress(u->opts->progress_ctx, u->done, 2 * u->index.saved);
		if (ret)
			ret = err_system(err, ret, "the undo was ended");
	}
	return ret;
}

/* A sector that has one of the checksums that a NEW entry announced was written by the run that is undone. */
static int match_entry(struct undo *u, const struct undo_entry *e, struct btrkit_error *err)
{
	const uint32_t first = (uint32_t)(e->offset % UNDO_WINDOW / UNDO_SECTOR), n = undo_sectors(e->len);
	le32 sums[WINDOW_SECTORS];
	int ret;

	ret = blame_file(u, btrkit_io_read(u->file, e->at, sums, n * sizeof(sums[0]), err), err);
	for (uint32_t s = first; !ret && s < first + n; s++) {
		if (u->sectors[s] == UNKEPT)
			return damaged(u, e, err);
		if (u->sectors[s] == DIFFERENT &&
		    crc32c(~0u, u->now + (size_t)s * UNDO_SECTOR, sector_bytes(u, s)) == le32_get(sums[s - first]))
			u->sectors[s] = WRITTEN;
	}
	return ret;
}

static bool in_window(const struct undo *u, const struct piece *p)
{
	return p->len && p->offset >= u->start && p->offset < u->start + UNDO_WINDOW;
}

/* An earlier undo with this file may have left its marks. */
static void match_marks(struct undo *u)
{
	uint8_t mark[UNDO_SECTOR];

	for (unsigned i = 0; i < SUPER_MIRRORS; i++) {
		const struct piece *p = &u->pieces[i];
		size_t at = p->offset % UNDO_WINDOW;

		if (!in_window(u, p) || u->sectors[at / UNDO_SECTOR] != DIFFERENT)
			continue;
		super_undo_mark(u->index.id, p->offset, mark);
		if (!memcmp(u->now + at, mark, sizeof(mark)))
			u->sectors[at / UNDO_SECTOR] = WRITTEN;
	}
}

static int judge_window(struct undo *u, size_t first, size_t n, struct btrkit_error *err)
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
				      "the device has changed since, or is not the one of the undo file");
			if (err) {
				err->places |= BTRKIT_AT_PHYSICAL;
				err->physical = u->start + (uint64_t)s * UNDO_SECTOR;
			}
			return ret;
		}
		if (u->sectors[s] == WRITTEN)
			u->different += sector_bytes(u, s);
	}
	return 0;
}

/* What comes back last is kept till then. */
static void keep_pieces(struct undo *u)
{
	for (unsigned i = 0; i < PIECES; i++) {
		struct piece *p = &u->pieces[i];
		size_t at = p->offset % UNDO_WINDOW;

		if (!in_window(u, p) || u->sectors[at / UNDO_SECTOR] == UNKEPT)
			continue;
		p->kept = true;
		memcpy(p->old, u->old + at, p->len);
	}
}

static int judge_all(struct undo *u, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0, n; !ret && i < u->index.num_entries; i += n) {
		n = undo_index_window(&u->index, i);
		ret = load_window(u, i, n, err);
		if (!ret)
			ret = judge_window(u, i, n, err);
		if (!ret)
			keep_pieces(u);
	}
	for (unsigned i = 0; !ret && i < SUPER_MIRRORS; i++)
		if (u->pieces[i].len && !u->pieces[i].kept)
			ret = blame_file(u, err_corrupt(err, NULL, "lacks a superblock"), err);
	return ret;
}

/*
 * Whether the device held a btrfs filesystem, so that its primary superblock is what makes it one again. For others
 * that is the first block, or so many of them that it goes for all.
 */
static bool was_btrfs(const struct undo *u)
{
	const struct piece *p = &u->pieces[0];
	le64 magic;

	memcpy(&magic, p->old + offsetof(struct disk_super, magic), sizeof(magic));
	return p->kept && le64_get(magic) == SUPER_MAGIC;
}

static bool comes_last(const struct undo *u, uint32_t sector)
{
	const uint64_t at = u->start + (uint64_t)sector * UNDO_SECTOR;

	for (unsigned i = 0; i < PIECES; i++) {
		const struct piece *p = &u->pieces[i];

		if (p->len && at >= p->offset && at < p->offset + p->len && (i != FIRST_BLOCK || !was_btrfs(u)))
			return true;
	}
	return false;
}

/* Sectors that differ, neighbours as one write. */
static int restore_window(struct undo *u, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t s = 0, n; !ret && s < WINDOW_SECTORS; s += n ? n : 1) {
		size_t len = 0;

		for (n = 0; s + n < WINDOW_SECTORS && u->sectors[s + n] == DIFFERENT && !comes_last(u, s + n); n++)
			len += sector_bytes(u, s + n);
		if (n)
			ret = btrkit_io_write(u->device, u->start + (uint64_t)s * UNDO_SECTOR,
					      u->old + (size_t)s * UNDO_SECTOR, len, err);
	}
	return ret;
}

static int restore_all(struct undo *u, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0, n; !ret && i < u->index.num_entries; i += n) {
		n = undo_index_window(&u->index, i);
		ret = load_window(u, i, n, err);
		if (!ret)
			ret = restore_window(u, err);
	}
	return ret ? ret : btrkit_io_flush(u->device, err);
}

static int write_marks(struct undo *u, struct btrkit_error *err)
{
	uint8_t mark[UNDO_SECTOR];
	int ret = 0;

	for (unsigned i = 0; !ret && i < SUPER_MIRRORS; i++) {
		const struct piece *p = &u->pieces[i];

		if (!p->len)
			continue;
		super_undo_mark(u->index.id, p->offset, mark);
		ret = btrkit_io_write(u->device, p->offset, mark, sizeof(mark), err);
	}
	return ret ? ret : btrkit_io_flush(u->device, err);
}

static int write_pieces(struct undo *u, unsigned first, unsigned end, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned i = first; !ret && i < end; i++)
		if (u->pieces[i].kept)
			ret = btrkit_io_write(u->device, u->pieces[i].offset, u->pieces[i].old, u->pieces[i].len, err);
	return ret ? ret : btrkit_io_flush(u->device, err);
}

static int restore(struct undo *u, struct btrkit_error *err)
{
	int ret;

	ret = write_marks(u, err);
	if (!ret)
		ret = restore_all(u, err);
	if (!ret)
		ret = write_pieces(u, 1, SUPER_MIRRORS, err);
	if (!ret)
		ret = write_pieces(u, 0, 1, err);
	if (!ret && !was_btrfs(u))
		ret = write_pieces(u, FIRST_BLOCK, PIECES, err);
	return ret;
}

static int match_device(struct undo *u, size_t n, struct btrkit_error *err)
{
	const struct undo_device *d = u->index.devices;
	int ret = 0;

	if (u->index.num_devices != n)
		ret = err_set(err, BTRKIT_INVALID, "is of %u devices, %zu given", u->index.num_devices, n);
	else if (d->size != u->device->size)
		ret = err_set(err, BTRKIT_INVALID, "is of a device of %" PRIu64 " bytes, this one has %" PRIu64,
			      d->size, u->device->size);
	if (ret)
		return blame_file(u, ret, err);
	for (unsigned i = 0; i < SUPER_MIRRORS; i++)
		if (d->size >= super_offset(i) + SUPER_SIZE)
			u->pieces[i] = (struct piece){ .offset = super_offset(i), .len = UNDO_SECTOR };
	if (d->size >= UNDO_BLOCK)
		u->pieces[FIRST_BLOCK] = (struct piece){ .offset = 0, .len = UNDO_BLOCK };
	return 0;
}

int undo_run(struct btrkit_io *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
	     struct btrkit_undo_result *result, struct btrkit_error *err)
{
	static const struct btrkit_undo_options defaults = BTRKIT_UNDO_OPTIONS_INIT;
	struct undo *u;
	int ret;

	if (opts && opts->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (n != 1)
		return err_set(err, BTRKIT_UNSUPPORTED, "an undo of several devices is not supported");
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_nomem(err);
	u->file = file;
	u->device = devices[0];
	u->opts = opts ? opts : &defaults;
	u->now = malloc(UNDO_WINDOW);
	u->old = malloc(UNDO_WINDOW);
	ret = u->now && u->old ? blame_file(u, undo_index_load(file, &u->index, err), err) : err_nomem(err);
	if (!ret)
		ret = match_device(u, n, err);
	if (!ret)
		ret = judge_all(u, err);
	if (!ret && u->different)
		ret = restore(u, err);
	if (!ret && result)
		*result = (struct btrkit_undo_result){ u->index.saved, u->different };
	undo_index_release(&u->index);
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
