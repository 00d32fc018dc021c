// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/dump.h>

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/item.h"
#include "lib/format/super.h"
#include "lib/format/super_render.h"
#include "lib/volume/super_place.h"

#define FLAGS_KNOWN ((BTRKIT_DUMP_SUPER_MORE << 1) - 1)

static int refuse(struct btrkit_error *err)
{
	return err_because(err, BTRKIT_CAUSE_NO_SUPERBLOCK, err_set(err, BTRKIT_NOT_BTRFS, "not a btrfs filesystem"));
}

/* Maps the nominal offset of a superblock copy to its actual location. @return 0 or <0 */
static int device_range_of(struct btrkit_io *io, uint64_t offset, uint64_t *ret, struct btrkit_error *err)
{
	*ret = offset;
	for (unsigned i = 0; i < SUPER_MIRRORS; i++) {
		int r;

		if (offset != super_offset(i))
			continue;
		r = super_place(io, i, ret, err);
		if (r == 1 && i)
			return err_set(err, BTRKIT_NOT_FOUND, "the device has no zones for its %s",
				       super_mirror_names()[i]);
		return r == 1 ? refuse(err) : r;
	}
	return 0;
}

static int read_super(struct btrkit_io *io, uint64_t offset, unsigned flags, struct disk_super *d,
		      struct btrkit_error *err)
{
	uint64_t at;
	int ret;

	if (offset > io->size || io->size - offset < sizeof(*d)) {
		/* Every filesystem has the primary superblock, so a device that ends before it has none. */
		if (offset == super_offset(0))
			return refuse(err);
		return err_set(err, BTRKIT_TRUNCATED, "the device ends before a superblock at %" PRIu64, offset);
	}
	ret = device_range_of(io, offset, &at, err);
	if (!ret)
		ret = btrkit_io_read(io, at, d, sizeof(*d), err);
	if (ret)
		return ret;
	if (le64_get(d->magic) == SUPER_MAGIC || flags & BTRKIT_DUMP_SUPER_FORCE)
		return 0;
	ret = super_refuse_undo_mark(d, err);
	if (ret)
		return ret;
	if (offset == super_offset(0))
		return refuse(err);
	return err_set(err, BTRKIT_NOT_BTRFS, "no superblock at %" PRIu64, offset);
}

uint64_t btrkit_super_offset(unsigned mirror)
{
	return mirror < SUPER_MIRRORS ? super_offset(mirror) : UINT64_MAX;
}

int btrkit_dump_super(struct btrkit_io *io, uint64_t offset, unsigned flags, enum btrkit_format format,
		      btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	const unsigned render = flags & BTRKIT_DUMP_SUPER_HIDE_NAMES ? RENDER_HIDE_NAMES : 0;
	const bool json = format == BTRKIT_FORMAT_JSON;
	struct btrkit_error bad = BTRKIT_ERROR_INIT;
	struct disk_super d;
	struct emit e;
	int ret, written;

	if (flags & ~FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", flags & ~FLAGS_KNOWN);
	if (format != BTRKIT_FORMAT_TEXT && !json)
		return err_set(err, BTRKIT_INVALID, "unknown format %d", (int)format);
	ret = read_super(io, offset, flags, &d, err);
	if (ret)
		return ret;
	if (emit_init(&e, json ? EMIT_JSON : EMIT_TEXT, write, ctx))
		return err_nomem(err);
	if (!(flags & BTRKIT_DUMP_SUPER_MORE))
		emit_header(&e, "dump-super");
	emit_object(&e, NULL);
	emit_u64(&e, "offset", "superblock: bytenr=", offset);
	emit_name(&e, "device", ", device=", io->name, strlen(io->name));
	emit_text(&e, "\n---------------------------------------------------------\n");
	ret = super_render(&e, &d, flags & BTRKIT_DUMP_SUPER_FULL, render, &bad);
	emit_text(&e, "\n");
	if (ret && json)
		emit_str(&e, "damaged", "", bad.message);
	emit_object_end(&e);
	if (ret && err)
		*err = bad;
	written = emit_finish(&e);
	if (written)
		return err_system(err, written, "cannot write the dump");
	return ret;
}
