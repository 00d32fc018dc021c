// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shows the bytes of a tree block along with their meaning, valid or not. */
#include <btrkit/dump.h>

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/emit.h"
#include "lib/base/err.h"
#include "lib/format/items/render.h"
#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"
#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"

#define NONE UINT32_MAX
#define IN_LINE 17u /* bytes per line: enough for a whole key */

struct raw {
	struct emit e;
	struct btrkit_fs *fs;
	const uint8_t *bytes;
	uint32_t size;
};

static bool is_json(const struct raw *r)
{
	return r->e.form == EMIT_JSON;
}

/* Prints "OFFSET  xx xx ..." with up to IN_LINE bytes, padded with blanks to the width of IN_LINE bytes. */
static void put_bytes(struct raw *r, uint32_t at, uint32_t n)
{
	static const char digits[] = "0123456789abcdef";
	char line[8 + 3 * IN_LINE + 2], *to = line;

	for (int shift = 16; shift >= 0; shift -= 4)
		*to++ = digits[at >> shift & 15];
	*to++ = ' ';
	for (uint32_t i = 0; i < IN_LINE; i++) {
		*to++ = ' ';
		*to++ = i < n ? digits[r->bytes[at + i] >> 4] : ' ';
		*to++ = i < n ? digits[r->bytes[at + i] & 15] : ' ';
	}
	*to++ = ' ';
	*to++ = ' ';
	emit_bytes(&r->e, line, (size_t)(to - line));
}

/* Begins a JSON line. */
static void begin_line(struct raw *r, const char *kind, uint32_t at, uint32_t n)
{
	emit_object(&r->e, NULL);
	emit_word(&r->e, "kind", kind);
	emit_u64(&r->e, "offset", "", at);
	emit_u64(&r->e, "size", "", n);
	emit_hex(&r->e, "bytes", "", r->bytes + at, n);
}

/*
 * Begins a field: print its bytes, on the first line of which the value follows. @slot: slot of the item or pointer, or
 * NONE
 */
static void begin_field(struct raw *r, uint32_t at, uint32_t n, uint32_t slot, const char *name)
{
	if (!is_json(r)) {
		put_bytes(r, at, n < IN_LINE ? n : IN_LINE);
		return;
	}
	begin_line(r, "field", at, n);
	if (slot != NONE)
		emit_u64(&r->e, "slot", "", slot);
	emit_word(&r->e, "name", name);
}

static void end_field(struct raw *r, uint32_t at, uint32_t n)
{
	emit_text(&r->e, "\n");
	for (uint32_t i = IN_LINE; !is_json(r) && i < n; i += IN_LINE) {
		put_bytes(r, at + i, n - i < IN_LINE ? n - i : IN_LINE);
		emit_text(&r->e, "\n");
	}
	emit_object_end(&r->e);
}

/* @words: the name in text, followed by a blank. */
static void show_number(struct raw *r, uint32_t at, uint32_t n, uint32_t slot, const char *name, const char *words)
{
	uint64_t v = 0;

	for (uint32_t i = n; i > 0; i--)
		v = v << 8 | r->bytes[at + i - 1];
	begin_field(r, at, n, slot, name);
	emit_u64(&r->e, "value", words, v);
	end_field(r, at, n);
}

static void show_key(struct raw *r, uint32_t at, uint32_t slot)
{
	const struct btrkit_key key = key_get((const struct disk_key *)(r->bytes + at));

	begin_field(r, at, sizeof(struct disk_key), slot, "key");
	key_emit(&r->e, "key", "", &key);
	end_field(r, at, sizeof(struct disk_key));
}

static void show_uuid(struct raw *r, uint32_t at, const char *name, const char *words)
{
	begin_field(r, at, 16, NONE, name);
	emit_uuid(&r->e, "uuid", words, r->bytes + at);
	end_field(r, at, 16);
}

static char printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f ? (char)c : '.';
}

/* Prints bytes without fields, 16 per line. Repeated lines are printed once. */
static void show_bytes(struct raw *r, uint32_t at, uint32_t end)
{
	bool same = false;

	for (uint32_t from = at; at < end; at += 16) {
		const uint32_t n = end - at < 16 ? end - at : 16;
		char text[18];

		if (at >= from + 16 && n == 16 && !memcmp(r->bytes + at, r->bytes + at - 16, 16)) {
			if (!same)
				emit_text(&r->e, "*\n");
			same = true;
			continue;
		}
		same = false;
		put_bytes(r, at, n);
		text[0] = '|';
		for (uint32_t i = 0; i < n; i++)
			text[1 + i] = printable(r->bytes[at + i]);
		emit_bytes(&r->e, text, n + 1);
		emit_text(&r->e, "|\n");
	}
}

