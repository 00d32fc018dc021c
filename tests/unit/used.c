// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The used ranges of devices: where every extent is according to the mapping of single addresses, plus superblocks;
 * with parity, whole rows. A copy of only these ranges, with garbage elsewhere, must be a complete filesystem.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/base/crc32c.h"
#include "lib/format/disk.h"
#include "lib/format/feature_bits.h"
#include "tests/unit/txn_rig.h"

#define MIB (1ull << 20)
#define SECTOR 4096u
#define STRIP 65536u
#define TOP 256
#define RANGES_MAX 65536u

struct ranges {
	struct btrkit_used_range *at;
	size_t n;
};

/* Data, metadata, mixed, nodesize, devices that may be lost, devices and their sizes in MiB. */
static const struct rig_kind kinds[] = {
	{ "single", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 200 } },
	{ "dup", BTRKIT_PROFILE_DUP, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 300 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 100 } },
	{ "single of two", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_RAID1, false, 16384, 0, 2, { 160, 200 } },
	{ "raid0", BTRKIT_PROFILE_RAID0, BTRKIT_PROFILE_RAID0, false, 4096, 0, 3, { 160, 200, 160 } },
	{ "raid1c3", BTRKIT_PROFILE_RAID1C3, BTRKIT_PROFILE_RAID1C4, false, 16384, 2, 4, { 160, 200, 160, 160 } },
	{ "raid10", BTRKIT_PROFILE_RAID10, BTRKIT_PROFILE_RAID10, false, 4096, 1, 4, { 160, 200, 160, 180 } },
	{ "raid5", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 16384, 1, 3, { 160, 200, 160 } },
	{ "raid6", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 4096, 2, 5, { 160, 200, 160, 160, 160 } },
};

/* Makes files of many sizes in several transactions, and deletes some: extents with gaps between them. */
static void fill(struct rig *r)
{
	static const size_t sizes[] = { 100, 5000, 70000, 200000, 1500000, 4096, 333333, 65536 };
	uint8_t *bytes = malloc(sizes[4]);

	assert_non_null(bytes);
	for (size_t i = 0; i < sizes[4]; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	for (unsigned round = 0; round < 2; round++) {
		struct btrkit_fs *fs = rig_open(r, BTRKIT_OPEN_WRITE, 0);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_txn *txn;
		uint64_t inode;

		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		for (unsigned i = 0; i < 24; i++) {
			char name[16];

			snprintf(name, sizeof(name), "%u-%u", round, i);
			rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err),
				  &err);
			rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, sizes[i % ARRAY_SIZE(sizes)],
						   NULL, &err),
				  &err);
			snprintf(name, sizeof(name), "0-%u", i);
			if (round && i % 3)
				rig_check(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name),
							    BTRKIT_UNLINK_FILE, &err),
					  &err);
		}
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		btrkit_fs_close(fs);
	}
	free(bytes);
}

static int collect(void *ctx, const struct btrkit_used_range *range)
{
	struct ranges *to = ctx;

	assert_true(to->n < RANGES_MAX && range->length);
	if (to->n) {
		const struct btrkit_used_range *last = &to->at[to->n - 1];

		assert_true(range->devid > last->devid ||
			    (range->devid == last->devid && range->physical > last->physical + last->length));
	}
	to->at[to->n++] = *range;
	return 0;
}

static void load(struct btrkit_fs *fs, struct ranges *ret)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	*ret = (struct ranges){ .at = calloc(RANGES_MAX, sizeof(*ret->at)) };
	assert_non_null(ret->at);
	rig_check(btrkit_used_ranges(fs, 0, collect, ret, &err), &err);
}

/* A byte for each sector of each device. */
struct map {
	struct rig *rig;
	uint8_t *used[RIG_DEVICES_MAX];
	bool rows; /* parity: whole rows of strips are used */
	uint64_t at, left;
};

static void mark(struct map *m, uint64_t devid, uint64_t from, uint64_t len)
{
	assert_in_range(devid, 1, m->rig->n);
	memset(m->used[devid - 1] + from / SECTOR, 1, (from + len - 1) / SECTOR - from / SECTOR + 1);
}

static int mark_copy(void *ctx, const struct btrkit_copy *copy)
{
	struct map *m = ctx;

	if (copy->length < m->left)
		m->left = copy->length;
	mark(m, copy->devid, copy->physical, SECTOR);
	return 0;
}

