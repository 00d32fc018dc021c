// SPDX-License-Identifier: LGPL-2.1-or-later
/* When a filesystem is opened, adds its devices and chunks to the volume. */
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/devices/dev.h"
#include "lib/tree/cursor.h"
#include "lib/tree/start.h"
#include "lib/volume/volume.h"

static int add_chunk(struct btrkit_fs *fs, const struct item *item, struct btrkit_error *err)
{
	struct chunk chunk;
	int ret = chunk_decode(&fs->items, item, &chunk, err);

	return ret ? ret : volume_add_chunk(fs->volume, &chunk, err);
}

/* Damaged device items are ignored, because chunks contain device IDs, too. */
static void add_device(struct btrkit_fs *fs, const struct item *item)
{
	struct dev_item d;

	if (!dev_item_decode(item, &d, NULL))
		volume_add_device(fs->volume, d.devid, d.uuid);
}

struct reading {
	struct btrkit_fs *fs;
	const struct btrkit_open_options *opts;
	struct btrkit_error *err;
};

static int lose(void *ctx, int ret, const struct btrkit_error *what)
{
	const struct reading *r = ctx;

	return start_partial(r->fs, r->opts, ret, what, r->err);
}

/* The superblock is damaged. On zoned devices its location is somewhere in a log. */
static int lose_of_super(struct reading *r, int ret, struct btrkit_error *what)
{
	const struct btrkit_fs *fs = r->fs;

	if (fs->super.incompat & INCOMPAT_ZONED)
		err_at_devid(what, fs->super.devid);
	else
		err_at_device(what, fs->super.devid, super_offset(fs->super_mirror));
	return lose(r, ret, what);
}

/* Reads the system chunks in the superblock, which are needed to read the chunk tree. */
static int read_system_chunks(struct reading *r)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct item item;
	uint32_t pos = 0;
	int ret;

	while (!(ret = super_next_chunk(&r->fs->super, &pos, &item, &what))) {
		ret = add_chunk(r->fs, &item, &what);
		if (ret)
			ret = lose_of_super(r, ret, &what);
		if (ret)
			return ret;
	}
	return ret < 0 ? lose_of_super(r, ret, &what) : 0;
}

int chunks_read(struct btrkit_fs *fs, const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0);
	struct reading r = { fs, opts, err };
	struct cursor c;
	int ret;

	ret = read_system_chunks(&r);
	if (!ret)
		ret = start_chunk_root(fs, opts, err);
	if (ret)
		return ret;
	cursor_init(&c, fs, &fs->chunk_tree);
	c.scan = true;
	ret = cursor_next_around(&c, &at, true, lose, &r, err);
	while (!ret) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (c.item.key.type == KEY_DEV_ITEM)
			add_device(fs, &c.item);
		else if (c.item.key.type == KEY_CHUNK_ITEM)
			ret = cursor_blame(&c, add_chunk(fs, &c.item, &what), &what);
		if (ret)
			ret = lose(&r, ret, &what);
		if (!ret)
			ret = cursor_next_around(&c, &at, false, lose, &r, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}
