// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the groups of a filled filesystem are placed, and the contents of files in them: one after the other, avoiding
 * superblocks, truncated to what they contain; and how extents and checksums are split at group ends.
 */
#include "tests/unit/unit.h"

#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/base/csum.h"
#include "lib/format/super.h"
#include "lib/mkfs/filled/contents.h"
#include "tests/crash/sparse.h"
#include "tests/random.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define DEVICES_MAX 6

struct rig {
	struct btrkit_mkfs_options opts;
	struct mkfs_device devices[DEVICES_MAX];
	struct sparse *sparse[DEVICES_MAX];
	struct mkfs_layout layout;
	struct mkfs_compact compact;
};

static void need(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (ret)
		fail_msg("%s", btrkit_error_format(err, line, sizeof(line)));
}

/* @size: 0 if the devices grow */
static void create(struct rig *r, enum btrkit_profile data, enum btrkit_profile metadata, unsigned n, uint64_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	memset(r, 0, sizeof(*r));
	r->opts = (struct btrkit_mkfs_options)BTRKIT_MKFS_OPTIONS_INIT;
	r->opts.sectorsize = 4096;
	r->opts.nodesize = 16384;
	r->opts.data = data;
	r->opts.metadata = metadata;
	for (unsigned d = 0; d < n; d++) {
		r->sparse[d] = sparse_create(size ? size : 4096, NULL);
		sparse_like_file(r->sparse[d]);
		r->devices[d].io = sparse_io(r->sparse[d]);
		r->devices[d].total_bytes = size;
	}
	r->compact = (struct mkfs_compact){
		.opts = &r->opts, .devices = r->devices, .num_devices = n, .layout = &r->layout, .grow = !size
	};
	need(mkfs_compact_begin(&r->compact, &err), &err);
}

static void destroy(struct rig *r)
{
	mkfs_compact_release(&r->compact);
	mkfs_layout_release(&r->layout);
	for (unsigned d = 0; d < r->compact.num_devices; d++)
		sparse_free(r->sparse[d]);
}

static bool on_superblock(uint64_t at, uint64_t len)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		if (at < super_offset(mirror) + SUPER_SIZE && at + len > super_offset(mirror))
			return true;
	return false;
}

static bool is_second_copy(const struct mkfs_group *g, unsigned stripe)
{
	return stripe && g->role == MKFS_DATA && g->shape.type & BG_DUP;
}

/* The device extent at an address of a device, or the next one after it. */
static const struct mkfs_group *next_extent(const struct rig *r, unsigned device, uint64_t at, unsigned *stripe)
{
	const struct mkfs_group *found = NULL;
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < r->layout.num_groups; i++) {
		const struct mkfs_group *g = &r->layout.groups[i];

		for (unsigned k = 0; k < g->shape.num_stripes; k++)
			if (g->stripes[k].device == device && g->stripes[k].physical + g->stripe_length > at &&
			    g->stripes[k].physical < best) {
				best = g->stripes[k].physical;
				found = g;
				*stripe = k;
			}
	}
	return found;
}

/* Only second copies of data may have a gap before them, to avoid a superblock. @return how many have */
static unsigned verify_device(const struct rig *r, unsigned device)
{
	uint64_t at = MIB, used = 0;
	const struct mkfs_group *g;
	unsigned stripe, moved = 0;

	while ((g = next_extent(r, device, at, &stripe))) {
		const uint64_t physical = g->stripes[stripe].physical;

		if (is_second_copy(g, stripe))
			assert_false(on_superblock(physical, g->stripe_length));
		if (physical != at) {
			assert_true(is_second_copy(g, stripe) && physical > at);
			assert_true(on_superblock(at, g->stripe_length));
			assert_true(physical == super_offset(1) + 64 * KIB || physical == super_offset(2) + 64 * KIB);
			moved++;
		}
		used += g->stripe_length;
		at = physical + g->stripe_length;
	}
	assert_int_equal(r->devices[device].bytes_used, used);
	assert_int_equal(r->compact.ends[device], at);
	return moved;
}

