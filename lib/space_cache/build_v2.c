// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Builds the free space tree from the extent tree of the current transaction. Its blocks are written directly to the
 * devices, where nothing refers to them until the superblock is written. Changes made by these blocks and by the rest
 * of the transaction are then applied to it like to any other tree.
 */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"
#include "lib/io/batch.h"
#include "lib/space/free_space_edit.h"
#include "lib/space_cache/convert.h"
#include "lib/volume/full_stripe.h"

#define BATCH_BYTES (4u << 20) /* total of all devices */

struct build {
	struct conversion *cv;
	struct btrkit_txn *txn;
	struct extent_ranges ranges;
	size_t num_groups;
	struct btrkit_key first; /* first key of the current block */
	uint64_t blocks;
	struct io_batch **batches; /* one per device */
	struct full_stripe_writer *full_stripes; /* for chunks with parity */
	size_t num_devices;
};

static int first_key(void *ctx, unsigned level, uint64_t index, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct build *b = ctx;

	(void)level, (void)index;
	b->first = *key;
	return progress_tell(&b->cv->progress, PROGRESS_BUILD, b->ranges.next, b->num_groups, err);
}

static int place(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	struct build *b = ctx;
	(void)index;
	b->blocks++;
	return overlay_alloc_block(b->txn->overlay, OID_FREE_SPACE_TREE, level, &b->first, bytenr, err);
}

/* Adds the location on device @i to an error. @return @ret */
static int blame(const struct build *b, size_t i, int ret, struct btrkit_error *err)
{
	/* Includes ENOSPC of an image file. */
	if (ret && ret != -ENOMEM)
		err_at_device(err, volume_device(b->cv->fs->volume, i).devid, io_batch_place(b->batches[i]));
	return ret;
}

static int write_copy(struct build *b, const struct copy *copy, const void *block, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &b->txn->writer->stats;
	size_t i = 0;

	while (volume_device(b->cv->fs->volume, i).io != copy->io)
		i++;
	stats->bytes_written += copy->length;
	stats->writes++;
	return blame(b, i, io_batch_write(b->batches[i], copy->physical, block, copy->length, err), err);
}

static int write_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	struct build *b = ctx;
	const struct btrkit_fs *fs = b->cv->fs;
	const uint32_t size = fs->geometry.nodesize;
	int ret = 0;

	if (full_stripe_wanted(fs->volume, bytenr))
		return full_stripe_put(b->full_stripes, bytenr, block, size, err);
	for (unsigned mirror = 0; !ret; mirror++) {
		struct copy copy = { .length = 0 };

		/* In striped profiles, a block may be split. */
		for (uint32_t done = 0; !ret && done < size; done += (uint32_t)copy.length) {
			ret = volume_map(fs->volume, bytenr + done, size - done, mirror, &copy, err);
			if (!ret && copy.io)
				ret = write_copy(b, &copy, (const uint8_t *)block + done, err);
		}
	}
	return ret < 0 ? ret : 0;
}

/*
 * Each block is written before the next one is allocated, and in order of addresses, so each full stripe is written
 * once. Closing full stripes keeps the transaction's other blocks out of them.
 */
static int create_writers(struct build *b, struct btrkit_error *err)
{
	int ret = full_stripe_create(b->cv->fs->volume, false, &b->full_stripes, err);

	if (!ret)
		ret = space_close_full_stripes(b->txn->space, err);
	if (ret)
		return ret;
	b->num_devices = volume_num_devices(b->cv->fs->volume);
	b->batches = calloc(b->num_devices, sizeof(*b->batches));
	if (!b->batches)
		return err_nomem(err);
	for (size_t i = 0; !ret && i < b->num_devices; i++) {
		struct btrkit_io *io = volume_device(b->cv->fs->volume, i).io;

		if (io)
			ret = io_batch_create(io, BATCH_BYTES / b->num_devices, &b->batches[i], err);
	}
	return ret;
}

