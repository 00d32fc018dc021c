// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_defects.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/commit/refs.h"
#include "lib/commit/refs_head.h"
#include "lib/commit/supers.h"
#include "lib/commit/sync_supers.h"
#include "lib/commit/txn.h"
#include "lib/commit/write.h"
#include "lib/space/free_space_edit.h"
#include "lib/volume/parity.h"
#include "planted.h"
#include "txn_doctor.h"

enum {
	NO_FIRST_FLUSH,
	NO_SECOND_FLUSH,
	NO_LAST_FLUSH,
	SUPER_BEFORE_BLOCKS,
	MIRROR_BEFORE_PRIMARY,
	REF_TOO_MANY,
	REF_TOO_FEW,
	REF_NOT_DROPPED,
	DATA_REF_ELSEWHERE,
	NO_FULL_BACKREF,
	NO_SHARED_REFS,
	NO_SHARED_DATA_REFS,
	IN_PLACE,
	PINNED_REUSED,
	NO_FREE_SPACE,
	SOME_FREE_SPACE,
	NO_GROUP_COUNTER,
	NO_SUPER_COUNTER,
	NO_ROOT_ITEM,
	OLD_GENERATION,
	NO_CSUM_TRIM,
	NO_DEV_EXTENT,
	NO_DEVICE_COUNTER,
	NO_GROUP_ITEM,
	NO_CHUNK_ITEM,
	NO_NEW_FREE_SPACE,
	FREE_SPACE_LEFT,
	RANGE_LEFT_OUT,
	NOT_LEVEL,
	NO_PARITY,
	WRONG_P,
	WRONG_Q,
	ROWS_IN_PART,
	NUM_REPLACED,
};

#define EDITS "edits"
#define SHARED "edits, shared"
#define NODES "edits, shared nodes"
#define DATA "data"
#define DATA_SHARED "data, shared"
#define CHUNK "a chunk of data"

