// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the extent tree: extents must not overlap or cross the end of their block group, and their reference counts
 * must match their references. Invalid items are reported by leaf.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/check/trees/extents.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/table.h"
#include "lib/check/volume/groups.h"
#include "lib/format/feature_bits.h"
#include "lib/space/block_group.h"

/* On a hash collision, Linux increments the key offset. This is the largest distance that is accepted. */
#define HASH_STEPS_MAX 65536
/* Collisions are rare; each reference is compared with this many others at most. */
#define NEAR_MAX 64u

struct load {
	struct check *c;
	size_t group_hint;
	uint64_t end; /* of the last extent */
	/* The current extent. */
	bool have, doubt;
	struct extent_item item;
	struct btrkit_key key;
	uint64_t counted, sum;
	/* Hashes of its references without their counts: inline ones, and keyed ones with nearby key offsets. */
	struct array inline_refs, near;
	uint64_t near_hash;
};

static void report_extent(struct load *l, enum check_code code, const char *field, const char *message)
{
	check_report_at(l->c, code, &(struct check_location){ OID_EXTENT_TREE, 0, &l->key, field }, "%s", message);
}

static int add_entry(struct load *l, struct check_table *table, const void *entry)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret = check_table_reserve(&l->c->tables, table, 1, &err);

	if (ret)
		return check_fail(l->c, ret, &err);
	memcpy((uint8_t *)table->at + table->n++ * table->entry, entry, table->entry);
	return 0;
}

static int store_extent(struct load *l)
{
	const struct extent_item *e = &l->item;
	const uint32_t refs = e->refs > UINT32_MAX ? UINT32_MAX : (uint32_t)e->refs;

	if (e->flags & EXTENT_FLAG_TREE_BLOCK) {
		const struct check_block b = {
			.tagged = e->bytenr | (e->level & CHECK_BLOCK_LEVEL) |
				  (e->flags & EXTENT_FLAG_FULL_BACKREF ? CHECK_BLOCK_FULL : 0) |
				  (refs > 1 ? CHECK_BLOCK_MANY : 0) | (l->doubt ? CHECK_BLOCK_DOUBT : 0),
			.generation = e->generation,
			.sum = l->sum,
		};

		return add_entry(l, &l->c->tables.blocks, &b);
	}
	l->c->result.extents++;
	return add_entry(l, &l->c->tables.extents,
			 &(struct check_extent){ .tagged = e->bytenr | (l->doubt ? CHECK_EXTENT_DOUBT : 0),
						 .sum = l->sum,
						 .sectors = (uint32_t)(e->num_bytes / l->c->items.sectorsize),
						 .refs = refs });
}

/* Called when all references of the current extent were read. */
static int end_extent(struct load *l)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (!l->have)
		return 0;
	l->have = false;
	if (!l->doubt && !l->c->extents_lost && (!l->item.refs || l->item.refs != l->counted)) {
		err_corrupt(&what, "refs", "extent has reference count %" PRIu64 ", should be %" PRIu64, l->item.refs,
			    l->counted);
		err_at_tree(&what, OID_EXTENT_TREE);
		err_at_key(&what, &l->key);
		check_report_values(l->c, CHECK_EXTENT_REFCOUNT, &what, l->item.refs, l->counted);
	}
	return store_extent(l);
}

/* Checks the location of an extent, and adds it to the used space of its block group. */
static void check_location(struct load *l)
{
	const struct extent_item *e = &l->item;
	const uint64_t wanted = e->flags & EXTENT_FLAG_DATA ? BG_DATA : BG_METADATA | BG_SYSTEM;
	const struct check_group *g = check_group_of(l->c, e->bytenr, &l->group_hint);

	if (!g) {
		report_extent(l, CHECK_EXTENT_PLACE, "key.objectid", "extent is outside any block group");
		return;
	}
	if (!e->num_bytes || e->num_bytes > g->start + g->length - e->bytenr) {
		report_extent(l, CHECK_EXTENT_PLACE, "key.offset",
			      "extent is empty, or crosses the end of its block group");
		l->item.num_bytes = l->c->items.sectorsize;
		l->doubt = true;
	} else if (!(g->flags & wanted)) {
		report_extent(l, CHECK_EXTENT_PLACE, "flags", "extent type does not match its block group");
	}
	if (e->flags & ~(uint64_t)(EXTENT_FLAG_DATA | EXTENT_FLAG_TREE_BLOCK | EXTENT_FLAG_FULL_BACKREF))
		report_extent(l, CHECK_EXTENT_FLAGS, "flags", "extent has unknown flags");
	((struct check_group *)l->c->groups.at)[l->group_hint].used += l->item.num_bytes;
}

