// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filesystems made in memory: they can be opened, every item is valid, and they have what was asked for. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "lib/format/feature_bits.h"
#include "lib/format/super.h"
#include "lib/mkfs/layout.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"

#define MIB (1ull << 20)

#define DEVICES_MAX 6

static int count_bytes(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(size_t *)ctx += len;
	return 0;
}

static void need(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (ret)
		fail_msg("%s", btrkit_error_format(err, line, sizeof(line)));
}

/* Opens the filesystem and reads all of it; the dump validates each block and each item. */
static struct btrkit_fs *read_all(struct btrkit_io *const *ios, size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	size_t printed = 0;

	need(btrkit_fs_open(ios, n, NULL, &fs, &err), &err);
	need(btrkit_dump_tree(fs, NULL, count_bytes, &printed, &err), &err);
	assert_true(printed > 5000);
	return fs;
}

static struct btrkit_fs *make(const struct btrkit_mkfs_options *o, struct sparse *s, struct btrkit_mkfs_result *result)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(s);

	need(btrkit_mkfs(&io, 1, o, result, &err), &err);
	return read_all(&io, 1);
}

static void every_combination_is_whole(void **state)
{
	static const uint32_t sizes[] = { 4096, 8192, 16384, 32768, 65536 };
	unsigned made = 0;

	(void)state;
	for (unsigned bits = 0; bits < 1u << 7; bits++) {
		struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		struct btrkit_mkfs_result result;
		struct btrkit_fs_info info;
		struct btrkit_fs *fs;
		struct sparse *s;
		uint64_t min;

		o.data = bits & 1 ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE;
		o.metadata = bits & 2 ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE;
		o.mixed = bits & 4;
		if (o.mixed && o.data != o.metadata)
			continue;
		if (bits & 8)
			o.compat_ro = 0;
		if (bits & 16)
			o.compat_ro &= ~COMPAT_RO_BLOCK_GROUP_TREE;
		if (bits & 32)
			o.incompat &= ~INCOMPAT_SKINNY_METADATA;
		if (bits & 64)
			o.incompat &= ~INCOMPAT_NO_HOLES;
		o.nodesize = o.mixed ? 0 : sizes[bits % ARRAY_SIZE(sizes)];
		assert_int_equal(btrkit_mkfs_min_size(&o, 1, &min, NULL), 0);
		s = sparse_create(min, NULL);
		fs = make(&o, s, &result);
		btrkit_fs_get_info(fs, &info);
		assert_int_equal(info.nodesize, o.mixed ? 4096 : o.nodesize);
		assert_memory_equal(info.fsid, result.fsid, 16);
		/* A block group tree is made only together with the two features that Linux requires for it. */
		assert_int_equal(!!(result.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE), !(bits & (8 | 16 | 64)));
		btrkit_fs_close(fs);
		sparse_free(s);
		made++;
	}
	printf("%u combinations\n", made);
	assert_true(made > 90);
}

/* Without the devices of the mask @without, everything can still be read and checked. */
static void read_without(struct sparse *const *devices, unsigned n, unsigned without)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *left[DEVICES_MAX];
	struct btrkit_check_result found;
	struct btrkit_fs *fs;
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++)
		if (!(without >> i & 1))
			left[k++] = sparse_io(devices[i]);
	fs = read_all(left, k);
	need(audit(fs, without ? AUDIT_MISSING : 0, &found, &err), &err);
	assert_true(found.blocks > 7);
	btrkit_fs_close(fs);
}

/* Tries every set of missing devices that the metadata profile tolerates. @return the number of sets */
static unsigned read_degraded(struct sparse *const *devices, unsigned n, enum btrkit_profile metadata)
{
	static const unsigned tolerated[] = {
		[BTRKIT_PROFILE_RAID1] = 1,  [BTRKIT_PROFILE_RAID1C3] = 2, [BTRKIT_PROFILE_RAID1C4] = 3,
		[BTRKIT_PROFILE_RAID10] = 1, [BTRKIT_PROFILE_RAID5] = 1,   [BTRKIT_PROFILE_RAID6] = 2
	};
	unsigned sets = 0;

	for (unsigned without = 0; without < 1u << n; without++) {
		const unsigned lacking = (unsigned)__builtin_popcount(without);

		if (lacking > (metadata <= BTRKIT_PROFILE_RAID6 ? tolerated[metadata] : 0) || lacking == n)
			continue;
		read_without(devices, n, without);
		sets++;
	}
	return sets;
}

