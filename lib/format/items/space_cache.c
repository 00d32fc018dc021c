// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/space_cache.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static void space_cache_get(const struct item *item, struct space_cache *ret)
{
	const struct disk_space_cache *d = (const struct disk_space_cache *)item->data;

	*ret = (struct space_cache){
		.start = item->key.offset,
		.location = key_get(&d->location),
		.generation = le64_get(d->generation),
		.num_entries = le64_get(d->num_entries),
		.num_bitmaps = le64_get(d->num_bitmaps),
	};
}

int space_cache_decode(const struct item *item, struct space_cache *ret, struct btrkit_error *err)
{
	struct space_cache sc;

	if (item->size < sizeof(struct disk_space_cache))
		return expect_size(item, sizeof(struct disk_space_cache), err);
	space_cache_get(item, &sc);
	if (sc.location.type != KEY_INODE_ITEM || !is_inode_number(sc.location.objectid))
		return err_corrupt(err, "location", "space cache header refers to invalid key (%" PRIu64 " %u)",
				   sc.location.objectid, sc.location.type);
	*ret = sc;
	return 0;
}

static int space_cache_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct space_cache sc;

	(void)ctx;
	return space_cache_decode(item, &sc, err);
}

static void space_cache_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct space_cache sc;

	(void)ctx;
	(void)flags;
	if (!render_struct(e, item, sizeof(struct disk_space_cache)))
		return;
	space_cache_get(item, &sc);
	key_emit(e, "location", "\t\tlocation ", &sc.location);
	emit_u64(e, "generation", "\n\t\tcache generation ", sc.generation);
	emit_u64(e, "num_entries", " entries ", sc.num_entries);
	emit_u64(e, "num_bitmaps", " bitmaps ", sc.num_bitmaps);
	emit_text(e, "\n");
}

const struct item_type item_type_space_cache = {
	.type = 0,
	.name = "UNTYPED",
	.min_size = sizeof(struct disk_space_cache),
	.validate = space_cache_validate,
	.render = space_cache_render,
};
