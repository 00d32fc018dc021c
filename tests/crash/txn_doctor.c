// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_doctor.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/csum.h"
#include "lib/format/super.h"
#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"

/* The first write of a superblock; log->n if there is none. */
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

bool doctor_super_first(struct log *log, struct sparse *before)
{
	(void)before;
	return move(log, find_super(log, 0), 0);
}

bool doctor_mirror_early(struct log *log, struct sparse *before)
{
	(void)before;
	return move(log, find_super(log, 1), 0);
}

bool doctor_no_mirror(struct log *log, struct sparse *before)
{
	(void)before;
	return drop(log, find_super(log, 1));
}

bool doctor_block_missing(struct log *log, struct sparse *before)
{
	(void)before;
	return find_super(log, 0) > 1 && drop(log, 0);
}

/* Copies lie far behind: the last write before the flush is one of them. */
bool doctor_copy_missing(struct log *log, struct sparse *before)
{
	const size_t super = find_super(log, 0);

	(void)before;
	return super > 3 && super < log->n && drop(log, super - 2);
}

/* What @e does happens, before the first superblock is written, to each copy of the root tree of before. */
static bool to_old_root(struct log *log, struct sparse *before, struct event e)
{
	struct btrkit_io *io = sparse_io(before);
	struct btrkit_fs *fs;
	struct copy copy;
	unsigned mirror;

	if (btrkit_fs_open(&io, 1, NULL, &fs, NULL))
		return false;
	e.len = fs->super.nodesize;
	for (mirror = 0; !volume_map(fs->volume, fs->super.root, e.len, mirror, &copy, NULL); mirror++) {
		e.offset = copy.physical;
		if (e.kind == EVENT_WRITE)
			e.data = calloc(1, e.len);
		log_put(log, find_super(log, 0) - 1, e);
	}
	btrkit_fs_close(fs);
	return mirror;
}

bool doctor_discard_early(struct log *log, struct sparse *before)
{
	return to_old_root(log, before, (struct event){ .kind = EVENT_DISCARD });
}

bool doctor_overwrite_early(struct log *log, struct sparse *before)
{
	return to_old_root(log, before, (struct event){ .kind = EVENT_WRITE });
}

bool doctor_no_checksum(struct log *log, struct sparse *before)
{
	(void)before;
	if (!log->n || log->events[0].kind != EVENT_WRITE)
		return false;
	memset(log->events[0].data, 0, 32);
	return true;
}

/* Changes every superblock that is written, and makes its checksum good. */
static bool spoil_supers(struct log *log, struct sparse *before,
			 void (*spoil)(struct disk_super *d, struct disk_super *old))
{
	struct disk_super old;
	bool any = false;

	sparse_read(before, super_offset(0), &old, sizeof(old));
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

bool doctor_wrong_backup(struct log *log, struct sparse *before)
{
	return spoil_supers(log, before, wrong_backup);
}

static void stale_array(struct disk_super *d, struct disk_super *old)
{
	memcpy(d->sys_chunk_array, old->sys_chunk_array, sizeof(d->sys_chunk_array));
	d->sys_chunk_array_size = old->sys_chunk_array_size;
}

bool doctor_stale_array(struct log *log, struct sparse *before)
{
	return spoil_supers(log, before, stale_array);
}

static void cache_generation(struct disk_super *d, struct disk_super *old)
{
	(void)old;
	d->cache_generation = d->generation;
}

bool doctor_cache_generation(struct log *log, struct sparse *before)
{
	return spoil_supers(log, before, cache_generation);
}
