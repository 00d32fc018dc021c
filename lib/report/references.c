// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries of who refers to data: by extent, or by any address. */
#include "lib/backref/references.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"

/* Reports the loaded references to byte @within of the extent, or all references. */
static int tell(const struct references *r, uint64_t within, bool all, btrkit_reference_fn fn, void *ctx)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < r->n; i++) {
		struct btrkit_reference ref = r->at[i];

		if (!all && !ref.compressed) {
			/* Without a range, it may be one to any byte. */
			if (ref.length &&
			    (within < ref.extent_offset || within - ref.extent_offset >= ref.length))
				continue;
			ref.offset += within - ref.extent_offset;
		}
		ret = fn(ctx, &ref);
	}
	return ret;
}

int btrkit_extent_references(struct btrkit_fs *fs, uint64_t bytenr, btrkit_reference_fn fn, void *ctx,
			     struct btrkit_error *err)
{
	struct references r;
	int ret;

	ret = fs_check_committed(fs, err);
	if (ret)
		return ret;
	ret = references_init(&r, fs, err);
	if (!ret)
		ret = references_load(&r, bytenr, err);
	if (!ret)
		ret = tell(&r, 0, true, fn, ctx);
	references_release(&r);
	return ret;
}

int btrkit_logical_find(struct btrkit_fs *fs, uint64_t address, struct btrkit_allocation *ret, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(address, UINT8_MAX, UINT64_MAX);
	struct extent_item e = { 0 };
	struct tree_root root;
	struct cursor c;
	int r;

	r = fs_check_committed(fs, err);
	if (!r)
		r = fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, err);
	if (r)
		return r;
	cursor_init(&c, fs, &root);
	/* After an extent's own item, there may be items of its references and of its block group. */
	r = cursor_seek_back(&c, &key, err);
	while (!r && c.item.key.type != KEY_EXTENT_ITEM && c.item.key.type != KEY_METADATA_ITEM) {
		if (c.item.key.type > KEY_METADATA_ITEM) {
			key = KEY(c.item.key.objectid, KEY_METADATA_ITEM, UINT64_MAX);
		} else if (c.item.key.objectid) {
			key = KEY(c.item.key.objectid - 1, UINT8_MAX, UINT64_MAX);
		} else {
			r = 1;
			break;
		}
		r = cursor_seek_back(&c, &key, err);
	}
	if (!r)
		r = cursor_blame(&c, extent_item_decode(&fs->items, &c.item, &e, err), err);
	cursor_release(&c);
	if (r < 0)
		return r;
	if (r || address - e.bytenr >= e.num_bytes)
		return err_set(err, BTRKIT_NOT_FOUND, "nothing is allocated at %" PRIu64, address);
	*ret = (struct btrkit_allocation){ .bytenr = e.bytenr,
					   .length = e.num_bytes,
					   .generation = e.generation,
					   .data = e.flags & EXTENT_FLAG_DATA,
					   .level = e.level };
	return 0;
}

int btrkit_logical_references_around(struct btrkit_fs *fs, uint64_t address, unsigned flags, btrkit_reference_fn fn,
				     btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct btrkit_allocation found;
	struct references r;
	int ret;

	if (flags & ~(unsigned)BTRKIT_LOGICAL_WHOLE_EXTENT)
		return err_set(err, BTRKIT_INVALID, "unknown flags");
	ret = btrkit_logical_find(fs, address, &found, err);
	if (ret)
		return ret;
	if (!found.data)
		return err_set(err, BTRKIT_INVALID, "address %" PRIu64 " is in a tree block of level %u", address,
			       found.level);
	ret = references_init(&r, fs, err);
	r.lost = lost;
	r.lost_ctx = ctx;
	if (!ret)
		ret = references_load(&r, found.bytenr, err);
	if (!ret)
		ret = tell(&r, address - found.bytenr, flags & BTRKIT_LOGICAL_WHOLE_EXTENT, fn, ctx);
	references_release(&r);
	return ret;
}

int btrkit_logical_references(struct btrkit_fs *fs, uint64_t address, unsigned flags, btrkit_reference_fn fn, void *ctx,
			      struct btrkit_error *err)
{
	return btrkit_logical_references_around(fs, address, flags, fn, NULL, ctx, err);
}
