// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the result of mkfs as JSON Lines. */
#include "lib/print/mkfs.h"

#include <btrkit/mkfs.h>

#include <string.h>

#include "lib/base/err.h"
#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"

static void print_groups(struct emit *e, const struct btrkit_mkfs_result *r)
{
	emit_array(e, "groups");
	for (unsigned i = 0; i < r->num_groups; i++) {
		emit_object(e, NULL);
		bg_flags_emit(e, "type", "", r->groups[i].type);
		emit_u64(e, "logical", "", r->groups[i].logical);
		emit_u64(e, "length", "", r->groups[i].length);
		emit_object_end(e);
	}
	emit_array_end(e);
}

static void print_devices(struct emit *e, const struct btrkit_mkfs_device *made, const char *const *names, size_t n)
{
	emit_array(e, "devices");
	for (size_t i = 0; i < n; i++) {
		emit_object(e, NULL);
		emit_u64(e, "devid", "", i + 1);
		emit_name(e, "path", "", names[i], strlen(names[i]));
		if (made) {
			emit_u64(e, "total_bytes", "", made[i].total_bytes);
			emit_uuid(e, "uuid", "", made[i].uuid);
		}
		emit_object_end(e);
	}
	emit_array_end(e);
}

static void print_filled(struct emit *e, const struct btrkit_mkfs_options *o, const struct btrkit_mkfs_result *r)
{
	static const char *const kinds[] = { "none", "zlib", "lzo", "zstd" };

	emit_object(e, "filled");
	emit_name(e, "source", "", o->source->path, strlen(o->source->path));
	emit_u64(e, "inodes", "", r->inodes);
	emit_u64(e, "files", "", r->files);
	emit_u64(e, "file_bytes", "", r->file_bytes);
	emit_u64(e, "data_bytes", "", r->data_bytes);
	emit_u64(e, "metadata_bytes", "", r->metadata_bytes);
	emit_str(e, "compression", "", kinds[o->compression]);
	emit_u64(e, "compressed_from", "", r->compressed_from);
	emit_u64(e, "compressed_to", "", r->compressed_to);
	if (r->compressor)
		emit_str(e, "compressor", "", r->compressor);
	if (o->flags & BTRKIT_MKFS_VERIFY) {
		emit_u64(e, "verified", "", r->verified);
		emit_u64(e, "verified_bytes", "", r->verified_bytes);
	}
	if (o->source->flags & BTRKIT_SOURCE_ACCEPT_CHANGES)
		emit_u64(e, "changed", "", r->changed);
	emit_object_end(e);
}

int print_mkfs_result(const struct btrkit_mkfs_options *opts, const struct btrkit_mkfs_result *r,
			     const char *const *names, size_t n, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err)
{
	static const struct btrkit_mkfs_options defaults = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_mkfs_options *o = opts ? opts : &defaults;
	struct emit e;
	int ret;

	if (!r->csum_name || (unsigned)o->compression > BTRKIT_COMPRESSION_ZSTD)
		return err_set(err, BTRKIT_INVALID, "invalid mkfs options");
	ret = list_begin(&e, BTRKIT_FORMAT_JSON, "mkfs", write, ctx, err);
	if (ret)
		return ret;
	emit_object(&e, NULL);
	if (o->label)
		emit_name(&e, "label", "", o->label, strlen(o->label));
	emit_uuid(&e, "fsid", "", r->fsid);
	emit_uuid(&e, "device_uuid", "", r->device_uuid);
	emit_u64(&e, "nodesize", "", r->nodesize);
	emit_u64(&e, "sectorsize", "", r->sectorsize);
	emit_u64(&e, "total_bytes", "", r->total_bytes);
	emit_u64(&e, "incompat_flags", "", r->incompat);
	emit_u64(&e, "compat_ro_flags", "", r->compat_ro);
	emit_str(&e, "csum_name", "", r->csum_name);
	print_groups(&e, r);
	print_devices(&e, o->made, names, n);
	if (o->source)
		print_filled(&e, o, r);
	emit_object_end(&e);
	return list_end(&e, 0);
}