static unsigned check_rig(const struct rig *r)
{
	uint64_t logical = MIB;
	unsigned moved = 0;

	for (unsigned i = 0; i < r->layout.num_groups; i++) {
		const struct mkfs_group *g = &r->layout.groups[i];

		assert_int_equal(g->logical, logical);
		assert_int_equal(g->length, g->stripe_length * raid_data_stripes(&g->shape));
		assert_int_equal(g->stripe_length % CHUNK_STRIPE_LEN, 0);
		assert_true(g->role != MKFS_DATA || g->end <= g->logical + g->length);
		for (unsigned h = 0; h < g->num_holes; h++)
			assert_true(g->holes[h].start >= g->logical &&
				    g->holes[h].start + g->holes[h].length <= g->logical + g->length);
		logical += g->length;
	}
	assert_int_equal(r->compact.logical, logical);
	for (unsigned d = 0; d < r->compact.num_devices; d++)
		moved += verify_device(r, d);
	return moved;
}

/* In one group, after @last, and without superblocks in any copy. @return whether there is a gap before it */
static bool check_range(const struct rig *r, const struct mkfs_range *range, uint64_t *last)
{
	const struct mkfs_group *g = &r->layout.groups[r->layout.num_groups - 1];
	const bool gap = range->start != *last;

	assert_true(range->start >= *last && range->start >= g->logical);
	assert_true(range->start + range->length <= g->logical + g->length);
	for (uint64_t at = 0; at < range->length;) {
		struct raid_place p = { .length = 1 };

		for (unsigned copy = 0; copy < raid_copies(&g->shape); copy++) {
			p = raid_map(&g->shape, range->start + at - g->logical, copy);
			if (p.length > range->length - at)
				p.length = range->length - at;
			/* The second copy of DUP gets its place later; verify_device() checks that. */
			assert_false(on_superblock(g->stripes[p.stripe].physical + p.offset, p.length));
		}
		at += p.length;
	}
	*last = range->start + range->length;
	return gap;
}

static uint64_t next_random(uint64_t *seed)
{
	random_step(seed);
	return *seed >> 33;
}

/* Allocates data in random sizes, more than a group, then the trees, counted twice. @return gaps in the data */
static unsigned place_all(struct rig *r, uint64_t bytes, uint64_t seed)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct mkfs_range range;
	uint64_t last = 0, taken = 0, once;
	unsigned gaps = 0;

	while (taken < bytes) {
		const uint64_t max = 4096 * (1 + next_random(&seed) % 40000);
		const uint64_t min = next_random(&seed) % 2 ? 4096 : max < 128 * KIB ? max : 128 * KIB;

		need(mkfs_compact_take(&r->compact, min, max, &range, &err), &err);
		assert_true(range.length >= min && range.length <= max && !(range.length % 4096));
		gaps += check_range(r, &range, &last);
		taken += range.length;
	}
	need(mkfs_compact_end_data(&r->compact, &err), &err);
	check_rig(r);
	need(mkfs_compact_trees(&r->compact, 100000, &err), &err);
	check_rig(r);
	need(mkfs_compact_trees(&r->compact, 1000, &err), &err);
	once = r->layout.total_bytes;
	need(mkfs_compact_trees(&r->compact, 1000, &err), &err);
	assert_int_equal(r->layout.total_bytes, once);
	mkfs_layout_count_slots(&r->layout, r->opts.nodesize);
	assert_true(mkfs_layout_slot(&r->layout, MKFS_TREES, 1000 + 719) ==
		    &r->layout.groups[r->layout.num_groups - 1]);
	assert_true(r->layout.groups[r->layout.num_groups - 1].first_slot +
		    r->layout.groups[r->layout.num_groups - 1].slots >= 1720);
	return gaps;
}

static void groups_lie_one_behind_the_other(void **state)
{
	unsigned gaps = 0, moved = 0, made = 0;
	struct rig r;

	(void)state;
	for (unsigned i = 0; i < 7 * 7 * 3; i++) {
		const enum btrkit_profile data = BTRKIT_PROFILE_SINGLE + i % 7,
					  metadata = BTRKIT_PROFILE_SINGLE + i / 7 % 7;
		const unsigned n = 1 + i % 3 * 2 + (i % 3 == 2);
		const uint64_t bytes = i % 4 ? 3 * GIB + i * MIB : 40 * MIB;

		if (mkfs_profile_devices(mkfs_profile(data)) > n || mkfs_profile_devices(mkfs_profile(metadata)) > n)
			continue;
		create(&r, data, metadata, n, 0);
		r.compact.dry = true;
		gaps += place_all(&r, bytes, i);
		moved += check_rig(&r);
		for (unsigned d = 0; d < n; d++)
			assert_int_equal(r.devices[d].total_bytes, r.compact.ends[d]);
		destroy(&r);
		made++;
	}
	printf("%u layouts, %u gaps between data, %u copies moved\n", made, gaps, moved);
	assert_true(made > 60 && gaps > 20 && moved > 3);
}