/* Independently of the code under test, map each sector of an extent by itself. */
static void mark_range(struct map *m, struct btrkit_fs *fs, uint64_t bytenr, uint64_t bytes)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	for (uint64_t at = bytenr; at < bytenr + bytes; at += SECTOR) {
		m->left = UINT64_MAX;
		rig_check(btrkit_logical_copies(fs, at, mark_copy, m, &err), &err);
	}
}

static int widen(void *ctx, const struct btrkit_chunk *c)
{
	struct map *m = ctx;

	/* A row is used if any of its strips is; P and Q are used wherever data is. */
	for (uint64_t at = 0; m->rows && at < c->stripe_length; at += STRIP) {
		bool any = false;

		for (unsigned i = 0; i < c->num_stripes; i++)
			any = any || memchr(m->used[c->stripes[i].devid - 1] + (c->stripes[i].physical + at) / SECTOR,
					    1, STRIP / SECTOR);
		for (unsigned i = 0; any && i < c->num_stripes; i++)
			mark(m, c->stripes[i].devid, c->stripes[i].physical + at, STRIP);
	}
	return 0;
}

static void mark_all(struct map *m, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;
	struct btrkit_fs_info info;

	btrkit_fs_get_info(fs, &info);
	rig_check(btrkit_usage_load(fs, NULL, &u, &err), &err);
	for (size_t i = 0; i < btrkit_usage_num_extents(u); i++) {
		struct btrkit_usage_extent e;

		btrkit_usage_get_extent(u, i, &e);
		mark_range(m, fs, e.bytenr, e.bytes);
	}
	for (size_t i = 0; i < btrkit_usage_num_blocks(u); i++) {
		struct btrkit_usage_block b;

		btrkit_usage_get_block(u, i, &b);
		mark_range(m, fs, b.bytenr, info.nodesize);
	}
	btrkit_usage_free(u);
	rig_check(btrkit_chunks(fs, widen, m, &err), &err);
	for (unsigned i = 0; i < m->rig->n; i++) {
		mark(m, i + 1, 64 << 10, SECTOR);
		mark(m, i + 1, 64 << 20, SECTOR);
	}
}

static void compare(struct map *m, const struct ranges *found, const struct rig_kind *kind)
{
	struct map other = { .rig = m->rig };

	for (unsigned i = 0; i < m->rig->n; i++) {
		other.used[i] = calloc(kind->mib[i] * MIB / SECTOR, 1);
		assert_non_null(other.used[i]);
	}
	for (size_t i = 0; i < found->n; i++)
		mark(&other, found->at[i].devid, found->at[i].physical, found->at[i].length);
	for (unsigned i = 0; i < m->rig->n; i++) {
		for (uint64_t s = 0; s < kind->mib[i] * MIB / SECTOR; s++)
			if (m->used[i][s] != other.used[i][s])
				fail_msg("%s: device %u at %ju: %u, not %u", kind->name, i + 1, (uintmax_t)s * SECTOR,
					 other.used[i][s], m->used[i][s]);
		free(other.used[i]);
	}
}

/* A device that has only the used ranges; the rest reads as garbage. */
struct rest {
	struct btrkit_io io;
	struct sparse *at;
	const struct ranges *ranges;
	uint64_t devid;
};

static int rest_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct rest *d = (struct rest *)io;

	memset(buf, 0xdb, len);
	for (size_t i = 0; i < d->ranges->n; i++) {
		const struct btrkit_used_range *r = &d->ranges->at[i];
		uint64_t from = r->physical > offset ? r->physical : offset, end = r->physical + r->length;

		if (end > offset + len)
			end = offset + len;
		if (r->devid == d->devid && from < end)
			sparse_read(d->at, from, (uint8_t *)buf + (from - offset), (size_t)(end - from));
	}
	return 0;
}

static void rest_close(struct btrkit_io *io)
{
	(void)io;
}

/* Checks every copy of everything, and all parity. */
static void check_rest(struct rig *r, const struct ranges *ranges)
{
	static const struct btrkit_io_ops ops = { .read = rest_read, .close = rest_close };
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rest rest[RIG_DEVICES_MAX] = { 0 };
	struct btrkit_check_result result;
	struct btrkit_io *io[RIG_DEVICES_MAX];
	struct btrkit_fs *fs;

	for (unsigned i = 0; i < r->n; i++) {
		rest[i] = (struct rest){ .io = { .ops = &ops, .size = sparse_io(r->at[i])->size, .name = "rest" },
					 .at = r->at[i], .ranges = ranges, .devid = i + 1 };
		io[i] = &rest[i].io;
	}
	opts.flags = BTRKIT_CHECK_DATA;
	rig_check(btrkit_fs_open(io, r->n, NULL, &fs, &err), &err);
	rig_check(btrkit_check(fs, &opts, &result, &err), &err);
	assert_int_equal(result.findings[BTRKIT_CHECK_REFUSED], 0);
	assert_int_equal(result.findings[BTRKIT_CHECK_MISBEHAVES], 0);
	assert_int_equal(result.findings[BTRKIT_CHECK_LEFTOVER], 0);
	assert_true(result.data > 0);
	btrkit_fs_close(fs);
}

