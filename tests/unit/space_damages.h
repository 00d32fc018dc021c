/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Only included by space.c: changes to its plan, and the reports that must follow. */

/* Finds the first item after the first range that covers at least two sectors in the free space tree. */
static struct syn_item *long_range(void)
{
	for (size_t i = 2; i < p.num_tree; i++)
		if (p.tree[i].key.offset >= 2 * SECTOR)
			return &p.tree[i];
	fail_msg("there is none");
	return NULL;
}

static void tree_count(void)
{
	p.info.extent_count = le32_put(le32_get(p.info.extent_count) + 1);
}

static void tree_flags(void)
{
	p.info.flags = le32_put(le32_get(p.info.flags) | 2);
}

static void tree_other_form(void)
{
	p.info.flags = le32_put(le32_get(p.info.flags) ^ FREE_SPACE_USING_BITMAPS);
}

static void tree_length(void)
{
	p.tree[0].key.offset -= SECTOR;
}

static void tree_no_info(void)
{
	p.tree[0] = p.tree[--p.num_tree];
}

static void tree_touching(void)
{
	struct syn_item *range = long_range();
	struct btrkit_key second = range->key;

	range->key.offset -= SECTOR;
	second.objectid += range->key.offset;
	second.offset = SECTOR;
	add_tree_item(second, "", 0);
}

static void tree_overlap(void)
{
	struct btrkit_key second = long_range()->key;

	second.objectid += SECTOR;
	second.offset = SECTOR;
	add_tree_item(second, "", 0);
}

static void tree_past_end(void)
{
	p.tree[p.num_tree - 1].key.offset += SYN_LENGTH;
}

static void tree_unaligned(void)
{
	long_range()->key.offset -= 1;
}

static void tree_gap(void)
{
	p.tree[1] = p.tree[--p.num_tree];
}

static void tree_short(void)
{
	p.num_tree--;
}

static void tree_bitmap_size(void)
{
	p.tree[1].size--;
}

static const struct {
	void (*damage)(void);
	bool bitmaps;
	enum btrkit_space_verdict verdict;
	const char *why;
} tree_damages[] = {
	{ tree_count, false, BTRKIT_SPACE_DAMAGED, "its info says" },
	{ tree_count, true, BTRKIT_SPACE_DAMAGED, "its info says" },
	{ tree_flags, false, BTRKIT_SPACE_DAMAGED, "unknown free space flags" },
	{ tree_other_form, false, BTRKIT_SPACE_DAMAGED, "that uses bitmaps" },
	{ tree_other_form, true, BTRKIT_SPACE_DAMAGED, "that uses extents" },
	{ tree_length, true, BTRKIT_SPACE_DAMAGED, "for a block group of" },
	{ tree_no_info, false, BTRKIT_SPACE_ABSENT, "" },
	{ tree_touching, false, BTRKIT_SPACE_DAMAGED, "overlaps or adjoins the previous one" },
	{ tree_overlap, false, BTRKIT_SPACE_DAMAGED, "overlaps or adjoins the previous one" },
	{ tree_past_end, false, BTRKIT_SPACE_DAMAGED, "in a group ending at" },
	{ tree_unaligned, false, BTRKIT_SPACE_DAMAGED, "range of" },
	{ tree_gap, true, BTRKIT_SPACE_DAMAGED, "where one at" },
	{ tree_short, true, BTRKIT_SPACE_DAMAGED, "before the end of their block group" },
	{ tree_bitmap_size, true, BTRKIT_SPACE_DAMAGED, "bitmap has 255 bytes" },
};

static void cache_sum(void)
{
	p.sums = false;
}

static void cache_inode_generation(void)
{
	p.inode.generation = le64_put(2);
}

static void cache_being_written(void)
{
	p.inode.generation = le64_put(0);
}

static void cache_empty(void)
{
	p.inode.size = le64_put(0);
}

static void cache_short(void)
{
	p.inode.size = le64_put(SECTOR);
}

static void cache_huge(void)
{
	p.inode.size = le64_put(1ull << 50);
}

static void cache_hole(void)
{
	p.file.num_bytes = le64_put(SECTOR);
}

static void cache_compressed(void)
{
	p.file.compression = 1;
}

static void cache_prealloc(void)
{
	p.file.type = FILE_EXTENT_PREALLOC;
}

static void cache_elsewhere(void)
{
	p.file.disk_bytenr = le64_put(1ull << 50);
}

static void cache_location(void)
{
	p.header.location.objectid = le64_put(INODE + 1);
}

static void cache_location_type(void)
{
	p.header.location.type = 7;
}

static void cache_many_entries(void)
{
	p.header.num_entries = le64_put(UINT64_MAX / 17);
}

static void cache_more_bitmaps(void)
{
	p.header.num_bitmaps = le64_put(UINT64_MAX);
}

static void cache_one_more(void)
{
	p.header.num_entries = le64_put(p.num_entries + 1);
}

static void cache_bitmap_unannounced(void)
{
	p.header.num_bitmaps = le64_put(0);
}

static void cache_entry_outside(void)
{
	p.entries[0].offset = le64_put(SYN_LOGICAL - SECTOR);
}

static void cache_entry_long(void)
{
	p.entries[0].bytes = le64_put(UINT64_MAX - 4095);
}

