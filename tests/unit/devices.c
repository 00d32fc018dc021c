// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devices join and leave an open filesystem, and change their size. After each commit everything must be consistent on
 * exactly the devices that belong to it; after an abort it is as it was.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/commit/settle.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_stats.h"
#include "lib/reserve/devices.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "lib/space/space_device.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"
#include "tests/unit/memory.h"

#define MIB (1ull << 20)
#define DEVICES_MAX 4u
#define TOP 5u
#define TOP_DIR 256u

struct rig {
	struct sparse *at[DEVICES_MAX];
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
};

static struct btrkit_error err;

static void check(int ret)
{
	char line[512];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

static const uint8_t *uuid_of(unsigned device)
{
	static uint8_t uuids[DEVICES_MAX][16];

	memset(uuids[device], 0x40 + (int)device, 16);
	return uuids[device];
}

/* Opens the devices in the bit mask, the last one first if @last. */
static struct btrkit_fs *open_devices(struct rig *r, unsigned mask, bool last, unsigned flags)
{
	struct btrkit_open_options o = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io[DEVICES_MAX];
	struct btrkit_fs *fs = NULL;
	size_t n = 0;

	o.flags = flags;
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		const unsigned k = last ? DEVICES_MAX - 1 - i : i;

		if (mask >> k & 1)
			io[n++] = sparse_io(r->at[k]);
	}
	check(btrkit_fs_open(io, n, &o, &fs, &err));
	return fs;
}

static void start(struct rig *r)
{
	check(btrkit_txn_start(r->fs, &r->txn, &err));
}

static void create(struct rig *r, unsigned n, uint32_t nodesize)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_io *io[DEVICES_MAX];

	o.metadata = o.data = BTRKIT_PROFILE_SINGLE;
	o.nodesize = nodesize;
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		r->at[i] = sparse_create((300 + 10 * i) * MIB, NULL);
		io[i] = sparse_io(r->at[i]);
	}
	check(btrkit_mkfs(io, n, &o, NULL, &err));
	r->fs = open_devices(r, (1u << n) - 1, false, BTRKIT_OPEN_WRITE);
	start(r);
}

static void destroy(struct rig *r)
{
	btrkit_txn_abort(r->txn);
	btrkit_fs_close(r->fs);
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		sparse_free(r->at[i]);
}

/* The superblocks of a device have the right item, the device count, and the sum of all sizes. */
static void verify_supers(struct rig *r, unsigned device, const struct super *of, uint64_t total, unsigned n)
{
	struct disk_super d;
	struct super s;

	for (unsigned mirror = 0; mirror < 2; mirror++) {
		sparse_read(r->at[device], super_offset(mirror), &d, sizeof(d));
		check(super_decode(&d, super_offset(mirror), &s, &err));
		assert_int_equal(s.generation, of->generation);
		assert_int_equal(s.num_devices, n);
		assert_int_equal(le64_get(d.total_bytes), total);
	}
}

static bool has_super(struct rig *r, unsigned device)
{
	struct disk_super d;
	bool has = false;

	for (unsigned mirror = 0; mirror < 2; mirror++) {
		sparse_read(r->at[device], super_offset(mirror), &d, sizeof(d));
		has |= le64_get(d.magic) == SUPER_MAGIC;
	}
	return has;
}

/* The filesystem is on the devices of @mask and on no others; everything is consistent. */
static void expect_devices(struct rig *r, unsigned mask)
{
	uint64_t total = 0;
	unsigned n = 0;

	for (unsigned last = 0; last < 2; last++) {
		struct btrkit_fs *fs = open_devices(r, mask, last, 0);

		check(audit_own(fs, 0, &err));
		total = le64_get(fs->super.disk.total_bytes);
		n = (unsigned)fs->super.num_devices;
		assert_int_equal(volume_num_devices(fs->volume), n);
		for (unsigned i = 0; i < DEVICES_MAX; i++)
			if (mask >> i & 1)
				verify_supers(r, i, &fs->super, total, n);
		btrkit_fs_close(fs);
	}
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		assert_int_equal(has_super(r, i), mask >> i & 1);
		n -= mask >> i & 1;
	}
	assert_int_equal(n, 0);
}

static void commit(struct rig *r, unsigned mask)
{
	check(btrkit_txn_commit(r->txn, NULL, &err));
	r->txn = NULL;
	expect_devices(r, mask);
	assert_int_equal(r->fs->super.num_devices, volume_num_devices(r->fs->volume));
	start(r);
}