static void show_free(struct raw *r, uint32_t at, uint32_t end)
{
	emit_text(&r->e, "free space\n");
	if (!is_json(r)) {
		show_bytes(r, at, end);
		return;
	}
	begin_line(r, "free", at, end > at ? end - at : 0);
	emit_object_end(&r->e);
}

static void show_header(struct raw *r)
{
	const struct disk_header *h = (const struct disk_header *)r->bytes;

	begin_field(r, 0, sizeof(h->csum), NONE, "csum");
	if (!is_json(r))
		emit_hex(&r->e, "", "csum 0x", h->csum, r->fs->geometry.csum->size);
	end_field(r, 0, sizeof(h->csum));
	show_uuid(r, 32, "fsid", "fsid ");
	show_number(r, 48, 8, NONE, "bytenr", "bytenr ");
	show_number(r, 56, 7, NONE, "flags", "flags ");
	show_number(r, 63, 1, NONE, "backref_revision", "backref revision ");
	show_uuid(r, 64, "chunk_tree_uuid", "chunk tree uuid ");
	show_number(r, 80, 8, NONE, "generation", "generation ");
	show_number(r, 88, 8, NONE, "owner", "owner ");
	show_number(r, 96, 4, NONE, "nritems", "nritems ");
	show_number(r, 100, 1, NONE, "level", "level ");
}

/* Heading of a part, text only. */
static void show_title(struct raw *r, const char *words, uint32_t slot)
{
	if (is_json(r))
		return;
	emit_u64(&r->e, "", words, slot);
	emit_text(&r->e, "\n");
}

static void show_pointers(struct raw *r, uint32_t n)
{
	uint32_t at = sizeof(struct disk_header);

	for (uint32_t i = 0; i < n; i++, at += sizeof(struct disk_key_ptr)) {
		show_title(r, "pointer ", i);
		show_key(r, at, i);
		show_number(r, at + 17, 8, i, "blockptr", "block ");
		show_number(r, at + 25, 8, i, "generation", "generation ");
	}
	show_free(r, at, r->size);
}

static void render(struct raw *r, const struct disk_header *h, const struct item *item)
{
	const struct item_type *type = item_type_find(&item->key);
	struct item_ctx ctx = r->fs->items;

	ctx.owner = le64_get(h->owner);
	emit_object(&r->e, "item");
	if (type && type->render)
		type->render(&r->e, &ctx, item, 0);
	else if (is_json(r))
		render_data(&r->e, "data", item->data, item->size, 0);
	emit_object_end(&r->e);
}

static void item_text(struct raw *r, const struct disk_header *h, uint32_t slot, const struct item *item,
		      const char *bad)
{
	const uint32_t at = (uint32_t)(item->data - r->bytes);

	emit_u64(&r->e, "", "data of item ", slot);
	key_emit(&r->e, "", " ", &item->key);
	if (bad) {
		emit_str(&r->e, "", ": ", bad);
		emit_text(&r->e, "\n");
		return;
	}
	emit_text(&r->e, "\n");
	show_bytes(r, at, at + item->size);
	render(r, h, item);
}

static void item_json(struct raw *r, const struct disk_header *h, uint32_t slot, const struct item *item, uint64_t at,
		      const char *bad)
{
	emit_object(&r->e, NULL);
	emit_word(&r->e, "kind", "item");
	emit_u64(&r->e, "offset", "", at);
	emit_u64(&r->e, "size", "", item->size);
	if (!bad)
		emit_hex(&r->e, "bytes", "", item->data, item->size);
	emit_u64(&r->e, "slot", "", slot);
	key_emit(&r->e, "key", "", &item->key);
	if (bad)
		emit_str(&r->e, "damaged", "", bad);
	else
		render(r, h, item);
	emit_object_end(&r->e);
}

/* Prints the data of an item like dump-tree, but only if it is inside the block. */
static void show_item_data(struct raw *r, const struct disk_header *h, uint32_t slot, uint32_t low)
{
	const struct disk_item *d = (const struct disk_item *)(h + 1) + slot;
	const uint64_t at = sizeof(*h) + (uint64_t)le32_get(d->offset), size = le32_get(d->size);
	const char *bad = at < low ? "overlaps the item headers" :
			  at + size > r->size ? "outside of the block" : NULL;
	const struct item item = { key_get(&d->key), bad ? r->bytes : r->bytes + at, (uint32_t)size };

	if (is_json(r))
		item_json(r, h, slot, &item, at, bad);
	else
		item_text(r, h, slot, &item, bad);
}