const struct defect defects[] = {
	[NO_FIRST_FLUSH] = { "no flush between blocks and superblock", EDITS },
	[NO_SECOND_FLUSH] = { "no flush between primary superblock and mirrors", EDITS },
	[NO_LAST_FLUSH] = { "no flush after the mirrors", SHARED },
	[SUPER_BEFORE_BLOCKS] = { "the superblock is written before the blocks", EDITS },
	[MIRROR_BEFORE_PRIMARY] = { "mirrors are written before the primary superblock", EDITS },
	[REF_TOO_MANY] = { "a reference too many", SHARED },
	[REF_TOO_FEW] = { "a reference too few", SHARED },
	[REF_NOT_DROPPED] = { "a reference is not dropped", EDITS },
	[DATA_REF_ELSEWHERE] = { "a reference to data with another offset", DATA },
	[NO_FULL_BACKREF] = { "the flag of full back references is forgotten", NODES },
	[NO_SHARED_REFS] = { "the references of a shared block's children are not made", NODES },
	[NO_SHARED_DATA_REFS] = { "the references of a shared leaf's extents are not made", SHARED },
	[IN_PLACE] = { "a block is written in its old place", EDITS },
	[PINNED_REUSED] = { "freed space is used again in the same transaction", EDITS },
	[NO_FREE_SPACE] = { "the free space tree is not kept up", EDITS },
	[SOME_FREE_SPACE] = { "the free space tree lacks a change", DATA },
	[NO_GROUP_COUNTER] = { "the counter of a block group is not kept up", EDITS },
	[NO_SUPER_COUNTER] = { "the superblock's counter is wrong", EDITS },
	[NO_ROOT_ITEM] = { "a root item is not kept up", EDITS },
	[OLD_GENERATION] = { "blocks with the old generation", EDITS },
	[NO_CSUM_TRIM] = { "checksums of freed data stay", DATA },
	[NO_DEV_EXTENT] = { "a device extent is missing", CHUNK },
	[NO_DEVICE_COUNTER] = { "the counter of a device is not kept up", CHUNK },
	[NO_GROUP_ITEM] = { "the item of a block group is missing", CHUNK },
	[NO_CHUNK_ITEM] = { "the item of a chunk is missing", CHUNK },
	[NO_NEW_FREE_SPACE] = { "a new block group has no free space", CHUNK },
	[FREE_SPACE_LEFT] = { "the free space of a removed block group stays", CHUNK },
	[RANGE_LEFT_OUT] = { "a new free space tree lacks a range", "none to v2" },
	[NOT_LEVEL] = { "superblocks that a crash left behind stay", "raid1, edits after a crash" },
	[NO_PARITY] = { "parity is not made", "raid5, edits" },
	[WRONG_P] = { "P of a row is wrong", "raid6, edits" },
	[WRONG_Q] = { "Q of a row is wrong", "raid6, edits" },
	[ROWS_IN_PART] = { "rows that hold something are written to", "raid6, data" },
	/* Defects of the write log. */
	{ "the superblock reaches the device first", EDITS, .doctor = doctor_super_first },
	{ "a mirror is written with the blocks", EDITS, .doctor = doctor_mirror_early },
	{ "a mirror is never written", EDITS, .doctor = doctor_no_mirror },
	{ "a block is not written", EDITS, .doctor = doctor_block_missing },
	{ "the second copy of a block is not written", EDITS, .doctor = doctor_copy_missing },
	{ "a freed block is discarded too early", EDITS, .doctor = doctor_discard_early },
	{ "a freed block is overwritten too early", EDITS, .doctor = doctor_overwrite_early },
	{ "a block has no checksum", EDITS, .spoil = doctor_no_checksum },
	{ "the superblock speaks first of a new tree", "v1 to v2", .doctor = doctor_super_first },
	{ "a wrong backup root", EDITS, .spoil = doctor_wrong_backup },
	{ "the superblock's copy of the system chunks is stale", "a chunk of the system", .spoil = doctor_stale_array },
	{ "one device is not flushed", "raid1, edits", .doctor = doctor_no_flush_of_one },
	{ "one device is not flushed", "raid10, data", .doctor = doctor_no_flush_of_one },
	{ "a superblock before the flush of another device", "raid1, edits", .doctor = doctor_super_before_flush },
	{ "a superblock before the flush of another device", "raid10, data", .doctor = doctor_super_before_flush },
	{ "the superblock of one device first", "raid1, data", .doctor = doctor_super_of_one_first },
	{ "the superblock of one device first", "raid10, edits", .doctor = doctor_super_of_one_first },
	{ "a copy is not written to the second device", "raid1, edits", .spoil = doctor_copy_of_last_missing },
	{ "a copy is not written to the last device", "raid10, edits", .spoil = doctor_copy_of_last_missing },
	{ "one device is not flushed", "raid6, edits", .doctor = doctor_no_flush_of_one },
	{ "a superblock before the flush of another device", "raid6, data", .doctor = doctor_super_before_flush },
	{ "the superblock of one device first", "raid6, edits", .doctor = doctor_super_of_one_first },
	{ "a strip is not written to the last device", "raid6, edits", .spoil = doctor_copy_of_last_missing },
	{ "a strip is not written to the last device", "raid5, data", .spoil = doctor_copy_of_last_missing },
	{ "a device has no new superblock", "raid1, data", .spoil = doctor_no_super_of_one },
	{ "copies on each other's devices", "raid10, edits", .spoil = doctor_copies_exchanged },
	{ "a superblock with a stale item of its device", "raid1c3, edits", .spoil = doctor_wrong_device_item },
	{ "a stale cache v1 is said to be valid", "data, a cache v1", .spoil = doctor_cache_generation },
};
const unsigned num_defects = sizeof(defects) / sizeof(defects[0]);
const int planted_reuse = PINNED_REUSED;

static unsigned flushes; /* in this commit */
static uint64_t in_place;
static struct btrkit_txn *deferred;
static bool leave_out;

void defects_plant(int number)
{
	planted_begin(number);
}

void defects_commit(void)
{
	planted_commit();
	flushes = 0;
}

bool defects_planted(void)
{
	return planted_seen() || planted_now >= NUM_REPLACED;
}

WRAPPED(int, btrkit_io_flush, struct btrkit_io *io, struct btrkit_error *err)
{
	static const int which[] = { NO_FIRST_FLUSH, NO_SECOND_FLUSH, NO_LAST_FLUSH };

	if (flushes < 3 && planted_wrong(which[flushes++], 0))
		return 0;
	return __real_btrkit_io_flush(io, err);
}