static bool is_among(const struct array *list, uint64_t hash)
{
	const uint64_t *at = list->at;

	for (size_t i = 0; i < list->n; i++)
		if (at[i] == hash)
			return true;
	return false;
}

static void add_hash(struct load *l, struct array *list, uint64_t hash)
{
	uint64_t *to;

	if (is_among(&l->inline_refs, hash) || is_among(&l->near, hash))
		report_extent(l, CHECK_EXTENT_REF_TWICE, "type", "duplicate reference to the extent");
	to = check_list_add(l->c, list, sizeof(*to));
	if (to)
		*to = hash;
}

/* Adds a reference to the current extent. */
static void take_ref(struct load *l, const struct extent_ref *ref, struct array *list)
{
	const bool of_data = ref->type == KEY_EXTENT_DATA_REF || ref->type == KEY_SHARED_DATA_REF;
	uint64_t hash;

	if (ref->type == KEY_EXTENT_OWNER_REF) {
		if (!(l->item.flags & EXTENT_FLAG_DATA) || !(l->c->fs->super.incompat & INCOMPAT_SIMPLE_QUOTA))
			report_extent(l, CHECK_EXTENT_REF_STRAY, "type", "unexpected owner reference");
		return;
	}
	if (of_data != !!(l->item.flags & EXTENT_FLAG_DATA)) {
		report_extent(l, CHECK_EXTENT_REF_STRAY, "type", "reference type does not match the extent type");
		return;
	}
	hash = check_ref_hash(l->c, ref, l->item.bytenr);
	add_hash(l, list, hash);
	l->sum += hash * ref->count;
	l->counted += ref->count;
}

/* Derives what it can from an invalid extent item, so that its users are not reported as lacking an extent. */
static bool guess(struct load *l, const struct item *item)
{
	const bool skinny = item->key.type == KEY_METADATA_ITEM;
	uint64_t flags = EXTENT_FLAG_DATA;

	if (item->key.objectid & ~CHECK_ADDRESS || item->key.objectid < l->end)
		return false;
	if (item->size >= sizeof(struct disk_extent_item))
		flags = le64_get(((const struct disk_extent_item *)item->data)->flags);
	if (skinny || (item->size >= sizeof(struct disk_extent_item) && flags & EXTENT_FLAG_TREE_BLOCK &&
		       item->key.offset == l->c->items.nodesize))
		flags = EXTENT_FLAG_TREE_BLOCK;
	else
		flags = EXTENT_FLAG_DATA;
	l->item = (struct extent_item){ .bytenr = item->key.objectid,
					.num_bytes = skinny ? l->c->items.nodesize : item->key.offset,
					.flags = flags,
					.level = skinny ? (uint8_t)item->key.offset : 0 };
	l->doubt = true;
	return true;
}

static void take_extent(struct load *l, const struct item *item)
{
	struct extent_ref ref;
	int ret;

	l->key = item->key;
	l->sum = l->counted = 0;
	l->inline_refs.n = l->near.n = 0;
	l->doubt = false;
	if (item_validate(&l->c->items, item, NULL) || extent_item_decode(&l->c->items, item, &l->item, NULL)) {
		l->have = guess(l, item);
		if (!l->have)
			return;
	}
	if (l->item.bytenr < l->end) {
		report_extent(l, CHECK_EXTENT_OVERLAP, "key.objectid", "extent overlaps the previous one");
		l->have = false;
		return;
	}
	l->have = true;
	check_location(l);
	l->end = l->item.bytenr + l->item.num_bytes;
	if (l->doubt)
		return;
	while (!(ret = extent_item_next_ref(&l->item, &ref, NULL)))
		take_ref(l, &ref, &l->inline_refs);
}