/* Old contents of a device must not show up where zeros are assumed; groups begin at whole MiB. */
static struct sparse *scribbled(uint64_t size)
{
	struct sparse *s = sparse_create(size, NULL);
	uint8_t noise[65536];

	memset(noise, 0xa5, sizeof(noise));
	for (uint64_t at = MIB; at < 48 * MIB && at + MIB < size; at += MIB)
		sparse_write(s, at, noise, sizeof(noise));
	return s;
}

static unsigned make_on_several(const struct btrkit_mkfs_options *o, unsigned n, uint64_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_device made[DEVICES_MAX];
	struct btrkit_mkfs_options opts = *o;
	struct btrkit_mkfs_result result;
	struct sparse *devices[DEVICES_MAX];
	struct btrkit_io *ios[DEVICES_MAX];
	unsigned sets;

	opts.made = made;
	for (unsigned i = 0; i < n; i++) {
		devices[i] = scribbled(size + i * 3 * MIB + 4096 * i);
		ios[i] = sparse_io(devices[i]);
	}
	need(btrkit_mkfs(ios, n, &opts, &result, &err), &err);
	assert_int_equal(result.total_bytes, n * size + n * (n - 1) / 2 * (3 * MIB + 4096));
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(made[i].total_bytes, ios[i]->size);
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(made[i].uuid, made[k].uuid, 16);
	}
	assert_int_equal(!!(result.incompat & INCOMPAT_RAID56),
			 o->data >= BTRKIT_PROFILE_RAID5 || o->metadata >= BTRKIT_PROFILE_RAID5);
	sets = read_degraded(devices, n, opts.metadata);
	for (unsigned i = 0; i < n; i++)
		sparse_free(devices[i]);
	return sets;
}

/* Every metadata profile with some data profiles, on every number of devices that they allow; every checksum type. */
static void every_profile_is_whole(void **state)
{
	static const uint32_t nodesizes[] = { 4096, 16384, 65536 };
	unsigned made = 0, refused = 0, sets = 0;

	(void)state;
	for (unsigned i = 0; i < 9 * 2 * DEVICES_MAX; i++) {
		struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		const unsigned n = i / 18 + 1;
		uint64_t min;

		o.metadata = BTRKIT_PROFILE_SINGLE + i % 9;
		o.data = BTRKIT_PROFILE_SINGLE + (i % 18 < 9 ? i % 9 : i % 7);
		o.csum = UNIT_SUMS ? i % 4 : BTRKIT_CSUM_CRC32C;
		o.mixed = i % 3 == 1 && o.data == o.metadata;
		o.nodesize = o.mixed ? 0 : nodesizes[i % 3];
		if (i % 5 == 1)
			o.flags |= BTRKIT_MKFS_QUOTA;
		if (i % 5 == 2)
			o.incompat |= INCOMPAT_SIMPLE_QUOTA;
		if (i % 5 == 3)
			o.compat_ro = 0;
		if (!UNIT_PARITY && (o.metadata >= BTRKIT_PROFILE_RAID5 || o.data >= BTRKIT_PROFILE_RAID5))
			continue;
		if (btrkit_mkfs_min_size(&o, n, &min, NULL)) {
			assert_true(n < 4);
			refused++;
			continue;
		}
		sets += make_on_several(&o, n, min);
		made++;
	}
	printf("%u filesystems, %u refused, read with %u sets of devices\n", made, refused, sets);
	assert_true(made > (UNIT_PARITY ? 70 : 40) && sets > (UNIT_PARITY ? 300 : 150));
}

static void create(struct sparse **devices, struct btrkit_io **ios, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		devices[i] = sparse_create(200 * MIB, NULL);
		ios[i] = sparse_io(devices[i]);
	}
}

static void release(struct sparse **devices, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sparse_free(devices[i]);
}

