// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Updates the trees that describe other trees. Each change may copy blocks, which adds and drops extents, so this is
 * repeated until nothing changes any more. It ends soon, because each block is copied only once.
 */
#include "lib/commit/settle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/commit/clock.h"
#include "lib/commit/refs.h"
#include "lib/commit/undo_witness.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/root.h"
#include "lib/space/free_space_edit.h"

/* Updates the free space tree with the extents that were added to the extent tree and removed from it. */
static int apply_free_space(struct btrkit_txn *txn, struct space_group *g, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &txn->writer->stats;
	struct free_space_stats done = { 0 };
	struct space_change *changes;
	struct edit_tree *t;
	size_t n;
	int ret;

	ret = space_take_changes(g, &changes, &n, err);
	if (ret)
		return ret;
	if (n && txn->free_space_tree && !g->removed) {
		ret = overlay_tree(txn->overlay, OID_FREE_SPACE_TREE, &t, err);
		if (!ret)
			ret = free_space_edit(t, &g->item, changes, n, &done, err);
	}
	for (size_t i = 0; !ret && i < n && !g->removed && undo_witness_wanted(txn); i++)
		if (changes[i].free)
			ret = undo_witness_keep(txn, g, &changes[i], err);
	free(changes);
	stats->free_space_ranges += done.ranges;
	stats->free_space_conversions += done.to_bitmaps + done.to_extents;
	return ret;
}

static int write_group_item(struct btrkit_txn *txn, struct space_group *g, struct btrkit_error *err)
{
	const bool own = txn->fs->super.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE;
	const struct btrkit_key key = KEY(g->item.start, KEY_BLOCK_GROUP_ITEM, g->item.length);
	const le64 used = le64_put(g->item.used);
	struct edit_tree *t;
	uint32_t size;
	uint8_t *data;
	int ret;

	ret = overlay_tree(txn->overlay, own ? OID_BLOCK_GROUP_TREE : OID_EXTENT_TREE, &t, err);
	if (!ret)
		ret = edit_bytes(t, &key, &data, &size, err);
	if (ret)
		return ret;
	memcpy(data + offsetof(struct disk_block_group, used), &used, sizeof(used));
	g->changed = false;
	return 0;
}

static int account_space(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t start = now_ns();
	struct space_group *g = NULL;
	int ret = 0;

	while (!ret && (g = space_next_touched(txn->space, g))) {
		if (g->num_changes)
			ret = apply_free_space(txn, g, err);
		if (!ret && g->changed && !g->removed)
			ret = write_group_item(txn, g, err);
	}
	txn->writer->stats.free_space_ns += now_ns() - start;
	return ret;
}

int txn_run_refs(struct btrkit_txn *txn, struct btrkit_error *err)
{
	/* An extent that is freed takes its checksums along, but only those in the tree. */
	int ret = csums_run(txn, err);

	while (!ret) {
		ret = refs_run(txn->refs, err);
		if (!ret && !refs_pending(txn->refs))
			ret = account_space(txn, err);
		if (!refs_pending(txn->refs))
			break;
	}
	return failure_note_any(txn->failure, ret, err);
}

/* Linux before 3.6 did not maintain these fields. They become valid now, so stale contents must be cleared. */
static void reset_extended(struct disk_root_item *d)
{
	const size_t at = offsetof(struct disk_root_item, generation_v2);

	if (le64_get(d->generation_v2) != le64_get(d->generation))
		memset((uint8_t *)d + at, 0, sizeof(*d) - at);
}

/* Record that a file of the subvolume has changed. */
static void touch_root(const struct btrkit_txn *txn, struct disk_root_item *d)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	d->ctransid = le64_put(txn->generation);
	d->ctime = (struct disk_time){ le64_put((uint64_t)now.tv_sec), le32_put((uint32_t)now.tv_nsec) };
}