WRAPPED(int, commit_write_blocks, struct btrkit_txn *txn, struct btrkit_error *err)
{
	if (!planted_wrong(SUPER_BEFORE_BLOCKS, 0))
		return __real_commit_write_blocks(txn, err);
	deferred = txn;
	return 0;
}

WRAPPED(int, commit_supers_write, struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
	struct btrkit_error *err)
{
	int ret = 0;

	if (!mirror && planted_wrong(MIRROR_BEFORE_PRIMARY, 0))
		ret = __real_commit_supers_write(txn, s, 1, err);
	if (!ret)
		ret = __real_commit_supers_write(txn, s, mirror, err);
	if (!ret && deferred == txn) {
		deferred = NULL;
		ret = __real_commit_write_blocks(txn, err);
	}
	return ret;
}

WRAPPED(int, refs_change, struct refs *r, const struct extent_change *change, struct btrkit_error *err)
{
	struct extent_change other = *change;

	if (change->add > 0 && change->ref.type == KEY_TREE_BLOCK_REF && planted_wrong(REF_TOO_FEW, 4))
		return 0;
	if (change->add > 0 && change->data && planted_wrong(REF_TOO_MANY, 2))
		other.add++;
	if (change->add < 0 && planted_wrong(REF_NOT_DROPPED, 3))
		return 0;
	if (change->add > 0 && change->ref.type == KEY_SHARED_BLOCK_REF && planted_wrong(NO_SHARED_REFS, 0))
		return 0;
	if (change->add > 0 && change->ref.type == KEY_SHARED_DATA_REF && planted_wrong(NO_SHARED_DATA_REFS, 0))
		return 0;
	if (change->add > 0 && change->ref.type == KEY_EXTENT_DATA_REF && planted_wrong(DATA_REF_ELSEWHERE, 2))
		other.ref.offset += 4096;
	return __real_refs_change(r, &other, err);
}

WRAPPED(int, refs_set_full_backref, struct refs *r, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	return planted_wrong(NO_FULL_BACKREF, 0) ? 0 : __real_refs_set_full_backref(r, bytenr, level, err);
}

/* Returns a private node at the address of the committed one, as if no copy had been made. */
static struct node *copy_in_place(struct overlay *o, const struct node *from)
{
	struct node *n = calloc(1, sizeof(*n) + from->size);

	if (!n)
		exit(99);
	n->data = (uint8_t *)(n + 1);
	memcpy(n->data, from->data, from->size);
	n->bytenr = in_place = from->bytenr;
	n->owner = from->owner;
	n->flags = from->flags;
	n->nritems = from->nritems;
	n->size = from->size;
	n->level = from->level;
	n->generation = o->generation;
	((struct disk_header *)n->data)->generation = le64_put(o->generation);
	n->private = true;
	HASH_ADD(hh, o->nodes, bytenr, sizeof(n->bytenr), n);
	o->num_nodes++;
	return n;
}

WRAPPED(int, overlay_copy_node, struct edit_tree *t, const struct node *from, struct node **ret,
	struct btrkit_error *err)
{
	int r;

	if (planted_wrong(IN_PLACE, 2)) {
		*ret = copy_in_place(t->overlay, from);
		return 0;
	}
	r = __real_overlay_copy_node(t, from, ret, err);
	if (!r && planted_wrong(OLD_GENERATION, 2)) {
		(*ret)->generation--;
		((struct disk_header *)(*ret)->data)->generation = le64_put((*ret)->generation);
	}
	return r;
}

WRAPPED(int, overlay_free_node, struct edit_tree *t, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	if (in_place && bytenr == in_place) {
		in_place = 0;
		return 0;
	}
	return __real_overlay_free_node(t, bytenr, level, err);
}

WRAPPED(uint64_t, space_bytes_used, const struct space *s)
{
	return __real_space_bytes_used(s) + (planted_wrong(NO_SUPER_COUNTER, 0) ? 4096 : 0);
}