static void defaults_follow_the_devices(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_mkfs_result result;
	struct sparse *devices[2];
	struct btrkit_io *ios[2];

	(void)state;
	for (unsigned n = 1; n <= 2; n++) {
		create(devices, ios, n);
		assert_int_equal(btrkit_mkfs(ios, n, &o, &result, NULL), 0);
		assert_int_equal(result.num_groups, 3);
		assert_int_equal(result.groups[0].type, BG_DATA);
		assert_int_equal(result.groups[1].type, BG_SYSTEM | (n > 1 ? BG_RAID1 : BG_DUP));
		assert_int_equal(result.groups[2].type, BG_METADATA | (n > 1 ? BG_RAID1 : BG_DUP));
		release(devices, n);
	}
}

/* A failing device makes mkfs fail, and is named in the error. */
static void a_device_that_fails_is_named(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	(void)state;
	for (unsigned bad = 0; bad < 3; bad++) {
		for (unsigned after = 0; after < 40; after++) {
			struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			struct sparse *devices[3];
			struct btrkit_io *ios[3];

			faults.fail_write_after = after;
			create(devices, ios, 3);
			assert_int_equal(btrkit_io_fault(sparse_io(devices[bad]), &faults, &ios[bad], NULL), 0);
			assert_int_equal(btrkit_mkfs(ios, 3, &o, NULL, &err), -EIO);
			assert_true(err.places & BTRKIT_AT_DEVID);
			assert_int_equal(err.devid, bad + 1);
			btrkit_io_close(ios[bad]);
			release(devices, 3);
		}
	}
}

struct told {
	uint64_t last, total;
	unsigned calls;
	int ret;
};

static int hear(void *ctx, uint64_t done, uint64_t total)
{
	struct told *t = ctx;

	assert_true(done >= t->last && done <= total);
	t->last = done;
	t->total = total;
	t->calls++;
	return t->ret;
}

static void discarding_is_told_and_ended(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	(void)state;
	o.flags = BTRKIT_MKFS_DISCARD;
	o.progress = hear;
	for (unsigned n = 1; n <= 3; n++) {
		for (unsigned ended = 0; ended < 2; ended++) {
			struct told told = { .ret = ended ? -EINTR : 0 };
			struct sparse *devices[3];
			struct btrkit_io *ios[3];
			int ret;

			o.progress_ctx = &told;
			create(devices, ios, n);
			ret = btrkit_mkfs(ios, n, &o, NULL, NULL);
			/* With threads, the last device may be done before the cancellation is noticed. */
			assert_true(ended ? ret == -EINTR || (!ret && n > 1) : !ret);
			assert_true(told.calls > 0);
			assert_int_equal(told.total, n * 200 * MIB);
			release(devices, n);
		}
	}
}

/* Discards of several devices wait here for each other, and for the first progress call. */
struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned wanted, here; /* number of devices, and of those whose first discard has begun */
	unsigned discards;
	bool told, late;
};

static int wait_for_all(void *ctx, uint64_t offset, uint64_t len)
{
	struct meeting *m = ctx;
	struct timespec until;

	(void)len;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&m->lock);
	m->discards++;
	m->here += !offset;
	pthread_cond_broadcast(&m->changed);
	while (!m->late && (m->here < m->wanted || !m->told))
		m->late = pthread_cond_timedwait(&m->changed, &m->lock, &until);
	pthread_mutex_unlock(&m->lock);
	/* Give the thread that called progress time to cancel. */
	usleep(1000);
	return 0;
}

static int tell_and_end(void *ctx, uint64_t done, uint64_t total)
{
	struct meeting *m = ctx;

	(void)done;
	(void)total;
	pthread_mutex_lock(&m->lock);
	m->told = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return -EINTR;
}

/*
 * The first discard of each device waits for those of the others, and all wait for the first progress call, which
 * cancels them. This proves that devices are discarded in parallel.
 */