static void abort_txn(struct rig *r)
{
	btrkit_txn_abort(r->txn);
	start(r);
}

static uint64_t join(struct rig *r, unsigned device)
{
	uint64_t devid = 0;

	check(txn_add_device(r->txn, sparse_io(r->at[device]), uuid_of(device), &devid, &err));
	return devid;
}

static uint64_t total_bytes(struct rig *r)
{
	return le64_get(r->txn->super.total_bytes);
}

/* Creates a file and writes @len bytes to it. */
static uint64_t put(struct rig *r, const char *name, size_t len)
{
	uint8_t *bytes = malloc(len);
	uint64_t inode;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 4096);
	check(btrkit_txn_create(r->txn, TOP, TOP_DIR, name, strlen(name), NULL, &inode, &err));
	check(btrkit_txn_write(r->txn, TOP, inode, 0, bytes, len, NULL, &err));
	free(bytes);
	return inode;
}

static unsigned stripes_on(const struct btrkit_fs *fs, uint64_t devid)
{
	unsigned n = 0;

	for (size_t i = 0; i < volume_num_chunks(fs->volume); i++)
		for (unsigned k = 0; k < volume_chunk(fs->volume, i)->num_stripes; k++)
			n += volume_chunk(fs->volume, i)->stripes[k].devid == devid;
	return n;
}

/* A new device is used at once, in the same transaction and later. */
static void a_device_joins(void **state)
{
	static const uint32_t nodesizes[] = { 4096, 16384 };
	struct space_group *g;
	struct rig r;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(nodesizes); i++) {
		uint64_t total, devid;

		create(&r, 1, nodesizes[i]);
		total = total_bytes(&r);
		assert_int_equal(join(&r, 1), 2);
		assert_int_equal(total_bytes(&r), total + 310 * MIB);
		check(txn_add_chunk(r.txn, BG_DATA, BG_RAID1, &g, &err));
		check(txn_add_chunk(r.txn, BG_METADATA, BG_RAID1, NULL, &err));
		put(&r, "one", 3 * MIB);
		commit(&r, 3);
		assert_true(stripes_on(r.fs, 2) >= 2);
		put(&r, "two", 3 * MIB);
		assert_int_equal(join(&r, 2), 3);
		/* One at a time. */
		assert_int_equal(txn_add_device(r.txn, sparse_io(r.at[3]), uuid_of(3), &devid, &err), -EBUSY);
		commit(&r, 7);
		assert_int_equal(join(&r, 3), 4);
		check(txn_add_chunk(r.txn, BG_DATA, BG_RAID1C4, &g, &err));
		put(&r, "three", MIB);
		commit(&r, 15);
		assert_int_equal(le64_get(r.fs->super.disk.total_bytes), total + (310 + 320 + 330) * MIB);
		destroy(&r);
	}
}

/* Nothing is left of it: no device, no chunks, no superblock. */
static void an_abort_takes_it_back(void **state)
{
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t total = total_bytes(&r);

		join(&r, 1);
		check(txn_add_chunk(r.txn, BG_DATA, BG_RAID1, NULL, &err));
		put(&r, "lost", 2 * MIB);
		check(txn_run_refs(r.txn, &err));
		abort_txn(&r);
		assert_int_equal(volume_num_devices(r.fs->volume), 1);
		assert_int_equal(total_bytes(&r), total);
		expect_devices(&r, 1);
		if (!i)
			put(&r, "kept", MIB);
		commit(&r, 1);
	}
	assert_int_equal(join(&r, 2), 2);
	commit(&r, 5);
	destroy(&r);
}

/* One that is empty, or is emptied by the same transaction. */
static void a_device_leaves(void **state)
{
	struct space_group *g;
	struct rig r;
	uint64_t total;

	(void)state;
	create(&r, 1, 0);
	total = total_bytes(&r);
	join(&r, 1);
	commit(&r, 3);
	check(txn_remove_device(r.txn, 2, &err));
	assert_int_equal(total_bytes(&r), total);
	/* No chunk is placed there any more. */
	assert_int_equal(txn_add_chunk(r.txn, BG_DATA, BG_RAID1, NULL, &err), -EINVAL);
	put(&r, "one", 2 * MIB);
	abort_txn(&r);
	expect_devices(&r, 3);
	check(txn_add_chunk(r.txn, BG_DATA, BG_RAID1, &g, &err));
	commit(&r, 3);
	assert_int_equal(txn_remove_device(r.txn, 2, &err), -EBUSY);
	g = space_group_at(r.txn->space, space_num_groups(r.txn->space) - 1);
	assert_true(g->item.flags & BG_RAID1);
	check(chunk_remove(r.txn->space, g, &r.txn->super, &err));
	check(txn_remove_device(r.txn, 2, &err));
	abort_txn(&r);
	expect_devices(&r, 3);
	g = space_group_at(r.txn->space, space_num_groups(r.txn->space) - 1);
	check(chunk_remove(r.txn->space, g, &r.txn->super, &err));
	check(txn_remove_device(r.txn, 2, &err));
	/* An ID is not given again by the same transaction. */
	assert_int_equal(join(&r, 2), 3);
	commit(&r, 5);
	put(&r, "two", 2 * MIB);
	commit(&r, 5);
	destroy(&r);
}

