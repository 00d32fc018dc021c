// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether compressed data comes out again, of which a checksum says nothing. */
#include "lib/check/compressed.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/codec.h"
#include "lib/fs/data.h"
#include "lib/fs/extent_read.h"
#include "lib/io/buffer.h"
#include "lib/volume/volume.h"

static void blame(struct check *c, const struct check_place *at, const struct file_extent *fe,
		  const struct btrkit_error *why)
{
	check_say(c, CHECK_DATA_COMPRESSED, at, "data that is compressed by kind %u cannot be decompressed: %s",
		  fe->compression, why->message);
}

/* Of an extent or, inline, of an item. @return 0; -EUCLEAN: it does not come out; others say nothing of it */
static int decompress(struct check *c, const struct file_extent *fe, const void *in, size_t in_len,
		      struct btrkit_error *err)
{
	uint8_t *plain = malloc(fe->ram_bytes);
	int ret;

	if (!plain)
		ret = err_nomem(err);
	else if (fe->type == FILE_EXTENT_INLINE)
		ret = codec_decompress_inline(fe->compression, in, in_len, plain, fe->ram_bytes, c->items.sectorsize,
					      err);
	else
		ret = codec_decompress(fe->compression, in, in_len, plain, fe->ram_bytes, c->items.sectorsize, err);
	free(plain);
	return ret;
}

void check_compressed_inline(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe)
{
	const struct check_place at = { leaf->owner, leaf->bytenr, &item->key, "compression" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	/* Which was told. */
	if (!fe->ram_bytes || fe->ram_bytes > c->items.sectorsize)
		return;
	ret = decompress(c, fe, fe->inline_data, fe->inline_len, &err);
	if (ret == -ENOMEM)
		check_fail(c, ret, &err);
	else if (ret == -EUCLEAN)
		blame(c, &at, fe, &err);
}

/* Reads it with its checksums, of any copy; there is room for an extent at @stored. */
static int read_verified(struct check *c, const struct file_extent *fe, uint8_t *stored, struct btrkit_error *err)
{
	size_t hint = 0;
	const bool has_sums = check_csum_bytes(c, fe->disk_bytenr, fe->disk_num_bytes, &hint);
	struct data_reader r;
	int ret = data_reader_init(&r, c->fs, err);

	if (!ret)
		ret = data_read(&r, fe->disk_bytenr, stored, fe->disk_num_bytes, has_sums, err);
	data_reader_release(&r);
	return ret;
}

/*
 * The first copy is good nearly always. Where it is not, or what is in it is not, checksums decide which one is; a
 * failure to read it then is told by who reads all data.
 */
static int judge(struct check *c, const struct file_extent *fe, uint8_t *stored, struct btrkit_error *err)
{
	int ret = volume_read_any(c->fs->volume, fe->disk_bytenr, stored, fe->disk_num_bytes, NULL);

	if (!ret)
		ret = decompress(c, fe, stored, fe->disk_num_bytes, NULL);
	if (!ret || ret == -ENOMEM)
		return ret;
	ret = read_verified(c, fe, stored, err);
	return ret == -ENOMEM ? ret : ret ? 0 : decompress(c, fe, stored, fe->disk_num_bytes, err);
}

void check_compressed_extent(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe, const struct check_extent *e)
{
	/* Of who shares it nobody is to blame more than others. */
	const struct check_place shared = { .logical = fe->disk_bytenr };
	const struct check_place alone = { leaf->owner, leaf->bytenr, &item->key, "compression" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *stored;
	int ret;

	/* Which was told, or is told of the extent. */
	if (!fe->ram_bytes || fe->ram_bytes > EXTENT_COMPRESSED_MAX || fe->disk_num_bytes > EXTENT_COMPRESSED_MAX)
		return;
	stored = io_buffer(fe->disk_num_bytes);
	ret = stored ? judge(c, fe, stored, &err) : err_nomem(&err);
	free(stored);
	if (ret == -ENOMEM)
		check_fail(c, ret, &err);
	else if (ret == -EUCLEAN)
		blame(c, e->refs == 1 ? &alone : &shared, fe, &err);
}
