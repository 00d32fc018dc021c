// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_doctor.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/csum.h"
#include "lib/format/super.h"
#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"

/* Index of the first write to superblock @mirror; log->n if there is none. */
static size_t find_super(const struct log *log, unsigned mirror)
{
	size_t i = 0;

	while (i < log->n && (log->events[i].kind != EVENT_WRITE || log->events[i].offset != super_offset(mirror)))
		i++;
	return i;
}

static bool move(struct log *log, size_t from, size_t to)
{
	if (from == log->n)
		return false;
	log_put(log, to, log_take(log, from));
	return true;
}

static bool drop(struct log *log, size_t at)
{
	if (at == log->n)
		return false;
	free(log_take(log, at).data);
	return true;
}

bool doctor_super_first(struct log *log, const struct disks *before)
{
	(void)before;
	return move(log, find_super(log, 0), 0);
}

bool doctor_mirror_early(struct log *log, const struct disks *before)
{
	(void)before;
	return move(log, find_super(log, 1), 0);
}

bool doctor_no_mirror(struct log *log, const struct disks *before)
{
	(void)before;
	return drop(log, find_super(log, 1));
}

bool doctor_block_missing(struct log *log, const struct disks *before)
{
	(void)before;
	return find_super(log, 0) > 1 && drop(log, 0);
}

/* Second copies lie at higher addresses, so the last write before the flush is one of them. */
bool doctor_copy_missing(struct log *log, const struct disks *before)
{
	const size_t super = find_super(log, 0);

	(void)before;
	return super > 3 && super < log->n && drop(log, super - 2);
}

/* Applies @e to each copy of the previous root tree block, before the first superblock is written. */
static bool to_old_root(struct log *log, const struct disks *before, struct event e)
{
	struct btrkit_io *io = sparse_io(before->at[0]);
	struct btrkit_fs *fs;
	struct copy copy;
	unsigned mirror;

	if (btrkit_fs_open(&io, 1, NULL, &fs, NULL))
		return false;
	e.len = fs->geometry.nodesize;
	for (mirror = 0; !volume_map(fs->volume, fs->super.root, e.len, mirror, &copy, NULL); mirror++) {
		e.offset = copy.physical;
		if (e.kind == EVENT_WRITE)
			e.data = calloc(1, e.len);
		log_put(log, find_super(log, 0) - 1, e);
	}
	btrkit_fs_close(fs);
	return mirror;
}

bool doctor_discard_early(struct log *log, const struct disks *before)
{
	return to_old_root(log, before, (struct event){ .kind = EVENT_DISCARD });
}

bool doctor_overwrite_early(struct log *log, const struct disks *before)
{
	return to_old_root(log, before, (struct event){ .kind = EVENT_WRITE });
}

bool doctor_no_checksum(struct log *log, const struct disks *before)
{
	(void)before;
	if (!log->n || log->events[0].kind != EVENT_WRITE)
		return false;
	memset(log->events[0].data, 0, 32);
	return true;
}

/* Alter every superblock that is written, and fix its checksum. */
static bool spoil_supers(struct log *log, const struct disks *before,
			 void (*spoil)(struct disk_super *d, struct disk_super *old))
{
	struct disk_super old;
	bool any = false;

	sparse_read(before->at[0], super_offset(0), &old, sizeof(old));
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		for (size_t i = 0; i < log->n; i++) {
			struct disk_super *d = (struct disk_super *)log->events[i].data;

			if (log->events[i].kind != EVENT_WRITE || log->events[i].offset != super_offset(mirror))
				continue;
			spoil(d, &old);
			csum_kind_find(le16_get(d->csum_type))->compute(d->fsid, SUPER_SIZE - sizeof(d->csum), d->csum);
			any = true;
		}
	return any;
}

static void wrong_backup(struct disk_super *d, struct disk_super *old)
{
	(void)old;
	for (unsigned i = 0; i < SUPER_BACKUPS; i++)
		if (le64_get(d->backups[i].tree_root_gen) == le64_get(d->generation))
			d->backups[i].extent_root = old->backups[i].extent_root;
}