/* The indexes in chunks on the devices after one that leaves. */
static void others_stay_where_they_are(void **state)
{
	struct space_group *g;
	struct rig r;
	uint64_t file;
	uint8_t byte;

	(void)state;
	create(&r, 1, 0);
	join(&r, 1);
	commit(&r, 3);
	join(&r, 2);
	check(space_device_take_chunks(r.txn->space, 1, false, &err));
	check(space_device_take_chunks(r.txn->space, 2, false, &err));
	check(txn_add_chunk(r.txn, BG_DATA, 0, &g, &err));
	assert_int_equal(stripes_on(r.fs, 3), 1);
	check(space_device_take_chunks(r.txn->space, 1, true, &err));
	space_inc_ro(space_group_at(r.txn->space, 0));
	file = put(&r, "far", 2 * MIB);
	commit(&r, 7);
	check(txn_remove_device(r.txn, 2, &err));
	abort_txn(&r);
	check(txn_remove_device(r.txn, 2, &err));
	commit(&r, 5);
	/* Read and written through the same handle. */
	byte = 'x';
	check(btrkit_txn_write(r.txn, TOP, file, MIB, &byte, 1, NULL, &err));
	commit(&r, 5);
	assert_int_equal(volume_device(r.fs->volume, 1).devid, 3);
	destroy(&r);
}

/* The superblock in memory may be that of the device that leaves. */
static void the_first_device_leaves(void **state)
{
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	join(&r, 3);
	commit(&r, 9);
	btrkit_txn_abort(r.txn);
	btrkit_fs_close(r.fs);
	r.fs = open_devices(&r, 9, true, BTRKIT_OPEN_WRITE);
	assert_int_equal(r.fs->super.devid, 2);
	start(&r);
	check(txn_remove_device(r.txn, 2, &err));
	assert_int_equal(le64_get(r.txn->super.dev_item.devid), 1);
	commit(&r, 1);
	assert_int_equal(r.fs->super.devid, 1);
	put(&r, "more", MIB);
	commit(&r, 1);
	destroy(&r);
}

static struct edit_tree *tree(struct rig *r, uint64_t id)
{
	struct edit_tree *t;

	check(txn_tree(r->txn, id, &t, &err));
	return t;
}

static void insert_stats(struct rig *r, uint64_t devid)
{
	const struct disk_dev_stats stats = { { le64_put(3), le64_put(4) } };
	const struct btrkit_key key = KEY(OID_DEV_STATS, KEY_PERSISTENT_ITEM, devid);

	check(edit_insert(tree(r, OID_DEV_TREE), &key, &stats, sizeof(stats), &err));
}

static bool has_stats(struct rig *r, uint64_t devid)
{
	const struct btrkit_key key = KEY(OID_DEV_STATS, KEY_PERSISTENT_ITEM, devid);

	return !cursor_find(&tree(r, OID_DEV_TREE)->c, &key, &err);
}

/* A device does not inherit the error counters of another, and takes its own along. */
static void counters_are_of_their_device(void **state)
{
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	insert_stats(&r, 2);
	join(&r, 1);
	assert_true(has_stats(&r, 1) && !has_stats(&r, 2));
	insert_stats(&r, 2);
	commit(&r, 3);
	check(txn_remove_device(r.txn, 2, &err));
	assert_true(has_stats(&r, 1) && !has_stats(&r, 2));
	commit(&r, 1);
	destroy(&r);
}

