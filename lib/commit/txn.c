// SPDX-License-Identifier: LGPL-2.1-or-later
/* The state of a transaction between two commits, and what its overlay asks for. */
#include "lib/commit/txn.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/commit/conversion.h"
#include "lib/commit/data.h"
#include "lib/commit/refs.h"
#include "lib/format/feature_bits.h"
#include "lib/space/free_space_tree.h"

/*
 * Without a free space tree, only the extent tree says what is free. If one of its items is missing, existing data
 * would be overwritten. The checksums are the only other evidence of that data.
 */
static int check_place(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	int ret;

	if (free_space_tree_is_valid(txn->fs->super.compat_ro))
		return 0;
	ret = csums_exist(txn, r, err);
	if (ret != 1)
		return ret;
	err_corrupt(err, NULL, "free space at %" PRIu64 " has checksums: its extent item may be missing", r->start);
	err_at_tree(err, OID_CSUM_TREE);
	err_at_logical(err, r->start);
	return -EUCLEAN;
}

/* Callbacks of the overlay. */

static int alloc_block(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		       struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;
	const uint32_t nodesize = txn->fs->geometry.nodesize;
	struct extent_change add = {
		.num_bytes = nodesize,
		.level = (uint8_t)level,
		.ref = { .type = KEY_TREE_BLOCK_REF, .root = owner },
		.add = 1,
	};
	struct range r;
	int ret;

	ret = space_alloc(txn->space, owner == OID_CHUNK_TREE ? BG_SYSTEM : BG_METADATA, nodesize, nodesize, nodesize,
			  &r, err);
	/* In mixed block groups, a tree block could overwrite data, too. */
	if (!ret && txn->fs->super.incompat & INCOMPAT_MIXED_GROUPS)
		ret = check_place(txn, &r, err);
	if (!ret)
		ret = refs_new_extent(txn->refs, &r, false, level, first, err);
	add.bytenr = r.start;
	if (!ret)
		ret = refs_change(txn->refs, &add, err);
	if (!ret)
		*bytenr = r.start;
	return ret;
}

static int lookup_block(void *ctx, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
			struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_lookup(txn->refs, bytenr, level, refs, flags, err);
}

static int change_ref(void *ctx, const struct extent_change *change, struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_change(txn->refs, change, err);
}

static int set_full_backref(void *ctx, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	struct btrkit_txn *txn = ctx;

	return refs_set_full_backref(txn->refs, bytenr, level, err);
}

static const struct overlay_ops overlay_ops = {
	.alloc = alloc_block,
	.lookup = lookup_block,
	.change = change_ref,
	.set_full_backref = set_full_backref,
};

int txn_begin(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	int ret;

	/* Items may have the superblock's generation plus one, which must still exist after the commit. */
	if (fs->super.generation >= UINT64_MAX - 1)
		return err_corrupt(err, "generation", "superblock has the highest possible generation");
	txn->super = fs->super.disk;
	txn->generation = fs->super.generation + 1;
	txn->free_space_tree = free_space_tree_is_valid(fs->super.compat_ro);
	ret = refs_create(txn, &txn->refs, err);
	if (!ret)
		ret = overlay_create(fs, txn->generation, &overlay_ops, txn, txn->failure, &txn->overlay, err);
	if (!ret)
		ret = space_begin(txn->space, txn->overlay, err);
	if (ret) {
		txn->overlay = overlay_abort(txn->overlay);
		txn->refs = refs_destroy(txn->refs);
	}
	return ret;
}

void txn_drop(struct btrkit_txn *txn)
{
	if (txn->overlay) {
		txn->overlay = overlay_abort(txn->overlay);
		space_aborted(txn->space);
	}
	conversion_end(txn, false);
	txn_data_free(txn);
	csums_free(&txn->csums);
	txn->refs = refs_destroy(txn->refs);
}

int txn_tree(struct btrkit_txn *txn, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	return overlay_tree(txn->overlay, id, ret, err);
}

int txn_change_data_ref(struct btrkit_txn *txn, const struct extent_change *change, struct btrkit_error *err)
{
	return failure_note_any(txn->failure, refs_change(txn->refs, change, err), err);
}

/*
 * Space for data was allocated. If it turns out to be in use, only this operation fails: the space is not allocated
 * again before the commit. Any other failure is that of the transaction.
 */
static int new_data(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	int ret = check_place(txn, r, err);

	if (ret && !space_unalloc(txn->space, r, NULL))
		return ret;
	if (!ret)
		ret = refs_new_extent(txn->refs, r, true, 0, NULL, err);
	return failure_note_any(txn->failure, ret, err);
}

int txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	struct range r;
	int res;

	res = space_alloc(txn->space, BG_DATA, min, max, txn->fs->geometry.sectorsize, &r, err);
	if (!res)
		res = new_data(txn, &r, err);
	if (!res)
		*ret = r;
	return res;
}

int txn_alloc_data_exact(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	const struct space_group *g = space_group_of(txn->space, r->start);
	int ret;

	if (g && !(g->item.flags & BG_DATA)) {
		ret = err_corrupt(err, NULL, "range of %" PRIu64 " bytes for data is in a block group for metadata",
				  r->length);
		err_at_logical(err, r->start);
		return ret;
	}
	ret = space_alloc_exact(txn->space, r, err);
	return ret ? ret : new_data(txn, r, err);
}

uint64_t txn_bytes(const struct btrkit_txn *txn)
{
	return overlay_in_memory(txn->overlay) * (sizeof(struct node) + txn->fs->geometry.nodesize) + txn->data_bytes;
}
