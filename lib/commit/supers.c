// SPDX-License-Identifier: LGPL-2.1-or-later
/* The superblocks of a commit: each device has its own, in up to three copies. */
#include "lib/commit/supers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/write.h"
#include "lib/volume/volume.h"

struct device_super {
	struct btrkit_io *io;
	bool joins;
	uint64_t devid;
	struct disk_super disk[SUPER_MIRRORS];
};

struct commit_supers {
	struct super decoded;
	size_t n;
	struct device_super devices[];
};

/* Enters the root of one tree into a backup. */
static int backup_root(struct btrkit_txn *txn, uint64_t id, le64 *bytenr, le64 *gen, uint8_t *level,
		       struct btrkit_error *err)
{
	struct tree_root root;
	int ret = fs_try_root(txn->fs, id, &root, NULL, err);

	if (ret)
		return ret < 0 ? ret : 0;
	*bytenr = le64_put(root.bytenr);
	*gen = le64_put(root.generation);
	*level = root.level;
	return 0;
}

/* The slot after that of the previous commit, or the first if that has none. */
static unsigned next_backup(const struct disk_super *d, uint64_t generation)
{
	for (unsigned i = 0; i < SUPER_BACKUPS; i++)
		if (le64_get(d->backups[i].tree_root_gen) == generation)
			return (i + 1) % SUPER_BACKUPS;
	return 0;
}

static int fill_backup(struct btrkit_txn *txn, struct disk_super *d, struct btrkit_error *err)
{
	struct disk_root_backup b = {
		.tree_root = d->root,
		.tree_root_gen = d->generation,
		.tree_root_level = d->root_level,
		.chunk_root = d->chunk_root,
		.chunk_root_gen = d->chunk_root_generation,
		.chunk_root_level = d->chunk_root_level,
		.total_bytes = d->total_bytes,
		.bytes_used = d->bytes_used,
		.num_devices = d->num_devices,
	};
	int ret;

#define BACKUP(id, field) backup_root(txn, id, &b.field, &b.field##_gen, &b.field##_level, err)
	ret = BACKUP(OID_EXTENT_TREE, extent_root);
	if (!ret)
		ret = BACKUP(OID_FS_TREE, fs_root);
	if (!ret)
		ret = BACKUP(OID_DEV_TREE, dev_root);
	if (!ret)
		ret = BACKUP(OID_CSUM_TREE, csum_root);
#undef BACKUP
	if (!ret)
		d->backups[next_backup(d, txn->fs->super.generation)] = b;
	return ret;
}

/* Fills in what all devices have in common. */
static int fill_super(struct btrkit_txn *txn, struct disk_super *d, struct btrkit_error *err)
{
	const struct btrkit_fs *fs = txn->fs;

	*d = txn->super;
	d->generation = le64_put(txn->generation);
	d->root = le64_put(fs->root_tree.bytenr);
	d->root_level = fs->root_tree.level;
	d->chunk_root = le64_put(fs->chunk_tree.bytenr);
	d->chunk_root_level = fs->chunk_tree.level;
	d->chunk_root_generation = le64_put(fs->chunk_tree.generation);
	d->bytes_used = le64_put(space_bytes_used(txn->space));
	d->flags = le64_put(le64_get(d->flags) | HEADER_FLAG_WRITTEN);
	if (le64_get(d->uuid_tree_generation) == fs->super.generation)
		d->uuid_tree_generation = d->generation;
	return fill_backup(txn, d, err);
}

int commit_device_item(struct btrkit_fs *fs, uint64_t devid, struct disk_dev_item *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid);
	struct cursor c;
	int r;

	cursor_init(&c, fs, &fs->chunk_tree);
	r = cursor_find(&c, &key, err);
	if (r == 1) {
		r = err_corrupt(err, NULL, "device item is missing");
		err_at_tree(err, OID_CHUNK_TREE);
		err_at_key(err, &key);
	} else if (!r) {
		r = cursor_blame(&c, item_validate(&fs->items, &c.item, err), err);
	}
	if (!r) {
		memcpy(ret, c.item.data, sizeof(*ret));
		memcpy(ret->fsid, fs->rules.fsid, sizeof(ret->fsid));
		ret->generation = le64_put(0);
	}
	cursor_release(&c);
	return r;
}

bool commit_super_has_copy(const struct disk_super *d, unsigned mirror)
{
	return le64_get(d->dev_item.total_bytes) >= super_offset(mirror) + SUPER_SIZE;
}

void commit_super_make_copy(const struct btrkit_fs *fs, struct disk_super *d, unsigned mirror)
{
	d->bytenr = le64_put(super_offset(mirror));
	fs->rules.csum->compute(d->fsid, SUPER_SIZE - sizeof(d->csum), d->csum);
}

static int make_device(struct btrkit_txn *txn, const struct disk_super *common, const struct volume_device *device,
		       struct device_super *ret, struct super *decoded, struct btrkit_error *err)
{
	int r = 0;

	*ret = (struct device_super){ .io = device->io, .joins = device->state == VOLUME_JOINING,
				      .devid = device->devid };
	ret->disk[0] = *common;
	r = commit_device_item(txn->fs, device->devid, &ret->disk[0].dev_item, err);
	for (unsigned mirror = 0; !r && mirror < SUPER_MIRRORS; mirror++) {
		struct disk_super *d = &ret->disk[mirror];
		struct super checked;

		*d = ret->disk[0];
		commit_super_make_copy(txn->fs, d, mirror);
		r = super_decode(d, super_offset(mirror), &checked, err);
		if (!r && !mirror && device->devid == le64_get(common->dev_item.devid))
			*decoded = checked;
	}
	return r;
}

