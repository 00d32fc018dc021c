// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs the transactions of a conversion. */
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/extent.h"
#include "lib/reserve/reserve.h"
#include "lib/space_cache/convert.h"

static int refuse(const struct conversion *cv, struct btrkit_error *err)
{
	return err_set(err, BTRKIT_NO_SPACE,
		       "up to %" PRIu64 " bytes are needed for tree blocks, available are %" PRIu64,
		       cv->sum.needed_bytes, cv->sum.available_bytes);
}

static int begin(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err)
{
	int ret = btrkit_txn_start(cv->fs, txn, err);

	if (ret)
		*txn = NULL;
	return ret;
}

/*
 * Allocates a chunk if space is short. txn_reserve() asks for more than necessary, because it knows less about the
 * changes.
 */
static int reserve(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	const uint32_t nodesize = cv->fs->geometry.nodesize;
	uint64_t pieces;
	int ret;

	ret = space_count(txn->space, BG_METADATA, nodesize, cv->blocks, &pieces, err);
	if (ret || pieces >= cv->blocks)
		return ret;
	ret = txn_reserve(txn, cv->blocks, &own);
	if (ret != -ENOSPC || failure_is_set(txn->failure))
		return err_pass(err, &own, ret);
	ret = space_count(txn->space, BG_METADATA, nodesize, cv->blocks, &pieces, err);
	return ret || pieces >= cv->blocks ? ret : refuse(cv, err);
}

static int commit(struct btrkit_txn **txn, struct btrkit_error *err)
{
	int ret = btrkit_txn_commit(*txn, NULL, err);

	*txn = NULL;
	return ret;
}

int convert_next_txn(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err)
{
	int ret = commit(txn, err);

	if (!ret)
		ret = begin(cv, txn, err);
	return ret ? ret : reserve(cv, *txn, err);
}

/* Whether the current item of the extent tree is for a block of the free space tree. @return 0; 1: no; <0 */
static int find_tree_ref(const struct cursor *c, struct extent_change *ret, struct btrkit_error *err)
{
	struct extent_item ei;
	int r;

	if (c->item.key.type != KEY_EXTENT_ITEM && c->item.key.type != KEY_METADATA_ITEM)
		return 1;
	r = extent_item_decode(&c->fs->items, &c->item, &ei, err);
	if (r)
		return r;
	if (!(ei.flags & EXTENT_FLAG_TREE_BLOCK))
		return 1;
	*ret = (struct extent_change){ .bytenr = ei.bytenr, .num_bytes = ei.num_bytes, .level = ei.level, .add = -1 };
	while (!(r = extent_item_next_ref(&ei, &ret->ref, err)))
		if (ret->ref.type == KEY_TREE_BLOCK_REF && ret->ref.root == OID_FREE_SPACE_TREE)
			return 0;
	return r;
}

/*
 * Drops the blocks of the free space tree. They are found in the extent tree, which has been validated, because the
 * free space tree may be damaged. No other tree shares them.
 */
static int drop_blocks(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct extent_change drop;
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = overlay_committed_root(txn->overlay, OID_EXTENT_TREE, &root, err);
	if (ret)
		return ret;
	cv->sum.v2_removed_blocks = 0;
	cursor_init(&c, cv->fs, &root);
	c.scan = true;
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		ret = cursor_blame(&c, find_tree_ref(&c, &drop, err), err);
		if (!ret) {
			ret = overlay_change_ref(txn->overlay, &drop, err);
			cv->sum.v2_removed_blocks++;
		}
		if (ret < 0)
			break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int drop_v2(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct edit_tree *roots;
	struct tree_root root;
	int ret;

	ret = fs_find_root(cv->fs, OID_FREE_SPACE_TREE, &root, NULL, err);
	if (!ret)
		ret = drop_blocks(cv, txn, err);
	if (!ret)
		ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);
	return ret ? ret : edit_delete(roots, &KEY(OID_FREE_SPACE_TREE, KEY_ROOT_ITEM, root.key_offset), err);
}