/* The superblock mirror at 256 GiB must be avoided too, in both copies. */
static void the_last_superblock_is_left_free(void **state)
{
	const enum btrkit_profile profiles[] = { BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP };
	struct rig r;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		create(&r, profiles[i], BTRKIT_PROFILE_DUP, 1, 0);
		r.compact.dry = true;
		place_all(&r, (i ? 130 : 258) * GIB, 5);
		assert_true(r.compact.ends[0] > 258 * GIB);
		check_rig(&r);
		destroy(&r);
	}
}

static void what_does_not_fit_is_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct mkfs_range range;
	struct rig r;
	uint64_t needed, taken = 0;
	const char *said;
	int ret;

	(void)state;
	/* The trees do not fit: the error says how many bytes are needed, and that size then suffices. */
	create(&r, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, 1, 60 * MIB);
	need(mkfs_compact_take(&r.compact, 4096, 30 * MIB, &range, &err), &err);
	need(mkfs_compact_end_data(&r.compact, &err), &err);
	assert_int_equal(mkfs_compact_trees(&r.compact, 2000, &err), -ENOSPC);
	said = strstr(err.message, "bytes, ");
	assert_true(said && strstr(err.message, "too small: 62914560 bytes, "));
	needed = strtoull(said + strlen("bytes, "), NULL, 10);
	destroy(&r);
	for (unsigned less = 0; less < 2; less++) {
		create(&r, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, 1, needed - less * 4096);
		need(mkfs_compact_take(&r.compact, 4096, 30 * MIB, &range, &err), &err);
		need(mkfs_compact_end_data(&r.compact, &err), &err);
		assert_int_equal(mkfs_compact_trees(&r.compact, 2000, &err), less ? -ENOSPC : 0);
		destroy(&r);
	}
	/* The data does not fit. */
	for (unsigned i = 0; i < 2; i++) {
		create(&r, i ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, 1, 60 * MIB);
		for (taken = 0; !(ret = mkfs_compact_take(&r.compact, 4096, MIB, &range, &err)); taken += range.length)
			need(mkfs_compact_write(&r.compact, range.start, &range, sizeof(range), &err), &err);
		assert_int_equal(ret, -ENOSPC);
		assert_non_null(strstr(err.message, "too small: no space for more data"));
		assert_in_range(taken, (i ? 28 : 57) * MIB, (i ? 29 : 58) * MIB);
		destroy(&r);
	}
	/* The second copy would extend past the end of the device, to avoid a superblock. */
	create(&r, BTRKIT_PROFILE_DUP, BTRKIT_PROFILE_SINGLE, 1, 90 * MIB);
	need(mkfs_compact_take(&r.compact, 4096, 40 * MIB, &range, &err), &err);
	assert_int_equal(mkfs_compact_end_data(&r.compact, &err), -ENOSPC);
	assert_non_null(strstr(err.message, "no space for the second copy"));
	destroy(&r);
}

static void sizes_follow_the_options(void **state)
{
	const uint64_t end = 20 * MIB;
	struct rig r;

	(void)state;
	create(&r, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, 1, 0);
	r.compact.ends[0] = end;
	assert_int_equal(mkfs_compact_device_size(&r.compact, 0), end);
	r.opts.free_bytes = 5 * MIB + 1;
	assert_int_equal(mkfs_compact_device_size(&r.compact, 0), end + 5 * MIB + 4096);
	r.opts.free_bytes = 0;
	r.opts.free_percent = 50;
	assert_in_range(mkfs_compact_device_size(&r.compact, 0), end + 10 * MIB - 4096, end + 10 * MIB);
	r.opts.byte_count = 25 * MIB;
	assert_in_range(mkfs_compact_device_size(&r.compact, 0), end + 10 * MIB - 4096, end + 10 * MIB);
	r.opts.byte_count = 100 * MIB + 5;
	assert_int_equal(mkfs_compact_device_size(&r.compact, 0), 100 * MIB);
	/* A device that is not truncated keeps its size. */
	r.compact.grow = false;
	assert_int_equal(mkfs_compact_device_size(&r.compact, 0), end);
	destroy(&r);
}