bool doctor_wrong_backup(struct log *log, const struct disks *before)
{
	return spoil_supers(log, before, wrong_backup);
}

static void stale_array(struct disk_super *d, struct disk_super *old)
{
	memcpy(d->sys_chunk_array, old->sys_chunk_array, sizeof(d->sys_chunk_array));
	d->sys_chunk_array_size = old->sys_chunk_array_size;
}

bool doctor_stale_array(struct log *log, const struct disks *before)
{
	return spoil_supers(log, before, stale_array);
}

static void cache_generation(struct disk_super *d, struct disk_super *old)
{
	(void)old;
	d->cache_generation = d->generation;
}

bool doctor_cache_generation(struct log *log, const struct disks *before)
{
	return spoil_supers(log, before, cache_generation);
}

/* Index of the first event of this kind on the device, from @from on; with @super, only superblocks. log->n if none. */
static size_t find_of(const struct log *log, size_t from, unsigned device, enum event_kind kind, bool super)
{
	size_t i = from;

	while (i < log->n && (log->events[i].kind != kind || log->events[i].device != device ||
			      (super && log->events[i].offset != super_offset(0))))
		i++;
	return i;
}

/* Start of the second commit, so that there is a committed state to fall back to. */
static size_t second_commit(const struct log *log)
{
	size_t i = 0;

	while (i < log->n && log->events[i].kind != EVENT_MARK)
		i++;
	return i;
}

/* The first flush of a commit does not reach the second device. */
bool doctor_no_flush_of_one(struct log *log, const struct disks *before)
{
	return before->n > 1 && drop(log, find_of(log, second_commit(log), 1, EVENT_FLUSH, false));
}

/* The superblock reaches the first device before the blocks on the second are flushed. */
bool doctor_super_before_flush(struct log *log, const struct disks *before)
{
	const size_t from = second_commit(log);

	return before->n > 1 && move(log, find_of(log, from, 0, EVENT_WRITE, true),
				     find_of(log, from, 1, EVENT_FLUSH, false));
}

/* The superblock reaches the last device before everything else. */
bool doctor_super_of_one_first(struct log *log, const struct disks *before)
{
	const size_t from = second_commit(log);

	return before->n > 1 && from < log->n &&
	       move(log, find_of(log, from, before->n - 1, EVENT_WRITE, true), from + 1);
}

/* The last write before the flushes goes to the last device. */
bool doctor_copy_of_last_missing(struct log *log, const struct disks *before)
{
	const size_t flush = find_of(log, 0, 0, EVENT_FLUSH, false);

	return flush && flush < log->n && log->events[flush - 1].device == before->n - 1 && drop(log, flush - 1);
}

/* The second device keeps its old superblocks. */
bool doctor_no_super_of_one(struct log *log, const struct disks *before)
{
	bool any = false;

	for (unsigned mirror = 0; before->n > 1 && mirror < SUPER_MIRRORS; mirror++)
		for (size_t i = log->n; i--;)
			if (log->events[i].kind == EVENT_WRITE && log->events[i].device == 1 &&
			    log->events[i].offset == super_offset(mirror))
				any |= drop(log, i);
	return any;
}

/* The writes for the last device go to the first, and vice versa. */
bool doctor_copies_exchanged(struct log *log, const struct disks *before)
{
	const size_t flush = find_of(log, 0, 0, EVENT_FLUSH, false);
	const size_t first = find_of(log, 0, 0, EVENT_WRITE, false);

	if (flush >= log->n || first >= flush || before->n < 2)
		return false;
	log->events[first].device = before->n - 1;
	log->events[flush - 1].device = 0;
	return true;
}

/* Each superblock contains its own device's item; leave the second one stale. */
static void wrong_device_item(struct disk_super *d, struct disk_super *old)
{
	(void)old;
	if (le64_get(d->dev_item.devid) == 2)
		d->dev_item.bytes_used = le64_put(le64_get(d->dev_item.bytes_used) - (1 << 20));
}

bool doctor_wrong_device_item(struct log *log, const struct disks *before)
{
	return spoil_supers(log, before, wrong_device_item);
}