static void used_is_what_extents_lie_on(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct map m = { .rows = kinds[k].data >= BTRKIT_PROFILE_RAID5 };
		struct ranges found;
		struct btrkit_fs *fs;
		struct rig r;

		if (m.rows && !UNIT_PARITY)
			continue;
		rig_make(&r, &kinds[k]);
		fill(&r);
		m.rig = &r;
		for (unsigned i = 0; i < r.n; i++) {
			m.used[i] = calloc(kinds[k].mib[i] * MIB / SECTOR, 1);
			assert_non_null(m.used[i]);
		}
		fs = rig_open(&r, 0, 0);
		load(fs, &found);
		mark_all(&m, fs);
		compare(&m, &found, &kinds[k]);
		btrkit_fs_close(fs);
		check_rest(&r, &found);
		for (unsigned i = 0; i < r.n; i++)
			free(m.used[i]);
		free(found.at);
		rig_destroy(&r);
	}
}

static int stop(void *ctx, const struct btrkit_used_range *range)
{
	unsigned *left = ctx;

	(void)range;
	return --*left ? 0 : -ECANCELED;
}

static void one_device_is_told_alone(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct ranges all, one = { 0 };
	unsigned left = 2;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[3]);
	fs = rig_open(&r, 0, 1u << 1);
	load(fs, &all);
	one.at = calloc(RANGES_MAX, sizeof(*one.at));
	assert_non_null(one.at);
	rig_check(btrkit_used_ranges(fs, 2, collect, &one, &err), &err);
	assert_true(one.n > 2 && one.n < all.n);
	assert_memory_equal(one.at, all.at + (all.n - one.n), one.n * sizeof(*one.at));
	assert_int_equal(one.at[0].physical, 64 << 10);
	assert_int_equal(btrkit_used_ranges(fs, 3, collect, &one, &err), -ENOENT);
	assert_string_equal(err.message, "no device with devid 3");
	assert_int_equal(btrkit_used_ranges(fs, 0, stop, &left, NULL), -ECANCELED);
	btrkit_fs_close(fs);
	free(all.at);
	free(one.at);
	rig_destroy(&r);
}

static void expect_refused(const struct rig *from, void (*change)(struct disk_super *), const char *message)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disk_super d;
	struct btrkit_fs *fs;
	struct rig r;
	le32 sum;

	rig_clone(&r, from);
	sparse_read(r.at[0], 64 << 10, &d, sizeof(d));
	change(&d);
	sum = le32_put(~crc32c(~0u, (uint8_t *)&d + sizeof(d.csum), sizeof(d) - sizeof(d.csum)));
	memcpy(&d, &sum, sizeof(sum));
	sparse_write(r.at[0], 64 << 10, &d, sizeof(d));
	fs = rig_open(&r, 0, 0);
	assert_int_equal(btrkit_used_ranges(fs, 0, collect, NULL, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, message);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

static void set_unknown(struct disk_super *d)
{
	d->compat_ro_flags = le64_put(le64_get(d->compat_ro_flags) | 1ull << 40);
}

static void set_stripe_tree(struct disk_super *d)
{
	d->incompat_flags = le64_put(le64_get(d->incompat_flags) | INCOMPAT_RAID_STRIPE_TREE);
}

static void set_log(struct disk_super *d)
{
	d->log_root = d->root;
}

static void what_the_extent_tree_does_not_tell_is_refused(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[0]);
	expect_refused(&r, set_unknown, "listing used ranges is not supported: unknown compat_ro bit 40");
	expect_refused(&r, set_stripe_tree, "listing used ranges is not supported: raid-stripe-tree");
	expect_refused(&r, set_log, "listing used ranges is not supported: log tree");
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	assert_int_equal(btrkit_used_ranges(fs, 0, collect, NULL, &err), -EBUSY);
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(used_is_what_extents_lie_on),
		cmocka_unit_test(one_device_is_told_alone),
		cmocka_unit_test(what_the_extent_tree_does_not_tell_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