#define SECTOR 4096u
#define PIECE (128u << 10)

/* Makes a piece whose sectors all differ, also from those of other pieces. */
static struct mkfs_piece make_piece(uint8_t *bytes, uint8_t *sums, uint64_t number, uint32_t inode, bool packed)
{
	struct mkfs_piece p = { .inode = inode, .file_offset = number * PIECE, .data = bytes, .sums = sums };

	for (uint32_t at = 0; at < PIECE; at += SECTOR) {
		memset(bytes + at, 'a' + (int)(number % 26), SECTOR);
		memcpy(bytes + at, &(uint64_t[2]){ number, at }, 16);
		csum_kind_find(BTRKIT_CSUM_CRC32C)->compute(bytes + at, SECTOR, sums + at / SECTOR * 4);
	}
	p.ram_bytes = packed ? 2 * PIECE / 3 / SECTOR * SECTOR : PIECE;
	p.disk_bytes = PIECE;
	p.compression = packed ? BTRKIT_COMPRESSION_ZSTD : 0;
	return p;
}

static const struct mkfs_group *group_at(const struct rig *r, uint64_t logical)
{
	const struct mkfs_group *g = r->layout.groups;

	while (g->logical + g->length <= logical)
		g++;
	assert_true(g < r->layout.groups + r->layout.num_groups);
	return g;
}

static void read_copy(const struct rig *r, uint64_t logical, unsigned copy, uint8_t *to)
{
	const struct mkfs_group *g = group_at(r, logical);
	const struct raid_place p = raid_map(&g->shape, logical - g->logical, copy);

	sparse_read(r->sparse[g->stripes[p.stripe].device], g->stripes[p.stripe].physical + p.offset, to, SECTOR);
}

static uint32_t sum_of(const struct mkfs_contents *c, uint64_t logical)
{
	for (size_t i = 0; i < c->num_runs; i++) {
		const struct mkfs_csum_run *run = &c->runs[i];
		uint32_t sum;

		assert_true(!i || run->logical > run[-1].logical + (run[-1].count - 1) * SECTOR);
		if (logical < run->logical || logical >= run->logical + run->count * SECTOR)
			continue;
		assert_int_equal(spool_read(c->sums, (run->first + (logical - run->logical) / SECTOR) * 4, &sum, 4,
					    NULL), 0);
		return sum;
	}
	fail_msg("no checksum");
	return 0;
}

/* Compares every sector of every copy, and its checksum. @return the number of extents */
static size_t check_contents(const struct rig *r, const struct mkfs_contents *c, uint64_t pieces)
{
	uint8_t sector[SECTOR], wanted[16];
	uint64_t offset = 0;
	uint32_t sum;

	for (size_t i = 0; i < c->num_extents; i++) {
		const struct mkfs_extent *e = &c->extents[i];
		const struct mkfs_group *g = group_at(r, e->at);

		assert_true(e->at + e->disk_bytes <= g->logical + g->length);
		assert_true(e->disk_bytes <= CONTENTS_EXTENT_MAX);
		assert_true(!i || e->at >= e[-1].at + e[-1].disk_bytes);
		for (uint32_t at = 0; at < e->disk_bytes; at += SECTOR, offset += SECTOR) {
			memcpy(wanted, &(uint64_t[2]){ offset / PIECE, offset % PIECE }, 16);
			for (unsigned copy = 0; copy < raid_copies(&g->shape); copy++) {
				read_copy(r, e->at + at, copy, sector);
				if (memcmp(sector, wanted, 16))
					fail_msg("copy %u of piece %llu is not there", copy,
						 (unsigned long long)(offset / PIECE));
				csum_kind_find(BTRKIT_CSUM_CRC32C)->compute(sector, SECTOR, (uint8_t *)&sum);
				assert_int_equal(sum, sum_of(c, e->at + at));
			}
		}
	}
	assert_int_equal(offset, pieces * PIECE);
	return c->num_extents;
}