static void show_items(struct raw *r, const struct disk_header *h, uint32_t n)
{
	const struct disk_item *items = (const struct disk_item *)(h + 1);
	const uint32_t low = (uint32_t)(sizeof(*h) + n * sizeof(*items));
	uint64_t lowest = r->size;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = (uint32_t)(sizeof(*h) + i * sizeof(*items));
		const uint64_t data = sizeof(*h) + (uint64_t)le32_get(items[i].offset);

		show_title(r, "item ", i);
		show_key(r, at, i);
		show_number(r, at + 17, 4, i, "offset", "offset ");
		show_number(r, at + 21, 4, i, "size", "size ");
		if (data >= low && data < lowest)
			lowest = data;
	}
	show_free(r, low, (uint32_t)lowest);
	for (uint32_t i = n; i > 0 && !emit_failed(&r->e); i--)
		show_item_data(r, h, i - 1, low);
}

static void show_block(struct raw *r)
{
	const struct disk_header *h = (const struct disk_header *)r->bytes;
	const size_t one = h->level ? sizeof(struct disk_key_ptr) : sizeof(struct disk_item);
	const uint32_t most = (uint32_t)((r->size - sizeof(*h)) / one);
	uint32_t n = le32_get(h->nritems);

	show_header(r);
	if (n > most) {
		emit_object(&r->e, NULL);
		emit_word(&r->e, "kind", "damage");
		emit_u64(&r->e, "room", "there is room for ", most);
		emit_text(&r->e, h->level ? " pointers only\n" : " items only\n");
		emit_object_end(&r->e);
		n = most;
	}
	if (h->level)
		show_pointers(r, n);
	else
		show_items(r, h, n);
}

static void show_place(struct raw *r, uint64_t bytenr, unsigned copy, const struct copy *place)
{
	const struct node_ref ref = { bytenr, NODE_ANY, 0, LEVELS_MAX, NULL };
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	emit_object(&r->e, NULL);
	emit_word(&r->e, "kind", "block");
	emit_u64(&r->e, "bytenr", "block ", bytenr);
	emit_u64(&r->e, "mirror", " copy ", copy + 1);
	emit_u64(&r->e, "devid", " on device ", place->devid);
	emit_u64(&r->e, "physical", " at ", place->physical);
	if (node_verify(&r->fs->rules, &ref, r->bytes, &what))
		emit_str(&r->e, "damaged", ": ", what.message);
	emit_text(&r->e, "\n");
	emit_object_end(&r->e);
}

/* @return 0; 1: no such copy; <0 */
static int read_copy(struct btrkit_fs *fs, uint64_t bytenr, unsigned copy, uint8_t *buf, struct copy *place,
		     struct btrkit_error *err)
{
	const uint32_t size = fs->geometry.nodesize;
	int ret = volume_map(fs->volume, bytenr, size, copy, place, err);

	if (ret)
		return ret;
	if (place->length < size)
		return err_set(err, BTRKIT_UNSUPPORTED, "block %" PRIu64 " is split across strips", bytenr);
	if (!place->io)
		ret = err_because(err, BTRKIT_CAUSE_DEVICE_MISSING, err_set(err, BTRKIT_IO, "device is missing"));
	else
		ret = btrkit_io_read(place->io, place->physical, buf, size, err);
	if (ret)
		err_at_device(err, place->devid, place->physical);
	return ret;
}

int btrkit_dump_raw(struct btrkit_fs *fs, uint64_t bytenr, unsigned copy, enum btrkit_format format,
		    btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	struct raw r = { .fs = fs, .size = fs->geometry.nodesize };
	struct copy place;
	uint8_t *buf;
	int ret, written;

	if (bytenr % fs->geometry.sectorsize)
		return err_set(err, BTRKIT_INVALID, "block %" PRIu64 " is not aligned to the sectorsize", bytenr);
	buf = malloc(r.size);
	if (!buf)
		return err_nomem(err);
	ret = read_copy(fs, bytenr, copy, buf, &place, err);
	if (ret == 1)
		ret = err_set(err, BTRKIT_NOT_FOUND, "block %" PRIu64 " has no copy %u", bytenr, copy + 1);
	if (!ret)
		ret = list_begin(&r.e, format, "dump-raw", write, ctx, err);
	if (ret) {
		free(buf);
		return ret;
	}
	r.bytes = buf;
	show_place(&r, bytenr, copy, &place);
	show_block(&r);
	written = emit_finish(&r.e);
	free(buf);
	return written ? err_system(err, written, "cannot write the dump") : 0;
}
