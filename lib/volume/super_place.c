// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/super_place.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/io/zone.h"

uint64_t super_log_offset(unsigned mirror)
{
	return mirror ? 1ull << (39 + 3 * (mirror - 1)) : 0;
}

/* Location of the last superblock in a zone. */
static uint64_t last_of(const struct btrkit_zone *z)
{
	return z->start + z->capacity / SUPER_SIZE * SUPER_SIZE - SUPER_SIZE;
}

static uint64_t num_written(const struct btrkit_zone *z)
{
	return z->state == BTRKIT_ZONE_PARTLY ? (z->write_pointer - z->start) / SUPER_SIZE : 0;
}

static uint64_t newest_in(const struct btrkit_zone *z)
{
	return z->start + (num_written(z) - 1) * SUPER_SIZE;
}

/* A zone without room for another superblock counts as full, whatever the device reports. */
static bool is_full(const struct btrkit_zone *z)
{
	return z->state == BTRKIT_ZONE_FULL || num_written(z) == z->capacity / SUPER_SIZE;
}

/*
 * Both zones are full between the last write to one and the reset of the other. The generation decides which is newer.
 */
static int newest_of_full(const struct btrkit_zone *zones, super_log_read_fn read, void *ctx, uint64_t *ret,
			  struct btrkit_error *err)
{
	struct disk_super last[SUPER_LOG_ZONES];
	bool second;

	for (unsigned i = 0; i < SUPER_LOG_ZONES; i++) {
		int r = read(ctx, last_of(&zones[i]), &last[i], err);

		if (r)
			return r;
	}
	second = le64_get(last[1].generation) >= le64_get(last[0].generation);
	if (le64_get(last[second].magic) != SUPER_MAGIC)
		second = !second;
	*ret = last_of(&zones[second]);
	return 0;
}

int super_log_newest(const struct btrkit_zone zones[SUPER_LOG_ZONES], super_log_read_fn read, void *ctx, uint64_t *ret,
		     struct btrkit_error *err)
{
	bool full[SUPER_LOG_ZONES], empty[SUPER_LOG_ZONES];

	for (unsigned i = 0; i < SUPER_LOG_ZONES; i++) {
		/* In a conventional zone there is no log; the superblock is at its start. */
		if (zones[i].state == BTRKIT_ZONE_CONVENTIONAL) {
			*ret = zones[i].start;
			return 0;
		}
		if (zones[i].capacity < SUPER_SIZE)
			return err_corrupt(err, NULL,
					   "superblock log is in a zone with a capacity of %" PRIu64 " bytes",
					   zones[i].capacity);
		full[i] = is_full(&zones[i]);
		empty[i] = !full[i] && !num_written(&zones[i]);
	}
	if (empty[0] && empty[1])
		return 1;
	if (full[0] && full[1])
		return newest_of_full(zones, read, ctx, ret, err);
	/* The newest superblock is in the zone being written, or is the last one in the other zone if that is empty. */
	if (full[0])
		*ret = empty[1] ? last_of(&zones[0]) : newest_in(&zones[1]);
	else if (full[1] || empty[1])
		*ret = empty[0] ? last_of(&zones[1]) : newest_in(&zones[0]);
	else
		return err_corrupt(err, NULL, "both zones of the superblock log are partly written");
	return 0;
}

static int read_from(void *ctx, uint64_t at, struct disk_super *ret, struct btrkit_error *err)
{
	return btrkit_io_read(ctx, at, ret, sizeof(*ret), err);
}

int super_place(struct btrkit_io *io, unsigned mirror, uint64_t *ret, struct btrkit_error *err)
{
	struct btrkit_zone zones[SUPER_LOG_ZONES];
	uint64_t at = super_log_offset(mirror);
	int r;

	r = io->size ? io_zone(io, 0, &zones[0], err) : 1;
	if (r < 0)
		return r;
	if (r) {
		*ret = super_offset(mirror);
		return 0;
	}
	if (io->size / SUPER_LOG_ZONES < zones[0].length || at > io->size - SUPER_LOG_ZONES * zones[0].length)
		return 1;
	for (unsigned i = 0; i < SUPER_LOG_ZONES; i++, at += zones[0].length) {
		r = io_zone(io, at, &zones[i], err);
		if (r)
			return r;
	}
	r = super_log_newest(zones, read_from, io, ret, err);
	/* The caller will find no superblock there. */
	if (r == 1)
		*ret = zones[0].start;
	return r < 0 ? r : 0;
}

int super_read(struct btrkit_io *io, unsigned mirror, struct disk_super *ret, uint64_t *at, struct btrkit_error *err)
{
	int r = super_place(io, mirror, at, err);

	if (r == 1)
		return err_set(err, BTRKIT_TRUNCATED, "the device has no zones for its %s",
			       super_mirror_names()[mirror]);
	return r ? r : btrkit_io_read(io, *at, ret, sizeof(*ret), err);
}
