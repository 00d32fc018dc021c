// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"
#include "tests/unit/txn_rig.h"

#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

#define MIB (1ull << 20)
#define SECTOR 4096u

struct device {
	struct btrkit_io io;
	struct rig *rig;
	unsigned i;
};

void rig_check(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(err, line, sizeof(line)));
}

void rig_expect(int ret, int wanted, const struct btrkit_error *err)
{
	if (ret == wanted)
		return;
	/* In another thread, a failed assertion would not print the reason. */
	fprintf(stderr, "%d where %d is expected: %s\n", ret, wanted, ret ? err->message : "");
	abort();
}

static bool fails(struct device *d)
{
	if (d->rig->calls++ != d->rig->fail_at)
		return false;
	d->rig->failed = d->i + 1;
	return true;
}

static bool is_super(const struct device *d, uint64_t offset, size_t len)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
		if (offset != super_offset(mirror) || len != SUPER_SIZE)
			continue;
		d->rig->mirrors += !!mirror;
		return true;
	}
	return false;
}

static int device_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct device *d = (struct device *)io;

	pthread_mutex_lock(&d->rig->lock);
	sparse_read(d->rig->at[d->i], offset, buf, len);
	pthread_mutex_unlock(&d->rig->lock);
	return 0;
}

static int device_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct device *d = (struct device *)io;
	const uint8_t *held = d->rig->held[d->i];
	int ret = 0;

	pthread_mutex_lock(&d->rig->lock);
	if (!is_super(d, offset, len) && held)
		for (uint64_t at = offset / SECTOR; at <= (offset + len - 1) / SECTOR; at++)
			if (held[at / 8] >> at % 8 & 1)
				fail_msg("device %u: %zu bytes are written to %llu, where the committed state is",
					 d->i + 1, len, (unsigned long long)offset);
	if (fails(d))
		ret = -EIO;
	else
		sparse_write(d->rig->at[d->i], offset, buf, len);
	pthread_mutex_unlock(&d->rig->lock);
	return ret;
}

static int device_flush(struct btrkit_io *io)
{
	return fails((struct device *)io) ? -EIO : 0;
}

static void device_close(struct btrkit_io *io)
{
	free(io);
}

static const struct btrkit_io_ops device_ops = {
	.read = device_read,
	.write = device_write,
	.flush = device_flush,
	.close = device_close,
};

void rig_make(struct rig *r, const struct rig_kind *kind)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io[RIG_DEVICES_MAX];

	*r = (struct rig){ .n = kind->n, .lock = PTHREAD_MUTEX_INITIALIZER, .fail_at = UINT64_MAX };
	for (unsigned i = 0; i < r->n; i++) {
		r->at[i] = sparse_create(kind->mib[i] * MIB, NULL);
		io[i] = sparse_io(r->at[i]);
	}
	o.data = kind->data;
	o.metadata = kind->metadata;
	o.mixed = kind->mixed;
	o.nodesize = kind->nodesize;
	if (kind->without_cache)
		o.compat_ro = 0;
	if (kind->quotas)
		o.flags |= BTRKIT_MKFS_QUOTA;
	rig_check(btrkit_mkfs(io, r->n, &o, NULL, &err), &err);
}

void rig_clone(struct rig *r, const struct rig *from)
{
	*r = (struct rig){ .n = from->n, .lock = PTHREAD_MUTEX_INITIALIZER, .fail_at = UINT64_MAX };
	for (unsigned i = 0; i < r->n; i++)
		r->at[i] = sparse_create(sparse_io(from->at[i])->size, from->at[i]);
}

static void release_held(struct rig *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		free(r->held[i]);
		r->held[i] = NULL;
	}
}

void rig_destroy(struct rig *r)
{
	release_held(r);
	for (unsigned i = 0; i < r->n; i++)
		sparse_free(r->at[i]);
}

