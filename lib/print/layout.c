// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints devices, chunks and locations as text or JSON Lines. */
#include "lib/print/layout.h"

#include <btrkit/device.h>

#include <string.h>

#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"

static int print_device(void *ctx, const struct btrkit_device *d)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_u64(e, "devid", "devid ", d->devid);
	emit_u64(e, "total_bytes", " size ", d->total_bytes);
	emit_u64(e, "bytes_used", " used ", d->bytes_used);
	emit_uuid(e, "uuid", " uuid ", d->uuid);
	if (d->name)
		emit_name(e, "path", " path ", d->name, strlen(d->name));
	else
		emit_text(e, " missing");
	emit_bool(e, "missing", !d->name);
	emit_u64(e, "write_errors", "\n\terrors: write ", d->write_errors);
	emit_u64(e, "read_errors", " read ", d->read_errors);
	emit_u64(e, "flush_errors", " flush ", d->flush_errors);
	emit_u64(e, "corruption_errors", " corruption ", d->corruption_errors);
	emit_u64(e, "generation_errors", " generation ", d->generation_errors);
	emit_text(e, "\n");
	emit_object_end(e);
	return emit_failed(e);
}

static int print_chunk(void *ctx, const struct btrkit_chunk *c)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_u64(e, "logical", "chunk ", c->logical);
	emit_u64(e, "length", " length ", c->length);
	bg_flags_emit(e, "type", " type ", c->type);
	emit_u64(e, "used", " used ", c->used);
	emit_u64(e, "stripe_length", " stripe_length ", c->stripe_length);
	if (!c->reachable)
		emit_text(e, " unreachable");
	emit_bool(e, "reachable", c->reachable);
	emit_text(e, "\n");
	emit_array(e, "stripes");
	for (unsigned i = 0; i < c->num_stripes; i++) {
		emit_object(e, NULL);
		if (e->form == EMIT_TEXT)
			emit_u64(e, NULL, "\tstripe ", i);
		emit_u64(e, "devid", " devid ", c->stripes[i].devid);
		emit_u64(e, "physical", " physical ", c->stripes[i].physical);
		emit_text(e, "\n");
		emit_object_end(e);
	}
	emit_array_end(e);
	emit_object_end(e);
	return emit_failed(e);
}

struct places {
	struct emit *e;
	uint64_t logical;
};

static int print_copy(void *ctx, const struct btrkit_copy *c)
{
	static const char *const roles[] = { "data", "P", "Q" };
	const struct places *p = ctx;
	struct emit *e = p->e;

	emit_object(e, NULL);
	emit_u64(e, "mirror", "mirror ", c->mirror);
	emit_u64(e, "logical", " logical ", p->logical);
	emit_u64(e, "physical", " physical ", c->physical);
	emit_u64(e, "devid", " devid ", c->devid);
	if (c->name)
		emit_name(e, "device", " device ", c->name, strlen(c->name));
	else
		emit_text(e, " device missing");
	emit_u64(e, "length", " length ", c->length);
	if (c->role != BTRKIT_COPY_DATA)
		emit_text(e, c->role == BTRKIT_COPY_P ? " parity P" : " parity Q");
	if (e->form == EMIT_JSON)
		emit_str(e, "role", "", roles[c->role]);
	emit_text(e, "\n");
	emit_object_end(e);
	return emit_failed(e);
}

int print_devices(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			 struct btrkit_error *err)
{
	struct emit e;
	int ret = list_begin(&e, format, "list-devices", write, ctx, err);

	return ret ? ret : list_end(&e, btrkit_devices(fs, print_device, &e, err));
}

int print_chunks(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			struct btrkit_error *err)
{
	struct emit e;
	int ret = list_begin(&e, format, "list-chunks", write, ctx, err);

	return ret ? ret : list_end(&e, btrkit_chunks(fs, print_chunk, &e, err));
}

int print_logical_copies(struct btrkit_fs *fs, uint64_t logical, enum btrkit_format format,
				btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	struct emit e;
	struct places p = { &e, logical };
	int ret = list_begin(&e, format, "map-logical", write, ctx, err);

	return ret ? ret : list_end(&e, btrkit_logical_copies(fs, logical, print_copy, &p, err));
}