static void sizes_change(void **state)
{
	struct chunk_plan plan;
	struct rig r;
	uint64_t total;

	(void)state;
	create(&r, 2, 0);
	total = total_bytes(&r);
	check(txn_resize_device(r.txn, 2, 200 * MIB + 4095, &err));
	assert_int_equal(total_bytes(&r), total - 110 * MIB);
	check(txn_resize_device(r.txn, 1, 280 * MIB, &err));
	assert_int_equal(total_bytes(&r), total - 130 * MIB);
	assert_int_equal(le64_get(r.txn->super.dev_item.total_bytes), 280 * MIB);
	commit(&r, 3);
	/* The new sizes are those that chunks are placed by, and in the items and superblocks. */
	check(chunk_plan_profile(r.txn->space, BG_DATA, 0, &plan, &err));
	assert_true(plan.unused < 480 * MIB);
	assert_int_equal(le64_get(r.fs->super.disk.dev_item.total_bytes), 280 * MIB);
	check(txn_resize_device(r.txn, 2, 310 * MIB, &err));
	abort_txn(&r);
	assert_int_equal(total_bytes(&r), total - 130 * MIB);
	check(txn_resize_device(r.txn, 2, 310 * MIB, &err));
	commit(&r, 3);
	assert_int_equal(total_bytes(&r), total - 20 * MIB);
	/* Not past the end of the device, nor into a chunk. */
	assert_int_equal(txn_resize_device(r.txn, 2, 310 * MIB + 4096, &err), -EINVAL);
	assert_int_equal(txn_resize_device(r.txn, 1, 4 * MIB, &err), -EBUSY);
	assert_int_equal(txn_resize_device(r.txn, 2, 1 * MIB, &err), -EINVAL);
	assert_int_equal(txn_resize_device(r.txn, 3, 100 * MIB, &err), -EINVAL);
	commit(&r, 3);
	destroy(&r);
}

/* Mistakes are told before anything is changed: the transaction can be committed. */
static void mistakes_are_told(void **state)
{
	static const struct btrkit_io_ops no_ops;
	struct sparse *small = sparse_create(MIB + 60000, NULL);
	struct btrkit_io read_only = { .ops = &no_ops, .size = 300 * MIB };
	uint64_t devid;
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	assert_int_equal(txn_add_device(r.txn, sparse_io(small), uuid_of(1), &devid, &err), -EINVAL);
	assert_int_equal(txn_add_device(r.txn, sparse_io(r.at[0]), uuid_of(1), &devid, &err), -EINVAL);
	assert_int_equal(txn_add_device(r.txn, sparse_io(r.at[1]), r.fs->super.dev_uuid, &devid, &err), -EINVAL);
	assert_int_equal(txn_add_device(r.txn, &read_only, uuid_of(1), &devid, &err), -EROFS);
	assert_int_equal(txn_remove_device(r.txn, 1, &err), -EBUSY);
	assert_int_equal(txn_remove_device(r.txn, 2, &err), -EINVAL);
	join(&r, 1);
	assert_int_equal(txn_remove_device(r.txn, 2, &err), -EINVAL);
	assert_int_equal(txn_remove_device(r.txn, 1, &err), -EBUSY);
	commit(&r, 3);
	assert_int_equal(txn_remove_device(r.txn, 1, &err), -EBUSY);
	assert_int_equal(space_device_take_chunks(r.txn->space, 7, false, &err), -EINVAL);
	check(txn_remove_device(r.txn, 2, &err));
	assert_int_equal(txn_remove_device(r.txn, 2, &err), -EINVAL);
	commit(&r, 1);
	btrkit_txn_abort(r.txn);
	r.txn = NULL;
	destroy(&r);
	sparse_free(small);
}

/* Makes the item of a device say that it is of another, or that it is right. */
static void set_devid(struct rig *r, uint64_t at, uint64_t devid)
{
	const struct btrkit_key key = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, at);
	uint32_t size;
	uint8_t *data;

	check(edit_bytes(tree(r, OID_CHUNK_TREE), &key, &data, &size, &err));
	((struct disk_dev_item *)data)->devid = le64_put(devid);
}

/* A call that came upon damage has changed nothing: once that is mended it succeeds, in the same transaction. */
static void failed_alone(struct rig *r, int ret)
{
	assert_true(ret == -EUCLEAN && !btrkit_txn_failure(r->txn, NULL));
}