/* Handles a keyed reference. */
static void take_keyed(struct load *l, const struct item *item)
{
	const bool of_file = item->key.type == KEY_EXTENT_DATA_REF;
	struct extent_ref ref;
	uint64_t hash;

	if (!l->have || l->item.bytenr != item->key.objectid) {
		if (!l->c->extents_lost)
			check_report_at(l->c, CHECK_EXTENT_REF_STRAY,
					&(struct check_location){ OID_EXTENT_TREE, 0, &item->key, "key.objectid" },
					"reference to an extent that does not exist");
		return;
	}
	if (item_validate(&l->c->items, item, NULL) || extent_keyed_ref_decode(item, &ref, NULL)) {
		l->doubt = true;
		return;
	}
	hash = of_file ? extent_data_ref_hash(ref.root, ref.objectid, ref.offset) : 0;
	if (of_file && item->key.offset - hash >= HASH_STEPS_MAX)
		check_report_at(l->c, CHECK_EXTENT_REF_KEY,
				&(struct check_location){ OID_EXTENT_TREE, 0, &item->key, "key.offset" },
				"reference has key offset %" PRIu64 ", but hash %" PRIu64, item->key.offset, hash);
	/* References with another hash cannot be equal. */
	if (!of_file || hash != l->near_hash || l->near.n == NEAR_MAX)
		l->near.n = 0;
	l->near_hash = hash;
	take_ref(l, &ref, &l->near);
}

static void take_item(void *ctx, const struct item *item)
{
	struct load *l = ctx;

	switch (item->key.type) {
	case KEY_EXTENT_ITEM:
	case KEY_METADATA_ITEM:
		if (!end_extent(l))
			take_extent(l, item);
		break;
	case KEY_TREE_BLOCK_REF:
	case KEY_SHARED_BLOCK_REF:
	case KEY_EXTENT_DATA_REF:
	case KEY_SHARED_DATA_REF:
	case KEY_EXTENT_OWNER_REF:
		take_keyed(l, item);
		break;
	case KEY_BLOCK_GROUP_ITEM:
		check_group_item(l->c, &item->key);
		break;
	default:
		break;
	}
}

static void report_super(struct check *c, const struct range *super, uint64_t start, uint64_t length)
{
	if (start < range_end(super) && start + length > super->start)
		check_report_at(c, CHECK_EXTENT_SUPER, &(struct check_location){ OID_EXTENT_TREE, start, NULL, NULL },
				"extent of %" PRIu64 " bytes overlaps the %" PRIu64
				" bytes of a superblock at %" PRIu64,
				length, super->length, super->start);
}

/* Reports extents that overlap a superblock copy, which the next commit would overwrite. Needs complete tables. */
static void check_super(struct check *c, const struct range *super)
{
	const struct check_table *extents = &c->tables.extents, *blocks = &c->tables.blocks;
	size_t i = check_table_lower_bound(extents, super->start, NULL);

	for (i -= i > 0; i < extents->n; i++) {
		const struct check_extent *e = check_extent_at(&c->tables, i);

		if (check_extent_start(e) >= range_end(super))
			break;
		if (!(e->tagged & CHECK_EXTENT_DOUBT))
			report_super(c, super, check_extent_start(e), (uint64_t)e->sectors * c->items.sectorsize);
	}
	i = check_table_lower_bound(blocks, super->start, NULL);
	for (i -= i > 0; i < blocks->n; i++) {
		const struct check_block *b = check_block_at(&c->tables, i);

		if (check_block_bytenr(b) >= range_end(super))
			break;
		if (!(b->tagged & CHECK_BLOCK_DOUBT))
			report_super(c, super, check_block_bytenr(b), c->items.nodesize);
	}
}

/* The start of each device is reserved too, but never written: extents of old versions there are accepted. */
static void verify_supers(struct check *c)
{
	const struct check_group *groups = c->groups.at;

	for (size_t i = 0; i < c->groups.n && !check_failed(c); i++) {
		const struct block_group group = { .start = groups[i].start, .length = groups[i].length };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct block_group_supers supers;
		int ret = groups[i].chunk ? block_group_supers(c->fs, &group, &supers, &err) : -EUCLEAN;

		if (ret == -ENOMEM)
			check_fail(c, ret, &err);
		if (ret)
			continue;
		for (unsigned k = 0; k < supers.n; k++) {
			const uint64_t end = range_end(&supers.at[k]), first = super_offset(0);
			const uint64_t start = supers.at[k].start < first ? first : supers.at[k].start;

			if (start < end)
				check_super(c, &(struct range){ start, end - start });
		}
		block_group_supers_release(&supers);
	}
}

int check_extents(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_EXTENT_TREE);
	struct load l = { .c = c };

	if (!root) {
		c->extents_lost = true;
		return 0;
	}
	if (!check_each_item(c, &root->root, &c->extents_lost, take_item, &l))
		end_extent(&l);
	verify_supers(c);
	free(l.inline_refs.at);
	free(l.near.at);
	return c->failed;
}
