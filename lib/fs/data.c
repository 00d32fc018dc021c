// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/volume/volume.h"

int data_reader_init(struct data_reader *r, struct btrkit_fs *fs, struct btrkit_error *err)
{
	const size_t sectors = DATA_PIECE / fs->geometry.sectorsize;
	struct tree_root root = { 0 };
	int ret;

	*r = (struct data_reader){ .fs = fs };
	ret = fs_try_root(fs, OID_CSUM_TREE, &root, NULL, err);
	r->has_csums = !ret;
	cursor_init(&r->csums, fs, &root);
	if (ret < 0)
		return ret;
	r->sums = malloc(sectors * fs->geometry.csum->size);
	r->known = malloc(sectors * sizeof(*r->known));
	return r->sums && r->known ? 0 : err_nomem(err);
}

void data_reader_release(struct data_reader *r)
{
	cursor_release(&r->csums);
	free(r->sums);
	free(r->known);
}

/* Copies the checksums of the piece that the current item has. */
static void take_sums(struct data_reader *r, uint64_t logical, size_t sectors)
{
	const struct item *item = &r->csums.item;
	const uint32_t size = r->fs->geometry.csum->size, unit = r->fs->geometry.sectorsize;
	const uint64_t count = item->size / size;

	for (size_t i = 0; i < sectors; i++) {
		const uint64_t at = logical + (uint64_t)i * unit;
		const uint64_t n = (at - item->key.offset) / unit;

		if (at < item->key.offset || n >= count)
			continue;
		memcpy(r->sums + i * size, item->data + n * size, size);
		r->known[i] = true;
	}
}

/* Finds the checksums of a piece. */
static int find_sums(struct data_reader *r, uint64_t logical, size_t sectors, struct btrkit_error *err)
{
	const uint64_t end = logical + (uint64_t)sectors * r->fs->geometry.sectorsize;
	struct cursor *c = &r->csums;
	int ret;

	memset(r->known, 0, sectors * sizeof(*r->known));
	if (!r->has_csums)
		return 0;
	ret = cursor_seek_back(c, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, logical), err);
	if (ret == 1 || (!ret && c->item.key.objectid != OID_EXTENT_CSUM))
		ret = cursor_seek(c, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, logical), err);
	while (!ret && c->item.key.objectid == OID_EXTENT_CSUM && c->item.key.type == KEY_EXTENT_CSUM &&
	       c->item.key.offset < end) {
		ret = cursor_blame(c, item_validate(&r->fs->items, &c->item, err), err);
		if (ret)
			return ret;
		take_sums(r, logical, sectors);
		ret = cursor_next(c, err);
	}
	return ret < 0 ? ret : 0;
}

struct verify_ctx {
	const struct data_reader *r;
	size_t sector; /* number in the piece */
};

static int verify_sector(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct verify_ctx *v = ctx;
	const struct btrkit_fs *fs = v->r->fs;
	const uint32_t size = fs->geometry.csum->size, unit = fs->geometry.sectorsize;
	uint8_t sum[CSUM_SIZE_MAX];

	fs->geometry.csum->compute(buf, unit, sum);
	if (memcmp(sum, v->r->sums + v->sector * size, size))
		return err_because(err, BTRKIT_CAUSE_CSUM, err_corrupt(err, "csum", "data checksum mismatch"));
	return 0;
}

/*
 * Reads and verifies a piece. The whole piece is read first without verification. Each sector that does not match its
 * checksum is then read by itself, because copies may be damaged in different places. This also counts the error for
 * the right device and leaves other copies alone.
 */
static int read_piece(struct data_reader *r, uint64_t logical, uint8_t *buf, size_t len, struct btrkit_error *err)
{
	const uint32_t unit = r->fs->geometry.sectorsize;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct verify_ctx ctx = { r, 0 };
	bool is_read;
	int ret;

	ret = find_sums(r, logical, len / unit, err);
	if (ret)
		return ret;
	ret = volume_read_any(r->fs->volume, logical, buf, len, &own);
	if (ret == -EUCLEAN || ret == -ENOMEM)
		return err_pass(err, &own, ret);
	is_read = !ret;
	for (ret = 0; !ret && ctx.sector < len / unit; ctx.sector++) {
		uint8_t *sector = buf + ctx.sector * unit;

		if (!r->known[ctx.sector]) {
			ret = err_corrupt(err, "csum", "data has no checksum");
			err_at_logical(err, logical + ctx.sector * unit);
			return ret;
		}
		if (!is_read || verify_sector(&ctx, sector, NULL))
			ret = volume_read(r->fs->volume, logical + ctx.sector * unit, sector, unit, verify_sector, &ctx,
					  err);
	}
	return ret;
}

/* Returns whether a transaction still has the data in memory, and copies it. @len: see filesystem.h */
static bool is_unwritten(const struct btrkit_fs *fs, uint64_t logical, void *buf, size_t *len)
{
	return fs->unwritten && fs->unwritten(fs, logical, buf, len);
}

int data_read(struct data_reader *r, uint64_t logical, void *buf, size_t len, bool verify, struct btrkit_error *err)
{
	uint8_t *to = buf;
	int ret = 0;

	if (r->fs->items.incompat & INCOMPAT_RAID_STRIPE_TREE)
		return features_refuse(BTRKIT_FEATURE_INCOMPAT, INCOMPAT_RAID_STRIPE_TREE,
				       "reading file data is not supported", err);
	while (!ret && len) {
		size_t piece = len < DATA_PIECE ? len : DATA_PIECE;

		if (!is_unwritten(r->fs, logical, to, &piece))
			ret = verify ? read_piece(r, logical, to, piece, err) :
				       volume_read_any(r->fs->volume, logical, to, piece, err);
		logical += piece;
		to += piece;
		len -= piece;
	}
	return ret;
}