static int finish_writers(struct build *b, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &b->txn->writer->stats;
	int ret = full_stripe_finish(b->full_stripes, err);

	stats->writes += full_stripe_written(b->full_stripes).writes;
	stats->bytes_written += full_stripe_written(b->full_stripes).bytes;
	for (size_t i = 0; !ret && i < b->num_devices; i++)
		if (b->batches[i])
			ret = blame(b, i, io_batch_drain(b->batches[i], err), err);
	return ret ? ret : space_close_full_stripes(b->txn->space, err);
}

static void destroy_writers(struct build *b)
{
	full_stripe_destroy(b->full_stripes);
	for (size_t i = 0; b->batches && i < b->num_devices; i++)
		io_batch_destroy(b->batches[i]);
	free(b->batches);
}

static int build_tree(struct build *b, struct tree_root *root, struct btrkit_error *err)
{
	struct btrkit_fs *fs = b->cv->fs;
	uint8_t uuid[16] = { 0 };
	const struct bulk_config config = { .rules = &fs->rules,
					    .items = &fs->items,
					    .chunk_tree_uuid = uuid,
					    .owner = OID_FREE_SPACE_TREE,
					    .generation = b->txn->generation,
					    .place = place,
					    .write = write_block,
					    .first_key = first_key,
					    .ctx = b };
	struct free_space_built built;
	struct bulk *bulk;
	int ret;

	ret = fs_chunk_tree_uuid(fs, uuid, err);
	if (!ret)
		ret = bulk_create(&config, &bulk, err);
	if (ret)
		return ret;
	ret = free_space_build(&b->ranges, fs->geometry.sectorsize, bulk, &built, err);
	if (!ret)
		ret = bulk_finish(bulk, root, err);
	bulk_destroy(bulk);
	if (ret)
		return ret;
	convert_take_built(b->cv, &built);
	b->cv->sum.v2_blocks = b->blocks;
	return 0;
}

/* Inserts the item that Linux creates. The commit sets the size of the tree. */
static int add_root_item(struct build *b, const struct tree_root *root, struct btrkit_error *err)
{
	const struct disk_root_item d = { .generation = le64_put(b->txn->generation),
					  .generation_v2 = le64_put(b->txn->generation),
					  .bytenr = le64_put(root->bytenr),
					  .refs = le32_put(1),
					  .level = root->level };
	struct edit_tree *t;
	int ret = txn_tree(b->txn, OID_ROOT_TREE, &t, err);

	return ret ? ret : edit_insert(t, &KEY(OID_FREE_SPACE_TREE, KEY_ROOT_ITEM, 0), &d, sizeof(d), err);
}

static int build(struct build *b, const struct block_groups *groups, struct btrkit_error *err)
{
	struct tree_root root;
	struct edit_tree *t;
	int ret;

	b->num_groups = groups->n;
	ret = create_writers(b, err);
	if (!ret)
		ret = extent_ranges_begin(&b->ranges, b->cv->fs, groups, err);
	if (!ret)
		ret = build_tree(b, &root, err);
	extent_ranges_release(&b->ranges);
	if (!ret)
		ret = finish_writers(b, err);
	if (!ret)
		ret = overlay_adopt_tree(b->txn->overlay, &root, b->blocks, &t, err);
	return ret ? ret : add_root_item(b, &root, err);
}

int convert_build_v2(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct build b = { .cv = cv, .txn = txn };
	struct disk_super *super = &txn->super;
	struct block_groups groups = { 0 };
	int ret;

	ret = block_groups_load(cv->fs, &groups, err);
	if (!ret)
		ret = build(&b, &groups, err);
	destroy_writers(&b);
	block_groups_release(&groups);
	if (ret)
		return ret;
	txn->free_space_tree = true;
	super->compat_ro_flags = le64_put(le64_get(super->compat_ro_flags) | COMPAT_RO_FREE_SPACE_TREE |
					  COMPAT_RO_FREE_SPACE_TREE_VALID);
	return 0;
}