static void a_damaged_device_fails_alone(void **state)
{
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	join(&r, 1);
	commit(&r, 3);
	btrkit_txn_abort(r.txn);
	btrkit_fs_close(r.fs);
	/* The superblock in memory is that of device 2, so that the item of device 1 is needed when that leaves. */
	r.fs = open_devices(&r, 3, true, BTRKIT_OPEN_WRITE);
	start(&r);
	for (uint64_t at = 1; at <= 2; at++) {
		set_devid(&r, at, 7);
		failed_alone(&r, txn_remove_device(r.txn, 2, &err));
		failed_alone(&r, txn_resize_device(r.txn, at, 290 * MIB, &err));
		set_devid(&r, at, at);
		assert_int_equal(total_bytes(&r), le64_get(r.fs->super.disk.total_bytes));
		assert_int_equal(le64_get(r.txn->super.dev_item.devid), 2);
	}
	check(txn_resize_device(r.txn, 1, 290 * MIB, &err));
	check(txn_remove_device(r.txn, 2, &err));
	commit(&r, 1);
	destroy(&r);
}

/* What contradicts a new chunk, or one that is removed. */
static void a_damaged_chunk_fails_alone(void **state)
{
	const struct disk_block_group other = { .flags = le64_put(BG_DATA) };
	uint8_t extent[sizeof(struct disk_dev_extent)];
	struct chunk_plan plan;
	struct space_group *g;
	struct btrkit_key key;
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	check(chunk_plan(r.txn->space, BG_DATA, &plan, &err));
	key = KEY(plan.logical, KEY_BLOCK_GROUP_ITEM, plan.length);
	check(edit_insert(tree(&r, OID_BLOCK_GROUP_TREE), &key, &other, sizeof(other), &err));
	failed_alone(&r, txn_add_chunk(r.txn, BG_DATA, 0, &g, &err));
	check(edit_delete(tree(&r, OID_BLOCK_GROUP_TREE), &key, &err));
	check(txn_add_chunk(r.txn, BG_DATA, 0, &g, &err));

	key = KEY(1, KEY_DEV_EXTENT, plan.stripes[0].physical);
	check(cursor_find(&tree(&r, OID_DEV_TREE)->c, &key, &err));
	memcpy(extent, tree(&r, OID_DEV_TREE)->c.item.data, sizeof(extent));
	check(edit_delete(tree(&r, OID_DEV_TREE), &key, &err));
	failed_alone(&r, chunk_remove(r.txn->space, g, &r.txn->super, &err));
	check(edit_insert(tree(&r, OID_DEV_TREE), &key, extent, sizeof(extent), &err));
	set_devid(&r, 1, 7);
	failed_alone(&r, chunk_remove(r.txn->space, g, &r.txn->super, &err));
	set_devid(&r, 1, 1);
	check(chunk_remove(r.txn->space, g, &r.txn->super, &err));
	put(&r, "after", MIB);
	commit(&r, 1);
	destroy(&r);
}

static int join_and_leave(struct rig *r)
{
	uint64_t devid;
	int ret = txn_add_device(r->txn, sparse_io(r->at[2]), uuid_of(2), &devid, &err);

	if (!ret)
		ret = txn_add_chunk(r->txn, BG_DATA, 0, NULL, &err);
	return ret ? ret : txn_remove_device(r->txn, 2, &err);
}

/* Each allocation of memory fails in turn: after the abort the devices are those of before. */
static void memory_runs_out(void **state)
{
	uint64_t made = 1, failed = 0;
	struct rig r;

	(void)state;
	create(&r, 1, 0);
	join(&r, 1);
	commit(&r, 3);
	for (uint64_t i = 0; made >= i; i++) {
		int ret;

		memory_count(i, false);
		ret = join_and_leave(&r);
		made = memory_end();
		assert_true(!ret || ret == -ENOMEM);
		failed += !!ret;
		btrkit_txn_abort(r.txn);
		assert_int_equal(volume_num_devices(r.fs->volume), 2);
		assert_int_equal(stripes_on(r.fs, 3), 0);
		btrkit_fs_close(r.fs);
		r.fs = open_devices(&r, 3, false, BTRKIT_OPEN_WRITE);
		start(&r);
	}
	expect_devices(&r, 3);
	printf("%llu of %llu allocations failed in turn\n", (unsigned long long)failed, (unsigned long long)made);
	assert_true(failed > 10);
	destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_joins),	   cmocka_unit_test(an_abort_takes_it_back),
		cmocka_unit_test(a_device_leaves),	   cmocka_unit_test(others_stay_where_they_are),
		cmocka_unit_test(the_first_device_leaves), cmocka_unit_test(counters_are_of_their_device),
		cmocka_unit_test(sizes_change),		   cmocka_unit_test(mistakes_are_told),
		cmocka_unit_test(a_damaged_device_fails_alone), cmocka_unit_test(a_damaged_chunk_fails_alone),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
