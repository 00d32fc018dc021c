// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/prepare.h"

#include <stdatomic.h>

#include "lib/base/err.h"
#include "lib/mkfs/parallel.h"

/* Some filesystems and RAIDs have signatures at the end of a device. */
#define TAIL_BYTES (2u << 20)
#define HEAD_BYTES (1u << 20)
#define DISCARD_UNIT (1ull << 30)
#define DISCARD_STEPS 1000u /* it can be interrupted between steps */

static int write_zeros(struct btrkit_io *io, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	static const uint8_t zeros[65536];
	int ret = 0;

	while (!ret && from < to) {
		size_t n = to - from < sizeof(zeros) ? to - from : sizeof(zeros);

		ret = btrkit_io_write(io, from, zeros, n, err);
		from += n;
	}
	return ret;
}

static int reserve_group(const struct mkfs_plan *p, unsigned device, const struct mkfs_group *g,
			 struct btrkit_error *err)
{
	const uint64_t taken = mkfs_group_extent_taken(p, g);
	int ret = 0;

	for (unsigned i = 0; !ret && taken && i < g->shape.num_stripes; i++)
		if (g->stripes[i].device == device)
			ret = btrkit_io_reserve(p->devices[device].io, g->stripes[i].physical, taken, err);
	return ret;
}

static int reserve(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	const struct mkfs_device *d = &p->devices[device];
	int ret;

	(void)ctx;
	ret = btrkit_io_reserve(d->io, 0, HEAD_BYTES, err);
	if (!ret && !p->opts.byte_count)
		ret = btrkit_io_reserve(d->io, d->io->size - TAIL_BYTES, TAIL_BYTES, err);
	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (d->total_bytes >= super_offset(mirror) + SUPER_SIZE)
			ret = btrkit_io_reserve(d->io, super_offset(mirror), SUPER_SIZE, err);
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++)
		ret = reserve_group(p, device, &p->layout.groups[i], err);
	return ret;
}

/*
 * Overwrites a superblock copy, but only if it is one: past byte_count the data belongs to somebody else, and in a hole
 * of a sparse file there may be no space for zeros.
 */
static int disown_copy(const struct mkfs_device *dev, unsigned mirror, struct btrkit_error *err)
{
	uint64_t at = super_offset(mirror);
	struct disk_super d;
	int ret;

	if (dev->io->size < at + SUPER_SIZE)
		return 0;
	ret = btrkit_io_read(dev->io, at, &d, sizeof(d), err);
	/* If it cannot be read, overwriting may still succeed, but only do so within our part of the device. */
	if (ret ? dev->total_bytes < at + SUPER_SIZE : le64_get(d.magic) != SUPER_MAGIC)
		return ret;
	return write_zeros(dev->io, at, at + SUPER_SIZE, err);
}

static int disown(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	const struct mkfs_device *d = &p->devices[device];
	int ret = 0;

	(void)ctx;
	for (unsigned mirror = 0; !ret && mirror < SUPER_MIRRORS; mirror++)
		ret = disown_copy(d, mirror, err);
	return ret ? ret : btrkit_io_flush(d->io, err);
}

static int wipe_ends(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	struct btrkit_io *io = p->devices[device].io;
	int ret;

	(void)ctx;
	/* Small devices are refused later, and growing images are empty at this point. */
	ret = write_zeros(io, 0, io->size < HEAD_BYTES ? io->size : HEAD_BYTES, err);
	if (ret || p->opts.byte_count)
		return ret;
	return write_zeros(io, io->size < TAIL_BYTES ? 0 : io->size - TAIL_BYTES, io->size, err);
}

/* Progress over all devices, reported by one thread. */
struct discard {
	const struct mkfs_plan *plan;
	atomic_uint_fast64_t done;
	atomic_int stop; /* return value of progress() */
};

static void tell(void *ctx)
{
	struct discard *d = ctx;
	const struct btrkit_mkfs_options *o = &d->plan->opts;

	if (o->progress && !atomic_load(&d->stop))
		atomic_store(&d->stop, o->progress(o->progress_ctx, atomic_load(&d->done),
						   d->plan->layout.total_bytes));
}

static int discard(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	struct discard *d = ctx;
	uint64_t total = p->devices[device].total_bytes, step = total / DISCARD_STEPS;
	int ret;

	/* Full units, because devices ignore partial blocks. */
	step = step < DISCARD_UNIT ? DISCARD_UNIT : step - step % DISCARD_UNIT;
	for (uint64_t at = 0; at < total; at += step) {
		if (step > total - at)
			step = total - at;
		/* With one device there is no other thread to report progress. */
		if (p->num_devices == 1)
			tell(d);
		ret = atomic_load(&d->stop);
		if (ret)
			return err_system(err, ret, "discarding was interrupted");
		ret = btrkit_io_discard(p->devices[device].io, at, step, err);
		if (ret)
			return ret;
		atomic_fetch_add(&d->done, step);
	}
	return 0;
}

int mkfs_discard(const struct mkfs_plan *p, struct btrkit_error *err)
{
	struct discard d = { .plan = p };

	return mkfs_on_devices(p, &(struct mkfs_job){ discard, tell, &d }, err);
}

int mkfs_reserve(const struct mkfs_plan *p, struct btrkit_error *err)
{
	return mkfs_on_devices(p, &(struct mkfs_job){ .work = reserve }, err);
}

int mkfs_disown(const struct mkfs_plan *p, struct btrkit_error *err)
{
	return mkfs_on_devices(p, &(struct mkfs_job){ .work = disown }, err);
}

/* Once the primary superblock is durably removed there is no filesystem, even if later writes fail. */
static int take_back(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	const struct mkfs_device *d = &p->devices[device];
	int ret = disown_copy(d, 0, err);

	if (!ret)
		ret = btrkit_io_flush(d->io, err);
	if (!ret)
		(void)disown(p, device, ctx, NULL);
	return ret;
}

void mkfs_take_back(const struct mkfs_plan *p)
{
	const struct btrkit_mkfs_options *o = &p->opts;

	if (mkfs_on_devices(p, &(struct mkfs_job){ .work = take_back, .all = true }, NULL) && o->warning)
		o->warning(o->progress_ctx, "the new superblocks could not be removed");
}

int mkfs_wipe_ends(const struct mkfs_plan *p, struct btrkit_error *err)
{
	return mkfs_on_devices(p, &(struct mkfs_job){ .work = wipe_ends }, err);
}