int rig_try_open(struct rig *r, unsigned flags, unsigned lost, struct btrkit_fs **fs, struct btrkit_error *err)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io[RIG_DEVICES_MAX] = { NULL };
	size_t n = 0;
	int ret;

	for (unsigned i = 0; i < r->n; i++) {
		struct device *d = calloc(1, sizeof(*d));

		assert_non_null(d);
		d->io = (struct btrkit_io){ .ops = &device_ops, .size = sparse_io(r->at[i])->size };
		snprintf(d->io.name, sizeof(d->io.name), "device %u", i + 1);
		d->rig = r;
		d->i = i;
		if (lost >> i & 1)
			free(d);
		else
			io[n++] = &d->io;
	}
	opts.flags = flags;
	ret = btrkit_fs_open(io, n, &opts, fs, err);
	for (size_t i = 0; ret && i < n; i++)
		btrkit_io_close(io[i]);
	return ret;
}

struct btrkit_fs *rig_open(struct rig *r, unsigned flags, unsigned lost)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;

	rig_check(rig_try_open(r, flags, lost, &fs, &err), &err);
	return fs;
}

static void hold(struct rig *r, unsigned device, uint64_t offset, uint64_t len, bool release)
{
	for (uint64_t at = offset / SECTOR; at <= (offset + len - 1) / SECTOR; at++) {
		uint8_t *byte = &r->held[device][at / 8];

		r->num_held += !release && !(*byte >> at % 8 & 1);
		*byte |= (uint8_t)(1u << at % 8);
		if (release)
			*byte ^= (uint8_t)(1u << at % 8);
	}
}

static const struct volume_chunk *chunk_of(const struct btrkit_fs *fs, uint64_t logical)
{
	for (size_t i = 0; i < volume_num_chunks(fs->volume); i++) {
		const struct volume_chunk *c = volume_chunk(fs->volume, i);

		if (logical - c->logical < c->length)
			return c;
	}
	fail_msg("no chunk has %llu", (unsigned long long)logical);
	return NULL;
}

/*
 * Protect, or with @release unprotect, the bytes of @fs from @from to the end of their strip or @to.
 * @return the number of bytes
 */
static uint64_t hold_piece(struct rig *r, const struct btrkit_fs *fs, uint64_t from, uint64_t to, bool release)
{
	const struct volume_chunk *c = chunk_of(fs, from);
	const struct raid_shape shape = { c->type, c->num_stripes };
	struct raid_place place = { .length = 0 };

	for (unsigned copy = 0; copy < raid_copies(&shape); copy++) {
		place = raid_map(&shape, from - c->logical, copy);
		place.length = place.length < to - from ? place.length : to - from;
		/* With parity, data is never overwritten in place. */
		if (release && raid_profile_find(c->type)->parity)
			continue;
		hold(r, (unsigned)c->stripes[place.stripe].devid - 1, c->stripes[place.stripe].physical + place.offset,
		     place.length, release);
	}
	for (unsigned i = 0; raid_profile_find(c->type)->parity && i < c->num_stripes; i++)
		hold(r, (unsigned)c->stripes[i].devid - 1,
		     c->stripes[i].physical + place.offset / CHUNK_STRIPE_LEN * CHUNK_STRIPE_LEN, CHUNK_STRIPE_LEN,
		     false);
	return place.length;
}

/* Preallocated extents have no data yet, so their file may write there. */
static void release_kept(struct rig *r, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct file_extent fe;
	struct cursor c;
	int ret;

	rig_check(fs_find_root(fs, OID_FS_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		if (c.item.key.type != KEY_EXTENT_DATA)
			continue;
		rig_check(file_extent_decode(&fs->items, &c.item, &fe, &err), &err);
		if (fe.type != FILE_EXTENT_PREALLOC)
			continue;
		for (uint64_t from = fe.disk_bytenr + fe.offset, end = from + fe.num_bytes; from < end;)
			from += hold_piece(r, fs, from, end, true);
	}
	assert_int_equal(ret, 1);
	cursor_release(&c);
}

void rig_hold(struct rig *r)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = rig_open(r, 0, 0);
	struct tree_root root;
	struct cursor c;
	int ret;

	release_held(r);
	for (unsigned i = 0; i < r->n; i++) {
		r->held[i] = calloc(1, sparse_io(r->at[i])->size / SECTOR / 8 + 1);
		assert_non_null(r->held[i]);
	}
	rig_check(fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		const bool tree_block = c.item.key.type == KEY_METADATA_ITEM;
		uint64_t from = c.item.key.objectid, end;

		if (!tree_block && c.item.key.type != KEY_EXTENT_ITEM)
			continue;
		for (end = from + (tree_block ? fs->geometry.nodesize : c.item.key.offset); from < end;)
			from += hold_piece(r, fs, from, end, false);
	}
	assert_int_equal(ret, 1);
	cursor_release(&c);
	release_kept(r, fs);
	btrkit_fs_close(fs);
}