/*
 * Removes everything except a tree that is replaced. From the first commit on, the superblock has the final state of
 * the v1 cache, and does not mark a free space tree as valid.
 */
static int remove_all(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err)
{
	struct disk_super *super = &(*txn)->super;
	uint64_t compat_ro = cv->compat_ro;
	int ret;

	if (cv->build_v2)
		compat_ro = le64_get(super->compat_ro_flags) & ~COMPAT_RO_FREE_SPACE_TREE_VALID;
	super->compat_ro_flags = le64_put(compat_ro);
	super->cache_generation = le64_put(cv->cache_generation);
	if (!(compat_ro & COMPAT_RO_FREE_SPACE_TREE_VALID))
		(*txn)->free_space_tree = false;
	/* After updating the superblock, on which the allocation of a chunk depends. */
	ret = reserve(cv, *txn, err);
	if (!ret && cv->drop_v2 && !cv->build_v2)
		ret = drop_v2(cv, *txn, err);
	return ret || !cv->clear_v1 ? ret : convert_clear_v1(cv, txn, err);
}

struct verifying {
	struct conversion *cv;
	struct btrkit_error *err;
	uint64_t groups;
};

static int verify_group(void *ctx, const struct btrkit_space_group *group)
{
	struct verifying *v = ctx;

	if (group->v2.verdict != BTRKIT_SPACE_EQUAL)
		return err_corrupt(v->err, NULL,
				   "the new free space tree contradicts the extent tree in block group %" PRIu64,
				   group->logical);
	return progress_tell(&v->cv->progress, PROGRESS_VERIFY, v->groups++, v->cv->sum.v2_groups, v->err);
}

/* Reads the new tree back from the devices before the new superblock is written. */
static int verify(void *ctx, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct verifying v = { .cv = ctx, .err = err };
	const struct btrkit_space_sink sink = { .group = verify_group, .ctx = &v };
	struct btrkit_space_summary sum;

	return btrkit_space_status(txn->fs, &sink, &sum, err);
}

static int build_v2(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err)
{
	int ret = 0;

	if (cv->clear_v1)
		ret = convert_next_txn(cv, txn, err);
	if (!ret && cv->drop_v2)
		ret = drop_v2(cv, *txn, err);
	if (!ret)
		ret = txn_run_refs(*txn, err);
	if (!ret)
		ret = convert_build_v2(cv, *txn, err);
	if (ret)
		return ret;
	(*txn)->verify = verify;
	(*txn)->verify_ctx = cv;
	return 0;
}

static int run(struct conversion *cv, struct btrkit_error *err)
{
	struct btrkit_txn *txn;
	int ret;

	ret = begin(cv, &txn, err);
	if (!ret)
		ret = remove_all(cv, &txn, err);
	if (!ret && cv->build_v2)
		ret = build_v2(cv, &txn, err);
	if (!ret)
		ret = commit(&txn, err);
	btrkit_txn_abort(txn);
	return ret;
}

int convert_run(struct conversion *cv, struct btrkit_error *err)
{
	struct super *super = &cv->fs->super;
	const uint64_t compat_ro = super->compat_ro, cache_generation = super->cache_generation;
	struct btrkit_write_stats before, after;
	int ret;

	if (cv->sum.available_bytes < cv->sum.needed_bytes)
		return refuse(cv, err);
	/*
	 * Make the writer use the extent tree, which has been validated, instead of caches that are wrong or were not
	 * checked.
	 */
	if (cv->distrusted)
		super->compat_ro &= ~COMPAT_RO_FREE_SPACE_TREE_VALID;
	super->cache_generation = 0;
	btrkit_fs_get_write_stats(cv->fs, &before);
	ret = run(cv, err);
	btrkit_fs_get_write_stats(cv->fs, &after);
	cv->sum.commits = after.commits - before.commits;
	cv->sum.bytes_written = after.bytes_written - before.bytes_written;
	if (!cv->sum.commits) {
		super->compat_ro = compat_ro;
		super->cache_generation = cache_generation;
	}
	return ret;
}
