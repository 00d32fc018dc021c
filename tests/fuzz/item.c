// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The item registry: any key with any data is validated, and rendered whatever the result was. Input: a byte of
 * choices, a key as on disk, the item.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "lib/format/feature_bits.h"
#include "lib/format/item.h"

enum {
	SMALL_NODES = 1,
	CRC32C = 2,
	NO_HOLES = 4,
	HIDE_NAMES = 8,
	CSUM_ITEMS = 16,
	PERCPU_SLOTS = 32
};

static void render(const struct item_type *type, const struct item_ctx *ctx, const struct item *item, unsigned flags,
		   enum emit_form form)
{
	uint64_t room = 1 << 30;
	struct emit e;

	if (emit_init(&e, form, fuzz_write, &room))
		return;
	emit_object(&e, NULL);
	type->render(&e, ctx, item, flags);
	emit_object_end(&e);
	/* An item is no larger than a node, so its rendering cannot become huge or nest too deeply. */
	if (emit_finish(&e))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct item_ctx ctx = { .sectorsize = 4096, .nodesize = 16384, .csum_size = 4, .generation = 100, .owner = 5 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct item_type *type;
	struct disk_key key;
	struct item item;
	unsigned flags = 0;

	if (size < 1 + sizeof(key) || size > 65536)
		return 0;
	if (data[0] & SMALL_NODES)
		ctx.nodesize = 4096;
	if (!(data[0] & CRC32C)) {
		ctx.csum_type = 2;
		ctx.csum_size = 32;
	}
	if (data[0] & NO_HOLES)
		ctx.incompat |= INCOMPAT_NO_HOLES;
	if (data[0] & PERCPU_SLOTS)
		ctx.incompat |= INCOMPAT_RAID_STRIPE_TREE;
	if (data[0] & HIDE_NAMES)
		flags |= RENDER_HIDE_NAMES;
	if (data[0] & CSUM_ITEMS)
		flags |= RENDER_CSUM_ITEMS;
	memcpy(&key, data + 1, sizeof(key));
	item.key.objectid = le64_get(key.objectid);
	item.key.type = key.type;
	item.key.offset = le64_get(key.offset);
	item.data = data + 1 + sizeof(key);
	item.size = (uint32_t)(size - 1 - sizeof(key));
	/* Either result is fine, but a failure must have a message. */
	if (item_validate(&ctx, &item, &err) && !err.message[0])
		abort();
	type = item_type_find(&item.key);
	if (type && type->render) {
		render(type, &ctx, &item, flags, EMIT_TEXT);
		render(type, &ctx, &item, flags, EMIT_JSON);
	}
	return 0;
}