static void cache_entry_unaligned(void)
{
	p.entries[0].offset = le64_put(le64_get(p.entries[0].offset) + 512);
}

static void cache_entry_type(void)
{
	p.entries[0].type = 3;
}

static void cache_entry_nothing(void)
{
	p.entries[0].bytes = le64_put(0);
}

static void cache_entry_twice(void)
{
	p.entries[1] = p.entries[0];
}

static void cache_bit_more(void)
{
	p.pages[PAGES - 1][SECTORS / 8] = 1;
}

static void cache_bitmap_bytes(void)
{
	struct entry *last = &p.entries[p.num_entries - 1];

	last->bytes = le64_put(le64_get(last->bytes) - SECTOR);
}

static void cache_bit_past_end(void)
{
	struct entry *last = &p.entries[p.num_entries - 1];

	cache_bit_more();
	last->bytes = le64_put(le64_get(last->bytes) + SECTOR);
}

static void cache_bitmap_misplaced(void)
{
	p.entries[p.num_entries - 1].offset = le64_put(SYN_LOGICAL + SECTOR);
}

static const struct {
	void (*damage)(void);
	bool bitmaps;
	const char *why;
} cache_damages[] = {
	{ cache_sum, false, "checksum mismatch of page 0" },
	{ cache_inode_generation, false, "its inode has generation 2" },
	{ cache_being_written, false, "being written" },
	{ cache_empty, false, "it is empty" },
	{ cache_short, false, "it cannot have" },
	{ cache_huge, false, "too large" },
	{ cache_hole, false, "no data at 4096" },
	{ cache_compressed, false, "no regular, uncompressed data" },
	{ cache_prealloc, false, "no regular, uncompressed data" },
	{ cache_elsewhere, false, "no chunk contains the address" },
	{ cache_location, false, "is missing" },
	{ cache_location_type, false, "space cache header refers to invalid key" },
	{ cache_many_entries, false, "it cannot have" },
	{ cache_more_bitmaps, true, "it cannot have" },
	{ cache_one_more, false, "entry of 0 bytes" },
	{ cache_bitmap_unannounced, true, "is unexpected" },
	{ cache_entry_outside, false, "entry of" },
	{ cache_entry_long, false, "entry of" },
	{ cache_entry_unaligned, false, "entry of" },
	{ cache_entry_type, false, "entry of type 3" },
	{ cache_entry_nothing, false, "entry of 0 bytes" },
	{ cache_entry_twice, false, "overlap" },
	{ cache_bit_more, true, "bits for" },
	{ cache_bitmap_bytes, true, "bits for" },
	{ cache_bit_past_end, true, "bits for" },
	{ cache_bitmap_misplaced, true, "" },
};

static void add_extent(uint64_t at, uint64_t length)
{
	p.extents[p.num_extents++] = (struct syn_item){ KEY(at, KEY_EXTENT_ITEM, length), &p.extent, sizeof(p.extent) };
}

static void extent_before(void)
{
	add_extent(4096, 4096);
}

static void extent_behind(void)
{
	add_extent(SYN_LOGICAL + SYN_LENGTH, 4096);
}

static void extent_reaches_in(void)
{
	add_extent(SYN_LOGICAL - 4096, 8192);
}

static void extent_overlap(void)
{
	for (size_t i = 0; i < p.num_extents; i++) {
		if (p.extents[i].key.offset < 2 * SECTOR)
			continue;
		add_extent(p.extents[i].key.objectid + SECTOR, SECTOR);
		return;
	}
	fail_msg("no extent of two sectors");
}

static void extent_long(void)
{
	p.extents[p.num_extents - 1].key.offset = SYN_LENGTH;
}

static void extent_nothing(void)
{
	p.extents[0].key.offset = 0;
}

static void group_used(void)
{
	p.group.used = le64_put(le64_get(p.group.used) - SECTOR);
}

static void group_missing(void)
{
	p.group_key.type = 0;
}

static void group_flags(void)
{
	p.group.flags = le64_put(BG_SYSTEM);
}

static void group_length(void)
{
	p.group_key.offset += SECTOR;
}

static struct disk_block_group other_group;

static void add_group(uint64_t at)
{
	other_group = p.group;
	other_group.used = le64_put(0);
	p.extents[p.num_extents++] = (struct syn_item){ KEY(at, KEY_BLOCK_GROUP_ITEM, SYN_LENGTH), &other_group,
							sizeof(other_group) };
}

static void group_behind(void)
{
	add_group(SYN_LOGICAL + SYN_LENGTH);
}

static void group_inside(void)
{
	add_group(SYN_LOGICAL + SECTOR);
}

static const struct {
	void (*damage)(void);
	const char *why;
} extent_damages[] = {
	{ extent_before, "outside of any block group" },
	{ extent_behind, "outside of any block group" },
	{ extent_reaches_in, "outside of any block group" },
	{ extent_overlap, "overlaps the previous one" },
	{ extent_long, "in a block group that ends at" },
	{ extent_nothing, "extent of 0 bytes" },
	{ group_used, "bytes used, its extents have" },
	{ group_missing, "has no block group" },
	{ group_flags, "its chunk has" },
	{ group_length, "for a chunk of" },
	{ group_behind, "block group without a chunk" },
	{ group_inside, "block group without a chunk" },
};
