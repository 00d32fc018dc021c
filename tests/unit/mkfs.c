// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filesystems made in memory: they open, every item is valid, and what was asked for is there. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/format/feature_bits.h"
#include "lib/format/ids.h"
#include "lib/mkfs/layout.h"

#define MIB (1ull << 20)

static int count_bytes(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(size_t *)ctx += len;
	return 0;
}

/* Makes it, and reads all of it: the dump judges each block and each item. */
static struct btrkit_fs *make(const struct btrkit_mkfs_options *o, uint64_t size, struct btrkit_mkfs_result *result)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;
	struct btrkit_io *io;
	size_t printed = 0;
	char line[512];

	assert_int_equal(btrkit_io_memory(size, &io, NULL), 0);
	if (btrkit_mkfs(io, o, result, &err) || btrkit_fs_open(&io, 1, NULL, &fs, &err) ||
	    btrkit_dump_tree(fs, NULL, count_bytes, &printed, &err))
		fail_msg("%s", btrkit_error_format(&err, line, sizeof(line)));
	assert_true(printed > 5000);
	return fs;
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
		uint64_t min;

		o.data = bits & 1 ? BTRKIT_DUP : BTRKIT_SINGLE;
		o.metadata = bits & 2 ? BTRKIT_DUP : BTRKIT_SINGLE;
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
		assert_int_equal(btrkit_mkfs_min_size(&o, &min, NULL), 0);
		fs = make(&o, min, &result);
		btrkit_fs_get_info(fs, &info);
		assert_int_equal(info.nodesize, o.mixed ? 4096 : o.nodesize);
		assert_memory_equal(info.fsid, result.fsid, 16);
		/* Block groups have a tree of their own only beside the two features that Linux demands. */
		assert_int_equal(!!(result.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE), !(bits & (8 | 16 | 64)));
		btrkit_fs_close(fs);
		made++;
	}
	printf("%u combinations\n", made);
	assert_true(made > 90);
}

static int make_into(uint8_t *bytes, uint64_t size, const struct btrkit_mkfs_options *o)
{
	struct btrkit_io *io;
	int ret;

	assert_int_equal(btrkit_io_memory(size, &io, NULL), 0);
	ret = btrkit_mkfs(io, o, NULL, NULL);
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
	assert_true(a && b);
	o.flags = BTRKIT_MKFS_REPRODUCIBLE;
	o.metadata = BTRKIT_SINGLE;
	o.fsid = fsid;
	assert_int_equal(make_into(a, 48 * MIB, &o), 0);
	assert_int_equal(make_into(b, 48 * MIB, &o), 0);
	assert_memory_equal(a, b, 48 * MIB);
	o.fsid = other;
	assert_int_equal(make_into(b, 48 * MIB, &o), 0);
	assert_true(memcmp(a, b, 48 * MIB) != 0);
	/* What is not derived is random. */
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
		{ { .metadata = BTRKIT_DUP }, 108 * MIB, -EINVAL },
		{ { .metadata = BTRKIT_SINGLE }, 44 * MIB, -EINVAL },
		{ { .metadata = BTRKIT_DUP, .byte_count = 200 * MIB }, 150 * MIB, -EINVAL },
		{ { .nodesize = 2048 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 131072 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 20000 }, 150 * MIB, -EINVAL },
		{ { .sectorsize = 512 }, 150 * MIB, -EINVAL },
		{ { .nodesize = 4096, .sectorsize = 8192 }, 150 * MIB, -EINVAL },
		{ { .mixed = true, .nodesize = 16384 }, 150 * MIB, -EINVAL },
		{ { .mixed = true, .metadata = BTRKIT_DUP }, 300 * MIB, -EINVAL },
		{ { .label = "a\nb" }, 150 * MIB, -EINVAL },
		{ { .flags = 1u << 30 }, 150 * MIB, -EINVAL },
		{ { .incompat = INCOMPAT_RAID56 }, 150 * MIB, -EOPNOTSUPP },
		{ { .incompat = 1ull << 40 }, 150 * MIB, -EOPNOTSUPP },
		{ { .compat_ro = COMPAT_RO_VERITY }, 150 * MIB, -EOPNOTSUPP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_io *below, *io;

		/* The first write would fail in another way. */
		faults.fail_write_after = 0;
		faults.error = -ENXIO;
		assert_int_equal(btrkit_io_memory(bad[i].size, &below, NULL), 0);
		assert_int_equal(btrkit_io_fault(below, &faults, &io, NULL), 0);
		if (btrkit_mkfs(io, &bad[i].o, NULL, &err) != bad[i].ret)
			fail_msg("options %zu: %d: %s", i, err.err, err.message);
		btrkit_io_close(io);
	}
}

/* A mirror that lies inside a group, in either copy, leaves its stripe free, whatever the nodesize. */
static void blocks_keep_off_superblocks(void **state)
{
	static const uint32_t nodesizes[] = { 4096, 16384, 65536 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	unsigned holes = 0;

	(void)state;
	for (uint64_t total = 109 * MIB; total < 1ull << 42; total += total / 3) {
		struct mkfs_layout l;

		mkfs_layout(&o, total - total % 4096, &l);
		for (unsigned i = 0; i < l.num_groups; i++) {
			const struct mkfs_group *g = &l.groups[i];

			holes += g->num_holes;
			for (size_t k = 0; k < ARRAY_SIZE(nodesizes); k++) {
				uint64_t used = g->length / nodesizes[k] - g->num_holes * 17, free_bytes = 0, from = 0,
					 last = 0;
				struct mkfs_range range;

				for (uint64_t slot = 0; slot < used; slot++) {
					uint64_t at = mkfs_group_block(g, nodesizes[k], slot);

					assert_true(!slot || at > last);
					for (unsigned h = 0; h < g->num_holes; h++)
						assert_true(at + nodesizes[k] <= g->holes[h].start ||
							    at >= g->holes[h].start + g->holes[h].length);
					last = at;
				}
				if (k != 2 || used > 4096)
					continue;
				for (; mkfs_group_next_free(g, nodesizes[k], used, from, &range);
				     from = range.start + range.length)
					free_bytes += range.length;
				assert_int_equal(free_bytes + used * nodesizes[k], g->length);
			}
		}
	}
	assert_true(holes > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_is_whole),
		cmocka_unit_test(equal_options_make_equal_bytes),
		cmocka_unit_test(bad_options_leave_the_device_alone),
		cmocka_unit_test(blocks_keep_off_superblocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