/* Allocates until @left bytes of the open group remain, so that the next pieces cross its end. */
static void leave_room(struct rig *r, uint64_t left)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct mkfs_group *g;
	struct mkfs_range range;

	for (unsigned d = 0; d < r->compact.num_devices; d++)
		need(btrkit_io_resize(r->devices[d].io, 3 * GIB, &err), &err);
	need(mkfs_compact_take(&r->compact, 4096, 4096, &range, &err), &err);
	do {
		g = &r->layout.groups[r->layout.num_groups - 1];
		need(mkfs_compact_take(&r->compact, 4096, g->logical + g->length - left - g->end, &range, &err), &err);
	} while (g->end < g->logical + g->length - left);
}

#define AT_ONCE 8u

static size_t add_across(enum btrkit_profile data, bool packed, uint64_t left)
{
	const unsigned n = mkfs_profile_devices(mkfs_profile(data));
	static uint8_t bytes[AT_ONCE * PIECE], sums[AT_ONCE * PIECE / SECTOR * 4];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct mkfs_piece pieces[AT_ONCE];
	struct mkfs_contents *c;
	uint64_t number = 0;
	size_t extents;
	struct rig r;

	create(&r, data, BTRKIT_PROFILE_SINGLE, n, 0);
	need(mkfs_contents_create(&c, &err), &err);
	leave_room(&r, left);
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < AT_ONCE; i++, number++)
			pieces[i] = make_piece(bytes + i * PIECE, sums + i * PIECE / SECTOR * 4, number, 7, packed);
		need(mkfs_contents_add(c, &r.compact, 4, SECTOR, pieces, AT_ONCE, &err), &err);
	}
	need(mkfs_compact_end_data(&r.compact, &err), &err);
	need(mkfs_compact_trees(&r.compact, 1, &err), &err);
	check_rig(&r);
	extents = check_contents(&r, c, number);
	mkfs_contents_destroy(c);
	destroy(&r);
	return extents;
}

static void contents_lie_across_the_ends_of_groups(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		/* The end of the group is the end of a piece, the end of a call, or neither. */
		assert_int_equal(add_across(BTRKIT_PROFILE_SINGLE + i, false, PIECE), 2);
		assert_int_equal(add_across(BTRKIT_PROFILE_SINGLE + i, false, AT_ONCE * PIECE), 2);
		assert_int_equal(add_across(BTRKIT_PROFILE_SINGLE + i, false, PIECE + 3 * SECTOR), 2);
		assert_int_equal(add_across(BTRKIT_PROFILE_SINGLE + i, true, PIECE + 3 * SECTOR), 3 * AT_ONCE);
	}
}

/* Extents grow up to 128 MiB, and end at holes and with their file; inline data is not part of them. */
static void pieces_become_extents(void **state)
{
	static uint8_t bytes[AT_ONCE * PIECE], sums[AT_ONCE * PIECE / SECTOR * 4];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct mkfs_piece pieces[AT_ONCE];
	struct mkfs_contents *c;
	struct rig r;

	(void)state;
	create(&r, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, 1, 0);
	r.compact.dry = true;
	need(mkfs_contents_create(&c, &err), &err);
	for (uint64_t number = 0; number < 1600; number += AT_ONCE) {
		for (unsigned i = 0; i < AT_ONCE; i++)
			pieces[i] = make_piece(bytes + i * PIECE, sums + i * PIECE / SECTOR * 4, number + i, 1, false);
		need(mkfs_contents_add(c, &r.compact, 4, SECTOR, pieces, AT_ONCE, &err), &err);
	}
	/* There is a superblock at 64 MiB. */
	assert_int_equal(c->num_extents, 3);
	assert_int_equal(c->extents[0].at + c->extents[0].disk_bytes, 64 * MIB);
	assert_int_equal(c->extents[1].at, 64 * MIB + 64 * KIB);
	assert_int_equal(c->extents[1].disk_bytes, CONTENTS_EXTENT_MAX);
	assert_int_equal(c->num_runs, 2);
	/* A hole in the file, another file, inline data, no checksums. */
	pieces[0] = make_piece(bytes, sums, 2000, 1, false);
	pieces[1] = make_piece(bytes, sums, 2001, 2, false);
	pieces[2] = (struct mkfs_piece){ .inode = 3, .ram_bytes = 5, .disk_bytes = 5, .data = bytes, .in_item = true };
	pieces[3] = make_piece(bytes, sums, 2002, 2, false);
	pieces[4] = make_piece(bytes, sums, 2003, 4, false);
	pieces[3].sums = NULL;
	need(mkfs_contents_add(c, &r.compact, 4, SECTOR, pieces, 5, &err), &err);
	assert_int_equal(c->num_extents, 8);
	assert_true(c->extents[5].in_item && c->extents[5].disk_bytes == 5 && !c->extents[4].in_item);
	assert_int_equal(c->num_runs, 3);
	assert_int_equal(spool_size(c->inline_bytes), 5);
	mkfs_contents_destroy(c);
	destroy(&r);
}