/* Multiplies by two in the Galois field of RAID6. */
static uint8_t twice(uint8_t x)
{
	return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1d : 0));
}

/* Compares P and Q with their definition, for each sector of the strips. */
static void check_row(struct rig *r, const struct volume_chunk *c, uint64_t row)
{
	const struct raid_shape shape = { c->type, c->num_stripes };
	const unsigned data = raid_data_stripes(&shape);

	for (uint64_t at = row * CHUNK_STRIPE_LEN; at < (row + 1) * CHUNK_STRIPE_LEN; at += SECTOR) {
		uint8_t made[2][SECTOR] = { { 0 } }, strip[SECTOR];

		for (unsigned i = data; i--;) {
			const struct volume_stripe *s = &c->stripes[raid_strip_stripe(&shape, row, i)];

			sparse_read(r->at[s->devid - 1], s->physical + at, strip, SECTOR);
			for (unsigned k = 0; k < SECTOR; k++) {
				made[0][k] ^= strip[k];
				made[1][k] = twice(made[1][k]) ^ strip[k];
			}
		}
		for (unsigned i = data; i < shape.num_stripes; i++) {
			const struct volume_stripe *s = &c->stripes[raid_strip_stripe(&shape, row, i)];

			sparse_read(r->at[s->devid - 1], s->physical + at, strip, SECTOR);
			if (memcmp(strip, made[i - data], SECTOR))
				fail_msg("chunk %llu: row %llu has another %c", (unsigned long long)c->logical,
					 (unsigned long long)row, "PQ"[i - data]);
		}
	}
	r->rows_checked++;
}

static void check_parity(struct rig *r, const struct btrkit_fs *fs)
{
	for (size_t i = 0; i < volume_num_chunks(fs->volume); i++) {
		const struct volume_chunk *c = volume_chunk(fs->volume, i);
		const uint8_t *held = r->held[c->stripes[0].devid - 1];

		if (!raid_profile_find(c->type)->parity)
			continue;
		for (uint64_t row = 0; row < c->stripe_length / CHUNK_STRIPE_LEN; row++) {
			const uint64_t sector = (c->stripes[0].physical + row * CHUNK_STRIPE_LEN) / SECTOR;

			if (held[sector / 8] >> sector % 8 & 1)
				check_row(r, c, row);
		}
	}
}

/* All superblocks of a device have the same generation, and count the bytes of its device extents. */
static void verify_supers(struct rig *r, const struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	for (unsigned i = 0; i < r->n; i++) {
		uint64_t used = 0;

		for (size_t k = 0; k < volume_num_chunks(fs->volume); k++) {
			const struct volume_chunk *c = volume_chunk(fs->volume, k);

			for (unsigned s = 0; s < c->num_stripes; s++)
				used += c->stripes[s].devid == i + 1 ? c->stripe_length : 0;
		}
		for (unsigned mirror = 0; super_offset(mirror) + SUPER_SIZE <= sparse_io(r->at[i])->size; mirror++) {
			struct disk_super disk;
			struct super s;

			sparse_read(r->at[i], super_offset(mirror), &disk, sizeof(disk));
			rig_check(super_decode(&disk, super_offset(mirror), &s, &err), &err);
			assert_int_equal(s.generation, fs->super.generation);
			assert_int_equal(le64_get(disk.dev_item.devid), i + 1);
			assert_int_equal(le64_get(disk.dev_item.bytes_used), used);
			assert_int_equal(le64_get(disk.bytes_used), le64_get(fs->super.disk.bytes_used));
		}
	}
}

void rig_verify(struct rig *r)
{
	rig_check_but(r, AUDIT_ITEMS);
}

void rig_check_but(struct rig *r, unsigned known)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;

	rig_hold(r);
	fs = rig_open(r, 0, 0);
	rig_check(audit(fs, known, NULL, &err), &err);
	rig_check(audit_backups(fs, &err), &err);
	verify_supers(r, fs);
	check_parity(r, fs);
	btrkit_fs_close(fs);
}