int commit_supers_make(struct btrkit_txn *txn, struct commit_supers **ret, struct btrkit_error *err)
{
	const struct volume *v = txn->fs->volume;
	const size_t n = volume_num_devices(v);
	struct commit_supers *s = calloc(1, sizeof(*s) + n * sizeof(s->devices[0]));
	struct disk_super common;
	int r;

	if (!s)
		return err_nomem(err);
	r = fill_super(txn, &common, err);
	for (size_t i = 0; !r && i < n; i++) {
		const struct volume_device device = volume_device(v, i);

		if (device.io && device.state != VOLUME_LEAVING)
			r = make_device(txn, &common, &device, &s->devices[s->n++], &s->decoded, err);
	}
	if (r)
		free(s);
	else
		*ret = s;
	return r;
}

struct commit_supers *commit_supers_free(struct commit_supers *s)
{
	free(s);
	return NULL;
}

const struct super *commit_supers_decoded(const struct commit_supers *s)
{
	return &s->decoded;
}

static bool has_copy(const struct device_super *d, unsigned mirror)
{
	return commit_super_has_copy(&d->disk[0], mirror);
}

int commit_supers_reserve(const struct commit_supers *s, struct btrkit_error *err)
{
	for (size_t i = 0; i < s->n; i++) {
		for (unsigned mirror = 0; mirror < SUPER_MIRRORS && has_copy(&s->devices[i], mirror); mirror++) {
			int ret = btrkit_io_reserve(s->devices[i].io, super_offset(mirror), SUPER_SIZE, err);

			if (ret) {
				err_at_device(err, s->devices[i].devid, super_offset(mirror));
				return ret;
			}
		}
	}
	return 0;
}

/* Checks the fields that any commit changes. */
static bool is_unchanged(const struct disk_super *d, const struct disk_super *known, uint64_t devid)
{
	return le64_get(d->magic) == SUPER_MAGIC && !memcmp(d->fsid, known->fsid, sizeof(d->fsid)) &&
	       le64_get(d->generation) == le64_get(known->generation) && le64_get(d->root) == le64_get(known->root) &&
	       le64_get(d->chunk_root) == le64_get(known->chunk_root) &&
	       le64_get(d->log_root) == le64_get(known->log_root) && le64_get(d->dev_item.devid) == devid;
}

int commit_supers_check(const struct btrkit_fs *fs, struct btrkit_error *err)
{
	for (size_t i = 0; i < volume_num_devices(fs->volume); i++) {
		const struct volume_device d = volume_device(fs->volume, i);
		struct disk_super now;
		int ret;

		/* What is on a new device does not matter. */
		if (!d.io || d.state == VOLUME_JOINING)
			continue;
		ret = btrkit_io_read(d.io, super_offset(0), &now, sizeof(now), err);

		if (!ret && !is_unchanged(&now, &fs->super.disk, d.devid))
			ret = err_set(err, BTRKIT_BUSY, "superblock was changed by another program since it was read");
		if (ret) {
			err_at_device(err, d.devid, super_offset(0));
			return ret;
		}
	}
	return 0;
}

static int write_super(struct btrkit_txn *txn, const struct device_super *d, unsigned mirror, struct btrkit_error *err)
{
	int ret = btrkit_io_write(d->io, super_offset(mirror), &d->disk[mirror], SUPER_SIZE, err);

	if (ret) {
		err_at_device(err, d->devid, super_offset(mirror));
		return ret;
	}
	txn->writer->stats.writes++;
	txn->writer->stats.bytes_written += SUPER_SIZE;
	return 0;
}

int commit_supers_join(struct btrkit_txn *txn, const struct commit_supers *s, struct btrkit_error *err)
{
	bool written = false;

	for (size_t i = 0; i < s->n; i++) {
		int ret = s->devices[i].joins ? write_super(txn, &s->devices[i], 0, err) : 0;

		if (ret)
			return ret;
		written |= s->devices[i].joins;
	}
	return written ? commit_flush(txn, err) : 0;
}

int commit_supers_write(struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
			struct btrkit_error *err)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct device_super *d = &s->devices[i];
		int ret;

		if (!has_copy(d, mirror) || (!mirror && d->joins))
			continue;
		ret = write_super(txn, d, mirror, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Clears the superblocks of a device as Linux does: only what identifies them. */
static int clear_supers(struct btrkit_txn *txn, const struct volume_device *device, struct btrkit_error *err)
{
	struct disk_super d;
	int ret = 0;

	for (unsigned mirror = 0; !ret && mirror < SUPER_MIRRORS; mirror++) {
		const uint64_t at = super_offset(mirror);

		if (at + SUPER_SIZE > device->io->size)
			break;
		ret = btrkit_io_read(device->io, at, &d, sizeof(d), err);
		if (!ret && le64_get(d.magic) == SUPER_MAGIC) {
			d.magic = le64_put(0);
			ret = btrkit_io_write(device->io, at, &d, sizeof(d), err);
			txn->writer->stats.writes++;
			txn->writer->stats.bytes_written += sizeof(d);
		}
		if (ret)
			err_at_device(err, device->devid, at);
	}
	return ret;
}

int commit_supers_leave(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const struct volume *v = txn->fs->volume;
	bool cleared = false;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct volume_device device = volume_device(v, i);
		int ret = device.state == VOLUME_LEAVING ? clear_supers(txn, &device, err) : 0;

		if (ret)
			return ret;
		cleared |= device.state == VOLUME_LEAVING;
	}
	return cleared ? commit_flush(txn, err) : 0;
}