static struct btrkit_mkfs_options options_of(struct btrkit_mkfs_source *source, char *top)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	assert_non_null(mkdtemp(top));
	*source = (struct btrkit_mkfs_source){ .kind = BTRKIT_SOURCE_DIRECTORY, .path = top };
	o.source = source;
	return o;
}

/* Devices of fixed size keep it, even together with files that are truncated. */
static void devices_and_files_are_filled_together(void **state)
{
	char top[] = "/tmp/btrkit-compact.XXXXXX";
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_source source;
	struct btrkit_mkfs_options o = options_of(&source, top);

	(void)state;
	o.flags = BTRKIT_MKFS_FIT;
	for (unsigned file = 0; file < 2; file++) {
		struct sparse *sparse[] = { sparse_create(200 * MIB, NULL), sparse_create(200 * MIB, NULL) };
		struct btrkit_io *ios[] = { sparse_io(sparse[0]), sparse_io(sparse[1]) };
		struct btrkit_fs *fs;

		sparse_like_file(sparse[file]);
		need(btrkit_mkfs(ios, 2, &o, NULL, &err), &err);
		assert_int_equal(ios[!file]->size, 200 * MIB);
		assert_true(ios[file]->size < 100 * MIB);
		need(btrkit_fs_open(ios, 2, NULL, &fs, &err), &err);
		btrkit_fs_close(fs);
		sparse_free(sparse[0]);
		sparse_free(sparse[1]);
	}
	assert_int_equal(rmdir(top), 0);
}

static int ask_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	(void)io;
	*ret = (struct btrkit_zone){ offset, 64 * MIB, 64 * MIB, offset, 0 };
	return 0;
}

/* Nothing is written, with or without BTRKIT_MKFS_FIT. */
static void what_cannot_be_filled_stays_as_it_is(void **state)
{
	static const char old[] = "somebody's";
	static const int failures[] = { -ENOSPC, -EOPNOTSUPP, -EINVAL };
	char top[] = "/tmp/btrkit-compact.XXXXXX", now[sizeof(old)];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_source source;
	struct btrkit_mkfs_options o = options_of(&source, top);

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct sparse *sparse = sparse_create(i < 2 ? MIB + 64 * KIB : 200 * MIB, NULL);
		struct btrkit_io *io = sparse_io(sparse);
		struct btrkit_io_ops zoned = *io->ops;

		zoned.zone = ask_zone;
		o.flags = i & 1 ? BTRKIT_MKFS_FIT : 0;
		o.byte_count = i == 4 ? 201 * MIB : 0;
		o.free_bytes = i == 5 ? (uint64_t)INT64_MAX + 1 : 0;
		if (i / 2 == 1)
			io->ops = &zoned;
		need(btrkit_io_write(io, 0, old, sizeof(old), &err), &err);
		assert_int_equal(btrkit_mkfs(&io, 1, &o, NULL, &err), failures[i / 2]);
		need(btrkit_io_read(io, 0, now, sizeof(now), &err), &err);
		assert_memory_equal(now, old, sizeof(old));
		sparse_free(sparse);
	}
	assert_int_equal(rmdir(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_lie_one_behind_the_other),
		cmocka_unit_test(the_last_superblock_is_left_free),
		cmocka_unit_test(what_does_not_fit_is_told),
		cmocka_unit_test(sizes_follow_the_options),
		cmocka_unit_test(contents_lie_across_the_ends_of_groups),
		cmocka_unit_test(pieces_become_extents),
		cmocka_unit_test(devices_and_files_are_filled_together),
		cmocka_unit_test(what_cannot_be_filled_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