int txn_write_root(struct btrkit_txn *txn, struct edit_tree *t, struct btrkit_error *err)
{
	const struct tree_root *root = &t->c.root;
	const struct btrkit_key key = KEY(root->id, KEY_ROOT_ITEM, root->key_offset);
	const uint64_t nodesize = txn->fs->geometry.nodesize;
	struct disk_root_item d = { .refs = { { 0 } } };
	struct edit_tree *roots;
	uint32_t size = 0;
	uint8_t *data;
	int ret;

	ret = overlay_tree(txn->overlay, OID_ROOT_TREE, &roots, err);
	if (!ret)
		ret = edit_bytes(roots, &key, &data, &size, err);
	if (!ret && size != ROOT_ITEM_SHORT && size != sizeof(d)) {
		ret = err_corrupt(err, "item_size", "root item of %" PRIu32 " bytes", size);
		err_at_tree(err, OID_ROOT_TREE);
		err_at_key(err, &key);
	}
	if (ret)
		return ret;
	memcpy(&d, data, size);
	reset_extended(&d);
	d.bytenr = le64_put(root->bytenr);
	d.level = root->level;
	d.generation = d.generation_v2 = le64_put(root->generation);
	d.bytes_used = le64_put(le64_get(d.bytes_used) + (uint64_t)t->blocks * nodesize);
	if (t->touched)
		touch_root(txn, &d);
	if (size == sizeof(d))
		memcpy(data, &d, sizeof(d));
	else
		ret = edit_replace(roots, &key, &d, sizeof(d), err);
	t->blocks = 0;
	t->changed = t->touched = false;
	return ret;
}

/* The locations of these two are in the superblock. */
static bool has_root_item(const struct edit_tree *t)
{
	return t->c.root.id != OID_ROOT_TREE && t->c.root.id != OID_CHUNK_TREE;
}

/* After a snapshot, a tree may change without getting new blocks, but its root item has the time of the change. */
static bool is_due(const struct edit_tree *t)
{
	return (t->changed || t->touched) && has_root_item(t);
}

static bool roots_changed(const struct btrkit_txn *txn)
{
	for (const struct edit_tree *t = txn->overlay->trees; t; t = t->next)
		if (is_due(t))
			return true;
	return false;
}

static int write_roots(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret = 0;

	/* This may open the root tree, which is inserted at the head of the list. */
	for (struct edit_tree *t = txn->overlay->trees; !ret && t; t = t->next)
		if (is_due(t))
			ret = txn_write_root(txn, t, err);
	return ret;
}

/* Linux requires the root tree to have the superblock's generation. */
static int copy_root_tree(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_key first;
	struct edit_tree *t;
	uint32_t size;
	uint8_t *data;
	int ret;

	ret = overlay_tree(txn->overlay, OID_ROOT_TREE, &t, err);
	if (!ret)
		ret = cursor_seek(&t->c, &KEY(0, 0, 0), err);
	if (ret)
		return ret < 0 ? ret : err_corrupt(err, NULL, "the root tree is empty");
	first = t->c.item.key;
	return edit_bytes(t, &first, &data, &size, err);
}

/*
 * If quotas are not counted again, they must be marked as inconsistent, because Linux trusts them if they have the
 * superblock's generation.
 */
static int mark_quotas(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(0, KEY_QGROUP_STATUS, 0);
	struct disk_qgroup_status *d;
	struct edit_tree *t;
	uint32_t size;
	bool wrong;
	uint8_t *data;
	int ret;

	if (!txn->quotas)
		return 0;
	ret = overlay_tree(txn->overlay, OID_QUOTA_TREE, &t, err);
	if (!ret)
		ret = edit_bytes(t, &key, &data, &size, err);
	if (ret)
		return ret;
	d = (struct disk_qgroup_status *)data;
	wrong = refs_changed_files(txn->refs) || le64_get(d->generation) != txn->fs->super.generation;
	d->generation = le64_put(txn->generation);
	/* A rescan that is resumed would not count again what it has already passed. */
	if (wrong)
		d->flags = le64_put((le64_get(d->flags) & ~QGROUP_STATUS_RESCAN) | QGROUP_STATUS_INCONSISTENT);
	return 0;
}

int commit_settle(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret = copy_root_tree(txn, err);

	if (!ret)
		ret = mark_quotas(txn, err);
	while (!ret && (refs_pending(txn->refs) || roots_changed(txn))) {
		ret = txn_run_refs(txn, err);
		if (!ret)
			ret = write_roots(txn, err);
	}
	return ret ? ret : refs_release_unused(txn->refs, err);
}
