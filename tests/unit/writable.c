// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reasons not to write a filesystem: each is reported by name when it is opened for writing, and it can still be read.
 */
#include "tests/unit/unit.h"

#include <btrkit/feature.h>

#include "lib/format/feature_bits.h"
#include "lib/format/ids.h"
#include "lib/format/items/devices/balance.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/super.h"
#include "lib/volume/parity.h"
#include "tests/unit/synthetic.h"

static struct btrkit_open_options write_options(void)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;

	opts.flags = BTRKIT_OPEN_WRITE;
	return opts;
}

/* Open for writing. @word: must be in the message of the error, and read-only opening must work; NULL: no error */
static void expect(struct synthetic *s, int expected, const char *word)
{
	const struct btrkit_open_options opts = write_options();
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;
	int ret = syn_open(s, &opts, &fs, &err);

	if (ret != expected || (ret && !strstr(err.message, word)))
		fail_msg("%d (%s), not %d (%s)", ret, err.message, expected, word ? word : "");
	if (ret)
		assert_int_equal(syn_open(s, NULL, &fs, NULL), 0);
	btrkit_fs_close(fs);
}

static struct synthetic plain(void)
{
	struct synthetic s;

	syn_create(&s, NULL, 0);
	return s;
}

/* Set or clear @bits of the field at @offset. */
static void with_bits(size_t offset, uint64_t bits, bool set, const char *word)
{
	struct synthetic s = plain();
	struct disk_super super;
	le64 *field = (le64 *)((uint8_t *)&super + offset);

	syn_get_super(&s, 0, &super);
	*field = le64_put(set ? le64_get(*field) | bits : le64_get(*field) & ~bits);
	syn_put_super(&s, 0, &super, 1);
	expect(&s, word ? -EOPNOTSUPP : 0, word);
}

static void nothing_stands_against_a_plain_one(void **state)
{
	struct synthetic s = plain();

	(void)state;
	expect(&s, 0, NULL);
}

static void superblock_features_are_refused_by_name(void **state)
{
	const size_t flags = offsetof(struct disk_super, flags), ro = offsetof(struct disk_super, compat_ro_flags);

	(void)state;
	with_bits(flags, 1ull << 32, true, "seed device");
	with_bits(flags, 1ull << 33, true, "metadata dump");
	with_bits(flags, 1ull << 34, true, "metadata dump of version 2");
	with_bits(flags, 1ull << 2, true, "error flag is set");
	with_bits(flags, 1ull << 0, true, NULL);
	with_bits(offsetof(struct disk_super, compat_flags), UINT64_MAX, true, NULL);
	with_bits(offsetof(struct disk_super, incompat_flags), INCOMPAT_MIXED_BACKREF, false, "no mixed-backref");
	with_bits(offsetof(struct disk_super, log_root), SYN_LOGICAL, true, "log tree");
	with_bits(ro, COMPAT_RO_VERITY, true, NULL);
	with_bits(ro, 1ull << 4, true, "unknown compat_ro bit 4");
	with_bits(ro, 1ull << 63, true, "unknown compat_ro bit 63");
}

/* A filesystem with this feature cannot be opened at all. */
static void refused_altogether(const struct btrkit_feature *f)
{
	for (unsigned flags = 0; flags <= BTRKIT_OPEN_WRITE; flags += BTRKIT_OPEN_WRITE) {
		struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct synthetic s = plain();
		struct btrkit_fs *fs = NULL;
		struct disk_super super;

		opts.flags = flags;
		syn_get_super(&s, 0, &super);
		super.incompat_flags = le64_put(le64_get(super.incompat_flags) | f->bit);
		syn_put_super(&s, 0, &super, 1);
		assert_int_equal(syn_open(&s, &opts, &fs, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.message, f->name));
		syn_destroy(&s);
	}
}

/* The table of features says of each bit whether it can be read and written. */
static void the_table_agrees(void **state)
{
	size_t n;
	const struct btrkit_feature *f = btrkit_features(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		if (f[i].support == BTRKIT_SUPPORT_REFUSED)
			refused_altogether(&f[i]);
		if (f[i].support == BTRKIT_SUPPORT_REFUSED || f[i].bit == INCOMPAT_METADATA_UUID)
			continue;
		with_bits(f[i].set == BTRKIT_FEATURE_COMPAT_RO ? offsetof(struct disk_super, compat_ro_flags) :
								 offsetof(struct disk_super, incompat_flags),
			  f[i].bit, true, f[i].support == BTRKIT_SUPPORT_WRITE ? NULL : f[i].name);
	}
}

