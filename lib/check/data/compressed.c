// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verifies that compressed data can be decompressed, which checksums do not guarantee. */
#include "lib/check/data/compressed.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/compression/codec.h"
#include "lib/check/data/csums.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"
#include "lib/fs/data.h"
#include "lib/fs/extent_read.h"
#include "lib/io/buffer.h"
#include "lib/volume/volume.h"

static void report_compressed(struct check *c, const struct check_location *at, const struct file_extent *fe,
			      const struct btrkit_error *why)
{
	check_report_at(c, CHECK_DATA_COMPRESSED, at, "data with compression type %u cannot be decompressed: %s",
			fe->compression, why->message);
}

/* Decompresses a data or inline extent. @return 0; -EUCLEAN: invalid data; other errors do not mean that */
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
	const struct check_location at = { leaf->owner, leaf->bytenr, &item->key, "compression" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	/* Reported by extent_fields.c. */
	if (!fe->ram_bytes || fe->ram_bytes > c->items.sectorsize)
		return;
	ret = decompress(c, fe, fe->inline_data, fe->inline_len, &err);
	if (ret == -ENOMEM)
		check_fail(c, ret, &err);
	else if (ret == -EUCLEAN)
		report_compressed(c, &at, fe, &err);
}

/* Reads an extent into @stored, from any copy that matches its checksums. */
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
 * Tries the first copy without checksums, since it is nearly always good. If it is not, the checksums decide which copy
 * to use. If that cannot be read either, data.c reports it.
 */
static int check_compressed(struct check *c, const struct file_extent *fe, uint8_t *stored, struct btrkit_error *err)
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
	/* If the extent is shared, report it by its address instead of by one of its users. */
	const struct check_location shared = { .logical = fe->disk_bytenr };
	const struct check_location alone = { leaf->owner, leaf->bytenr, &item->key, "compression" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *stored;
	int ret;

	/* Reported by extent_fields.c, or for the extent itself. */
	if (!fe->ram_bytes || fe->ram_bytes > EXTENT_COMPRESSED_MAX || fe->disk_num_bytes > EXTENT_COMPRESSED_MAX)
		return;
	stored = io_buffer(fe->disk_num_bytes);
	ret = stored ? check_compressed(c, fe, stored, &err) : err_nomem(&err);
	free(stored);
	if (ret == -ENOMEM)
		check_fail(c, ret, &err);
	else if (ret == -EUCLEAN)
		report_compressed(c, e->refs == 1 ? &alone : &shared, fe, &err);
}
