// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Overlapping checksum items: each item that begins before the end of the preceding ones is reported, in any
 * arrangement.
 */
#include "tests/unit/unit.h"

#include <btrkit/check.h>

#include "lib/format/ids.h"
#include "tests/unit/synthetic.h"

#define ITEMS_MAX 4
#define START (64ull << 20)
#define SECTOR 4096u

/* An item: its first sector, and the number of sectors that it has checksums for. */
struct sums {
	uint32_t from, n;
};

static int count(void *ctx, const struct btrkit_finding *f)
{
	*(unsigned *)ctx += !strcmp(f->code->name, "BTR-CSUM-OVERLAP");
	return 0;
}

static unsigned overlaps(const struct sums *sums, size_t n)
{
	static const uint8_t bytes[1024];
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct syn_item items[ITEMS_MAX];
	struct synthetic s;
	struct btrkit_fs *fs;
	unsigned told = 0;

	assert_true(n <= ITEMS_MAX);
	for (size_t i = 0; i < n; i++)
		items[i] = (struct syn_item){ KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, START + sums[i].from * SECTOR),
					      bytes, sums[i].n * sizeof(uint32_t) };
	syn_begin(&s);
	syn_put_fs_tree(&s, NULL, 0);
	syn_put_tree(&s, OID_CSUM_TREE, items, n);
	syn_finish(&s, 0, NULL, 0);
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	opts.threads = 1;
	opts.finding = count;
	opts.ctx = &told;
	assert_int_equal(btrkit_check(fs, &opts, NULL, NULL), 0);
	btrkit_fs_close(fs);
	return told;
}

#define OVERLAPS(...) overlaps((const struct sums[]){ __VA_ARGS__ }, ARRAY_SIZE(((const struct sums[]){ __VA_ARGS__ })))

static void each_is_told(void **state)
{
	(void)state;
	assert_int_equal(OVERLAPS({ 0, 10 }, { 10, 1 }), 0);
	assert_int_equal(OVERLAPS({ 0, 10 }, { 9, 2 }), 1);
	assert_int_equal(OVERLAPS({ 0, 10 }, { 9, 2 }, { 10, 2 }), 2);
	/* An item inside a longer one does not end the longer one. */
	assert_int_equal(OVERLAPS({ 0, 10 }, { 1, 2 }, { 5, 1 }), 2);
	assert_int_equal(OVERLAPS({ 0, 10 }, { 1, 2 }, { 5, 1 }, { 10, 1 }), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