static void devices_are_discarded_at_once(void **state)
{
	static const struct btrkit_io_record_ops ops = { .discard = wait_for_all };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	(void)state;
	o.flags = BTRKIT_MKFS_DISCARD;
	o.progress = tell_and_end;
	for (unsigned n = 2; n <= 5; n++) {
		struct meeting m = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .wanted = n };
		struct sparse *devices[5];
		struct btrkit_io *ios[5];

		o.progress_ctx = &m;
		for (unsigned i = 0; i < n; i++) {
			devices[i] = sparse_create(2000 * 1024 * MIB, NULL);
			assert_int_equal(btrkit_io_record(sparse_io(devices[i]), &ops, &m, &ios[i], NULL), 0);
		}
		assert_int_equal(btrkit_mkfs(ios, n, &o, NULL, NULL), -EINTR);
		assert_false(m.late);
		assert_in_range(m.discards, n, n * 900);
		for (unsigned i = 0; i < n; i++)
			btrkit_io_close(ios[i]);
		release(devices, n);
	}
}

static int make_into(uint8_t *bytes, uint64_t size, const struct btrkit_mkfs_options *o)
{
	struct btrkit_io *io;
	int ret;

	assert_int_equal(btrkit_io_memory(size, &io, NULL), 0);
	ret = btrkit_mkfs(&io, 1, o, NULL, NULL);
	if (!ret)
		ret = btrkit_io_read(io, 0, bytes, size, NULL);
	btrkit_io_close(io);
	return ret;
}