WRAPPED(int, free_space_edit, struct edit_tree *t, const struct block_group *group, const struct space_change *changes,
	size_t n, struct free_space_stats *stats, struct btrkit_error *err)
{
	if (planted_wrong(NO_FREE_SPACE, 2))
		return 0;
	if (n > 1 && planted_wrong(SOME_FREE_SPACE, 1))
		n--;
	return __real_free_space_edit(t, group, changes, n, stats, err);
}

WRAPPED(int, free_space_add_group, struct edit_tree *t, const struct block_group *group, struct btrkit_error *err)
{
	return planted_wrong(NO_NEW_FREE_SPACE, 0) ? 0 : __real_free_space_add_group(t, group, err);
}

WRAPPED(int, free_space_remove_group, struct edit_tree *t, const struct block_group *group, struct btrkit_error *err)
{
	return planted_wrong(FREE_SPACE_LEFT, 0) ? 0 : __real_free_space_remove_group(t, group, err);
}

/* Leaves out a range only at the second call: the first one counts, the second one builds. */
WRAPPED(int, free_space_build, struct extent_ranges *ranges, uint32_t sectorsize, struct bulk *b,
	struct free_space_built *ret, struct btrkit_error *err)
{
	leave_out = planted_wrong(RANGE_LEFT_OUT, 2);
	return __real_free_space_build(ranges, sectorsize, b, ret, err);
}

WRAPPED(int, extent_ranges_next, struct extent_ranges *r, struct range *free, struct btrkit_error *err)
{
	int ret = __real_extent_ranges_next(r, free, err);

	if (ret || !leave_out)
		return ret;
	leave_out = false;
	return __real_extent_ranges_next(r, free, err);
}

WRAPPED(int, commit_sync_supers, struct btrkit_fs *fs, struct btrkit_error *err)
{
	return planted_wrong(NOT_LEVEL, 0) ? 0 : __real_commit_sync_supers(fs, err);
}

WRAPPED(int, parity_generate, unsigned n, size_t len, uint8_t *const *data, uint8_t *p, uint8_t *q,
	struct btrkit_error *err)
{
	int ret = planted_wrong(NO_PARITY, 0) ? 0 : __real_parity_generate(n, len, data, p, q, err);

	if (planted_wrong(WRONG_P, 3))
		p[0] ^= 1;
	if (q && planted_wrong(WRONG_Q, 3))
		q[1] ^= 1;
	return ret;
}

WRAPPED(int, space_sort_full_stripes, struct space *s, struct space_group *g, struct btrkit_error *err)
{
	return planted_wrong(ROWS_IN_PART, 0) ? 0 : __real_space_sort_full_stripes(s, g, err);
}

WRAPPED(int, csums_trim, struct btrkit_txn *txn, const struct range *dead, struct btrkit_error *err)
{
	return planted_wrong(NO_CSUM_TRIM, 0) ? 0 : __real_csums_trim(txn, dead, err);
}

/* Returns a buffer outside of the leaf, so that the change is lost. */
WRAPPED(int, edit_bytes, struct edit_tree *t, const struct btrkit_key *key, uint8_t **data, uint32_t *size,
	struct btrkit_error *err)
{
	static uint8_t elsewhere[4096];
	int ret = __real_edit_bytes(t, key, data, size, err);

	if (ret)
		return ret;
	if ((key->type == KEY_BLOCK_GROUP_ITEM && planted_wrong(NO_GROUP_COUNTER, 0)) ||
	    (key->type == KEY_ROOT_ITEM && key->objectid == OID_FS_TREE && planted_wrong(NO_ROOT_ITEM, 0)) ||
	    (key->type == KEY_DEV_ITEM && planted_wrong(NO_DEVICE_COUNTER, 0))) {
		memcpy(elsewhere, *data, *size);
		*data = elsewhere;
	}
	return 0;
}

WRAPPED(int, edit_insert, struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
	struct btrkit_error *err)
{
	if ((key->type == KEY_DEV_EXTENT && planted_wrong(NO_DEV_EXTENT, 0)) ||
	    (key->type == KEY_BLOCK_GROUP_ITEM && planted_wrong(NO_GROUP_ITEM, 0)) ||
	    (key->type == KEY_CHUNK_ITEM && planted_wrong(NO_CHUNK_ITEM, 0)))
		return 0;
	return __real_edit_insert(t, key, data, size, err);
}
