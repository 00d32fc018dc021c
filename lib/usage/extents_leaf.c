// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decodes a leaf of the extent tree: extents, tree blocks, and whether Linux considers them shared. */
#include "lib/base/err.h"
#include "lib/sweep/block.h"
#include "lib/usage/chunks.h"
#include "lib/usage/damage.h"
#include "lib/usage/extents.h"
#include "lib/usage/extents_leaf.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

void usage_extents_end(struct usage_extents_batch *b)
{
	struct usage_extent *last;

	if (!b->open.of_data || !b->extents.n)
		return;
	last = (struct usage_extent *)b->extents.at + b->extents.n - 1;
	if (last->start == b->open.bytenr)
		atomic_store_explicit(&last->info, usage_refs_flags(&b->open.refs), memory_order_relaxed);
}

static int check_location(const struct usage_extents_batch *b, const struct extent_item *ei, size_t *chunk,
			  struct btrkit_error *err)
{
	if (ei->bytenr < b->end)
		return err_corrupt(err, "key.objectid", "extent overlaps the previous one");
	if (!usage_sectors(b->w->u, ei->num_bytes))
		return err_corrupt(err, "key.offset", "invalid extent length");
	if (!usage_in_chunk(b->w, ei->bytenr, ei->num_bytes, chunk))
		return err_corrupt(err, "key.objectid", "extent is not in a chunk");
	return 0;
}

static int add_block(struct usage_extents_batch *b, const struct extent_item *ei, struct btrkit_error *err)
{
	struct usage_block *to = array_add(&b->blocks, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	atomic_init(&to->tagged, usage_block_tagged(ei->bytenr, ei->level, 0));
	to->generation = (uint32_t)ei->generation;
	atomic_init(&to->set, 0);
	return 0;
}

static int add_extent(struct usage_extents_batch *b, const struct extent_item *ei, struct btrkit_error *err)
{
	struct usage_extent *to = array_add(&b->extents, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	to->start = ei->bytenr;
	to->sectors = usage_sectors(b->w->u, ei->num_bytes);
	atomic_init(&to->set, 0);
	atomic_init(&to->info, 0);
	return 0;
}

/* Trees that are not owners themselves belong to the filesystem. */
static void take_block_ref(struct usage_extents_batch *b, const struct extent_ref *ref)
{
	struct usage_block *block = (struct usage_block *)b->blocks.at + b->blocks.n - 1;

	if (ref->type == KEY_TREE_BLOCK_REF && !oid_is_file_tree(ref->root) && ref->root != OID_DATA_RELOC_TREE &&
	    ref->root != OID_TREE_RELOC)
		atomic_init(&block->set, b->w->filesystem);
}

static int take_extent(struct usage_extents_batch *b, const struct item *item, struct btrkit_error *err)
{
	struct extent_item ei;
	struct extent_ref ref;
	int ret = extent_item_decode(&b->w->fs->items, item, &ei, err);

	usage_extents_end(b);
	b->open = (struct usage_refs){ .bytenr = item->key.objectid };
	if (!ret)
		ret = check_location(b, &ei, &b->chunk, err);
	if (ret)
		return ret;
	b->open.of_data = ei.flags & EXTENT_FLAG_DATA;
	b->end = ei.bytenr + ei.num_bytes;
	ret = b->open.of_data ? add_extent(b, &ei, err) : add_block(b, &ei, err);
	while (!ret && !(ret = extent_item_next_ref(&ei, &ref, err))) {
		if (b->open.of_data)
			shared_add(&b->open.refs, &ref);
		else
			take_block_ref(b, &ref);
	}
	return ret < 0 ? ret : 0;
}

/* Handles a reference in its own item. References of tree blocks are not needed, because the trees are walked. */
static int take_keyed(struct usage_extents_batch *b, const struct item *item, struct btrkit_error *err)
{
	struct usage_refs *r = b->open.bytenr == item->key.objectid ? &b->open : &b->head;
	struct extent_ref ref;
	int ret = extent_keyed_ref_decode(item, &ref, err);

	if (ret || (r == &b->open && !r->of_data))
		return ret;
	/* A reference without an extent is ignored here; reporting it is the job of a check. */
	if (r == &b->head && !r->bytenr)
		r->bytenr = item->key.objectid;
	if (r->bytenr == item->key.objectid)
		shared_add(&r->refs, &ref);
	return 0;
}

int usage_extents_leaf(struct usage_extents_batch *b, const uint8_t *leaf, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < block_nritems(leaf); i++) {
		const struct item item = block_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (item.key.type == KEY_EXTENT_ITEM || item.key.type == KEY_METADATA_ITEM)
			ret = take_extent(b, &item, &what);
		else if (item.key.type == KEY_EXTENT_DATA_REF || item.key.type == KEY_SHARED_DATA_REF)
			ret = take_keyed(b, &item, &what);
		if (ret) {
			err_at_tree(&what, OID_EXTENT_TREE);
			err_at_logical(&what, le64_get(block_header(leaf)->bytenr));
			err_at_item(&what, i, &item.key);
			ret = usage_damage(b->w, ret, &what, err);
		}
	}
	return ret;
}