static void equal_options_make_equal_bytes(void **state)
{
	static const uint8_t fsid[16] = { 1, 2, 3 }, other[16] = { 1, 2, 4 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	uint8_t *a = malloc(48 * MIB), *b = malloc(48 * MIB);

	(void)state;
	UNIT_NEEDS(UNIT_UUID);
	assert_true(a && b);
	o.flags = BTRKIT_MKFS_REPRODUCIBLE;
	o.metadata = BTRKIT_PROFILE_SINGLE;
	o.fsid = fsid;
	assert_int_equal(make_into(a, 48 * MIB, &o), 0);
	assert_int_equal(make_into(b, 48 * MIB, &o), 0);
	assert_memory_equal(a, b, 48 * MIB);
	o.fsid = other;
	assert_int_equal(make_into(b, 48 * MIB, &o), 0);
	assert_true(memcmp(a, b, 48 * MIB) != 0);
	/* Without BTRKIT_MKFS_DETERMINISTIC, UUIDs are random. */
	o.flags = 0;
	assert_int_equal(make_into(a, 48 * MIB, &o), 0);
	assert_true(memcmp(a, b, 48 * MIB) != 0);
	free(a);
	free(b);
}

static void bad_options_leave_the_device_alone(void **state)
{
	static const struct {
		struct btrkit_mkfs_options o;
		uint64_t size;
		int ret;
	} bad[] = {
		{ { .metadata = BTRKIT_PROFILE_DUP }, 108 * MIB, -EINVAL },
		{ { .metadata = BTRKIT_PROFILE_SINGLE }, 44 * MIB, -EINVAL },
		{ { .metadata = BTRKIT_PROFILE_DUP, .byte_count = 200 * MIB }, 150 * MIB, -EINVAL },
		{ { .nodesize = 2048 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 131072 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 20000 }, 150 * MIB, -EINVAL },
		{ { .sectorsize = 512 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 4096, .sectorsize = 8192 }, 150 * MIB, -EINVAL },
		{ { .mixed = true, .nodesize = 16384 }, 150 * MIB, -EINVAL },
		{ { .mixed = true, .metadata = BTRKIT_PROFILE_DUP }, 300 * MIB, -EINVAL },
		{ { .label = "a\nb" }, 150 * MIB, -EINVAL },
		{ { .flags = 1u << 30 }, 150 * MIB, -EINVAL },
		{ { .metadata = BTRKIT_PROFILE_RAID1 }, 300 * MIB, -EINVAL },
		{ { .data = BTRKIT_PROFILE_RAID10 }, 300 * MIB, -EINVAL },
		{ { .data = BTRKIT_PROFILE_RAID6 + 1 }, 300 * MIB, -EINVAL },
		{ { .csum = 4 }, 150 * MIB, -EINVAL },
		{ { .incompat = INCOMPAT_ZONED }, 150 * MIB, -EOPNOTSUPP },
		{ { .incompat = INCOMPAT_RAID_STRIPE_TREE }, 150 * MIB, -EOPNOTSUPP },
		{ { .incompat = 1ull << 40 }, 150 * MIB, -EOPNOTSUPP },
		{ { .compat_ro = COMPAT_RO_VERITY }, 150 * MIB, -EOPNOTSUPP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct sparse *s = sparse_create(bad[i].size, NULL);
		struct btrkit_io *io;

		/* The first write would fail with a different error. */
		faults.fail_write_after = 0;
		faults.error = -ENXIO;
		assert_int_equal(btrkit_io_fault(sparse_io(s), &faults, &io, NULL), 0);
		if (btrkit_mkfs(&io, 1, &bad[i].o, NULL, &err) != bad[i].ret)
			fail_msg("options %zu: %d: %s", i, err.err, err.message);
		btrkit_io_close(io);
		sparse_free(s);
	}
}

/* No block of a group overlaps a hole, and the space between blocks is free. */
static void expect_holes(const struct mkfs_group *g, uint32_t nodesize)
{
	uint64_t hole_bytes = 0, used, end, free_bytes = 0, from, last = 0;
	struct mkfs_range range;

	for (unsigned h = 0; h < g->num_holes; h++)
		hole_bytes += g->holes[h].length + 2 * nodesize;
	if (hole_bytes >= g->length)
		return;
	used = (g->length - hole_bytes) / nodesize;
	for (uint64_t slot = 0; slot < used; slot++) {
		uint64_t at = mkfs_group_block(g, nodesize, slot);

		assert_true(!slot || at > last);
		for (unsigned h = 0; h < g->num_holes; h++)
			assert_true(at + nodesize <= g->holes[h].start ||
				    at >= g->holes[h].start + g->holes[h].length);
		/* No copy of a block overlaps a superblock, which is what holes are for. */
		for (unsigned copy = 0; copy < raid_copies(&g->shape); copy++) {
			const struct raid_place p = raid_map(&g->shape, at - g->logical, copy);
			const uint64_t physical = g->stripes[p.stripe].physical + p.offset;

			for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
				assert_true(physical + nodesize <= super_offset(mirror) ||
					    physical >= super_offset(mirror) + SUPER_SIZE);
		}
		last = at;
	}
	if (nodesize != 65536 || used > 4096)
		return;
	end = mkfs_group_blocks_end(g, nodesize, used);
	for (from = g->logical; mkfs_group_next_free(g, end, from, &range); from = range.start + range.length)
		free_bytes += range.length;
	assert_int_equal(free_bytes + used * nodesize, g->length);
}

/* Wherever a superblock mirror is inside a group, in any copy, the strip it is in has no blocks, for every nodesize. */
static void blocks_keep_off_superblocks(void **state)
{
	static const uint32_t nodesizes[] = { 4096, 16384, 65536 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	unsigned holes = 0;

	(void)state;
	o.nodesize = 16384;
	o.data = BTRKIT_PROFILE_SINGLE;
	for (unsigned i = 0; i < 9 * 30; i++) {
		struct mkfs_device devices[DEVICES_MAX] = { 0 };
		const unsigned n = i / 9 ? DEVICES_MAX : 1;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct mkfs_layout l;

		o.metadata = BTRKIT_PROFILE_SINGLE + i % 9;
		if (n < mkfs_profile_devices(mkfs_profile(o.metadata)))
			continue;
		for (unsigned d = 0; d < n; d++)
			devices[d].total_bytes = (109 * MIB << i / 18) + d * 5 * MIB;
		need(mkfs_layout(&o, devices, n, &l, &err), &err);
		for (unsigned k = 0; k < l.num_groups; k++) {
			holes += l.groups[k].num_holes;
			for (size_t s = 0; s < ARRAY_SIZE(nodesizes); s++)
				expect_holes(&l.groups[k], nodesizes[s]);
		}
		mkfs_layout_release(&l);
	}
	printf("%u holes\n", holes);
	assert_true(holes > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_is_whole),
		cmocka_unit_test(every_profile_is_whole),
		cmocka_unit_test(defaults_follow_the_devices),
		cmocka_unit_test(a_device_that_fails_is_named),
		cmocka_unit_test(discarding_is_told_and_ended),
		cmocka_unit_test(devices_are_discarded_at_once),
		cmocka_unit_test(equal_options_make_equal_bytes),
		cmocka_unit_test(bad_options_leave_the_device_alone),
		cmocka_unit_test(blocks_keep_off_superblocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