static void superblock_copies(void **state)
{
	struct btrkit_open_options opts = write_options();
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;
	struct synthetic s = plain();
	struct disk_super super;

	(void)state;
	opts.flags |= BTRKIT_OPEN_SUPER_MIRROR;
	opts.super_mirror = 1;
	assert_int_equal(syn_open(&s, &opts, &fs, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "mirror"));
	opts.super_mirror = 0;
	assert_int_equal(syn_open(&s, &opts, &fs, &err), 0);
	btrkit_fs_close(fs);
	s = plain();
	syn_get_super(&s, 0, &super);
	super.label[0] ^= 1;
	syn_put_super(&s, 0, &super, 0);
	expect(&s, -EOPNOTSUPP, "primary superblock is invalid");
}

static void what_is_under_way_is_refused(void **state)
{
	static const struct disk_balance balance;
	static const struct disk_root_item reloc = { .bytenr = { { 0, 0, 1 } } };
	const struct {
		struct syn_item item;
		const char *word;
	} full_stripes[] = {
		{ { KEY(OID_BALANCE, KEY_TEMPORARY_ITEM, 0), &balance, sizeof(balance) }, "unfinished balance" },
		{ { KEY(OID_TREE_RELOC, KEY_ROOT_ITEM, OID_FS_TREE), &reloc, sizeof(reloc) }, "relocation tree" },
		{ { KEY(OID_BALANCE - 1, KEY_TEMPORARY_ITEM, 0), &balance, sizeof(balance) }, NULL },
		{ { KEY(OID_TREE_RELOC + 1, KEY_ROOT_ITEM, 0), &reloc, sizeof(reloc) }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(full_stripes); i++) {
		struct synthetic s;

		syn_begin(&s);
		syn_put_fs_tree(&s, NULL, 0);
		syn_add_root_item(&s, &full_stripes[i].item);
		syn_finish(&s, 0, NULL, 0);
		expect(&s, full_stripes[i].word ? -EOPNOTSUPP : 0, full_stripes[i].word);
	}
}

/* There may be only one status item, with the right key. */
static void quotas_have_one_status(void **state)
{
	const struct disk_qgroup_status status = { .version = le64_put(QGROUP_STATUS_VERSION),
						   .generation = le64_put(SYN_GENERATION) };
	static const struct disk_qgroup_info info;
	const struct {
		struct btrkit_key keys[2];
		const char *word;
	} full_stripes[] = {
		{ { KEY(0, KEY_QGROUP_STATUS, 0), KEY(0, KEY_QGROUP_INFO, 5) }, NULL },
		{ { KEY(0, KEY_QGROUP_STATUS, 1), KEY(0, KEY_QGROUP_INFO, 5) }, "invalid key" },
		{ { KEY(0, KEY_QGROUP_STATUS, 0), KEY(0, KEY_QGROUP_STATUS, 1) }, "invalid key" },
		{ { KEY(0, KEY_QGROUP_INFO, 5), KEY(1, KEY_QGROUP_STATUS, 0) }, "invalid key" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(full_stripes); i++) {
		struct syn_item items[2];
		struct synthetic s;

		for (size_t k = 0; k < 2; k++) {
			const bool is_status = full_stripes[i].keys[k].type == KEY_QGROUP_STATUS;

			items[k] = (struct syn_item){ full_stripes[i].keys[k],
						      is_status ? (const void *)&status : &info,
						      is_status ? sizeof(status) : sizeof(info) };
		}
		syn_begin(&s);
		syn_put_fs_tree(&s, NULL, 0);
		syn_put_tree(&s, OID_QUOTA_TREE, items, 2);
		syn_finish(&s, 0, NULL, 0);
		expect(&s, full_stripes[i].word ? -EUCLEAN : 0, full_stripes[i].word);
	}
}

static struct disk_dev_extent dev_extent(uint64_t chunk, uint64_t length)
{
	return (struct disk_dev_extent){ .chunk_tree = le64_put(OID_CHUNK_TREE),
					 .chunk_objectid = le64_put(OID_FIRST_CHUNK_TREE),
					 .chunk_offset = le64_put(chunk),
					 .length = le64_put(length) };
}

/*
 * Makes a filesystem with these items in its device tree. The root item of that tree comes before that of tree 5, which
 * syn_put_tree() alone cannot do.
 */
static struct synthetic with_dev_tree(const struct syn_item *items, size_t n)
{
	struct disk_root_item root = { .level = 0 };
	struct synthetic s;

	syn_begin(&s);
	syn_put_tree(&s, OID_DEV_TREE, items, n);
	root = s.more_roots[0];
	syn_put_fs_tree(&s, NULL, 0);
	s.num_more = 0;
	s.early = (struct syn_item){ KEY(OID_DEV_TREE, KEY_ROOT_ITEM, 0), &root, sizeof(root) };
	syn_finish(&s, 0, NULL, 0);
	return s;
}

static void an_unfinished_device_replace_is_refused(void **state)
{
	/* Never started, started, finished, cancelled, suspended. */
	static const bool unfinished[] = { false, true, false, false, true };
	const struct disk_dev_extent extent = dev_extent(SYN_LOGICAL, SYN_LENGTH);

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(unfinished); i++) {
		const struct disk_dev_replace replace = { .state = le64_put(i) };
		const struct syn_item items[] = {
			{ KEY(0, KEY_DEV_REPLACE, 0), &replace, sizeof(replace) },
			{ KEY(1, KEY_DEV_EXTENT, SYN_COPY_1), &extent, sizeof(extent) },
			{ KEY(1, KEY_DEV_EXTENT, SYN_COPY_2), &extent, sizeof(extent) },
		};
		struct synthetic s = with_dev_tree(items, ARRAY_SIZE(items));

		expect(&s, unfinished[i] ? -EOPNOTSUPP : 0, "unfinished device replace");
	}
}

/* If a device extent is missing, a new chunk could be allocated over an existing one. */
static void device_extents_are_those_of_the_chunks(void **state)
{
	const struct disk_dev_extent good = dev_extent(SYN_LOGICAL, SYN_LENGTH),
				     other = dev_extent(SYN_LOGICAL + SYN_LENGTH, SYN_LENGTH),
				     short_one = dev_extent(SYN_LOGICAL, SYN_LENGTH - 65536);
	const uint64_t a = SYN_COPY_1, b = SYN_COPY_2, behind = SYN_COPY_2 + SYN_LENGTH;
	const struct {
		struct {
			uint64_t devid, at;
			const struct disk_dev_extent *extent;
		} extents[3];
		size_t n;
		const char *word;
	} full_stripes[] = {
		{ { { 1, a, &good }, { 1, b, &good } }, 2, NULL },
		{ { { 0 } }, 0, "has no device extent" },
		{ { { 1, a, &good } }, 1, "has no device extent" },
		{ { { 1, b, &good } }, 1, "has no device extent" },
		{ { { 1, a, &good }, { 1, behind, &good } }, 2, "has no device extent" },
		{ { { 1, a, &good }, { 2, b, &good } }, 2, "has no device extent" },
		{ { { 0, a, &good }, { 1, a, &good }, { 1, b, &good } }, 3, "has no stripe there" },
		{ { { 1, a, &good }, { 1, b, &good }, { 1, behind, &good } }, 3, "has no stripe there" },
		{ { { 1, a, &good }, { 1, b, &good }, { 2, a, &good } }, 3, "has no stripe there" },
		{ { { 1, a, &good }, { 1, b, &other } }, 2, "of chunk 33554432, the stripe there" },
		{ { { 1, a, &short_one }, { 1, b, &good } }, 2, "device extent has 16711680 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(full_stripes); i++) {
		struct syn_item items[ARRAY_SIZE(full_stripes[0].extents)];
		struct synthetic s;

		for (size_t k = 0; k < full_stripes[i].n; k++)
			items[k] = (struct syn_item){ KEY(full_stripes[i].extents[k].devid, KEY_DEV_EXTENT,
							  full_stripes[i].extents[k].at),
						      full_stripes[i].extents[k].extent, sizeof(good) };
		s = with_dev_tree(items, full_stripes[i].n);
		expect(&s, full_stripes[i].word ? -EUCLEAN : 0, full_stripes[i].word);
	}
}

static void devices_that_cannot_be_written(void **state)
{
	const struct btrkit_open_options opts = write_options();
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io_ops ops;
	struct btrkit_fs *fs;
	struct synthetic s = plain();

	(void)state;
	s.io->size -= 4096;
	assert_int_equal(syn_open(&s, &opts, &fs, &err), -EUCLEAN);
	assert_string_equal(err.field, "dev_item.total_bytes");
	s.io->size += 4096;
	ops = *s.io->ops;
	ops.write = NULL;
	s.io->ops = &ops;
	assert_int_equal(syn_open(&s, &opts, &fs, &err), -EROFS);
	syn_destroy(&s);
}

/* Puts the given chunk into the superblocks and into its item. */
static struct synthetic with_chunk(uint64_t type, uint64_t length, uint64_t first, uint64_t second)
{
	struct synthetic s = plain();
	uint8_t block[SYN_NODESIZE];
	struct disk_super super;
	struct {
		struct disk_chunk chunk;
		struct disk_stripe stripes[2];
	} *c = (void *)(super.sys_chunk_array + sizeof(struct disk_key));

	for (unsigned mirror = 0; mirror < 2; mirror++) {
		syn_get_super(&s, mirror, &super);
		c->chunk.type = le64_put(type);
		c->chunk.length = le64_put(length);
		c->stripes[0].offset = le64_put(first);
		c->stripes[1].offset = le64_put(second);
		syn_put_super(&s, mirror, &super, 1);
	}
	/* It is the only item of the chunk tree. */
	syn_get(&s, s.chunk_root, 0, block);
	memcpy(block + sizeof(block) - sizeof(*c), c, sizeof(*c));
	syn_put(&s, s.chunk_root, 0, block, 1);
	return s;
}

static void chunks_where_none_can_be(void **state)
{
	const uint64_t dup = BG_SYSTEM | BG_DUP, raid0 = BG_SYSTEM | BG_RAID0, raid5 = BG_SYSTEM | BG_RAID5;
	const uint64_t strip = 65536, first = SYN_COPY_1, behind = first + SYN_LENGTH;
	const struct {
		uint64_t type, length, first, second;
		const char *word;
	} full_stripes[] = {
		{ dup, SYN_LENGTH, first, behind, NULL },
		{ dup, SYN_LENGTH, first, behind - 4096, "overlap on a device" },
		{ dup, SYN_LENGTH, first, first, "overlap on a device" },
		{ dup, SYN_LENGTH, first, SYN_SIZE - SYN_LENGTH, NULL },
		{ dup, SYN_LENGTH, first, SYN_SIZE - SYN_LENGTH + 4096, "extends past the end of its device" },
		{ dup, SYN_LENGTH, first, UINT64_MAX - 4095 - SYN_LENGTH, "extends past the end of its device" },
		{ dup, SYN_LENGTH - 4096, first, behind, NULL },
		{ raid0, SYN_LENGTH, first, behind, NULL },
		{ raid0, SYN_LENGTH - strip, first, behind, "ends within a full stripe" },
		{ raid0, SYN_LENGTH - 4096, first, behind, "ends within a full stripe" },
		{ raid5, SYN_LENGTH, first, behind, NULL },
		{ raid5, SYN_LENGTH - 4096, first, behind, "ends within a full stripe" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(full_stripes); i++) {
		struct synthetic s;

		if (full_stripes[i].type == raid5 && !parity_available())
			continue;
		s = with_chunk(full_stripes[i].type, full_stripes[i].length, full_stripes[i].first,
			       full_stripes[i].second);
		expect(&s, full_stripes[i].word ? -EUCLEAN : 0, full_stripes[i].word);
	}
}

/* Linux looks for a device by the ID and the UUID of a stripe, in the superblock and in the chunk tree. */
static void stripes_name_their_device(void **state)
{
	const size_t size = sizeof(struct disk_chunk) + 2 * sizeof(struct disk_stripe);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct synthetic s = plain();
		uint8_t block[SYN_NODESIZE];
		struct disk_super super;
		const bool tree = i & 2;
		struct {
			struct disk_chunk chunk;
			struct disk_stripe stripes[2];
		} *c = (void *)(tree ? block + sizeof(block) - size : super.sys_chunk_array + sizeof(struct disk_key));

		syn_get_super(&s, 0, &super);
		syn_get(&s, s.chunk_root, 0, block);
		c->stripes[i & 1].dev_uuid[15] ^= 1;
		syn_put_super(&s, 0, &super, 1);
		syn_put(&s, s.chunk_root, 0, block, 1);
		expect(&s, -EUCLEAN, i & 1 ? "stripe 1 of chunk 16777216 has" : "stripe 0 of chunk 16777216 has");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_stands_against_a_plain_one),
		cmocka_unit_test(superblock_features_are_refused_by_name),
		cmocka_unit_test(the_table_agrees),
		cmocka_unit_test(superblock_copies),
		cmocka_unit_test(what_is_under_way_is_refused),
		cmocka_unit_test(quotas_have_one_status),
		cmocka_unit_test(an_unfinished_device_replace_is_refused),
		cmocka_unit_test(device_extents_are_those_of_the_chunks),
		cmocka_unit_test(devices_that_cannot_be_written),
		cmocka_unit_test(chunks_where_none_can_be),
		cmocka_unit_test(stripes_name_their_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
