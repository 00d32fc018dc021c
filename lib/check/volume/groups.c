// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares block groups with chunks: each chunk must have one block group. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/volume/groups.h"
#include "lib/check/volume/volume.h"
#include "lib/format/feature_bits.h"

const struct check_group *check_group_of(const struct check *c, uint64_t logical, size_t *hint)
{
	const struct check_group *groups = c->groups.at;
	size_t low = 0, high = c->groups.n;

	if (*hint < high && logical - groups[*hint].start < groups[*hint].length)
		return &groups[*hint];
	/* Find the first one that starts past the address. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (groups[mid].start <= logical)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || logical - groups[low - 1].start >= groups[low - 1].length)
		return NULL;
	*hint = low - 1;
	return &groups[low - 1];
}

struct loading {
	struct volume_check *v;
	struct cursor cur;
	struct array items; /* struct block_group, by address, not overlapping */
};

static void report_group(const struct loading *l, enum check_code code, const struct btrkit_key *key, const char *field,
			 const char *message)
{
	check_report_at(l->v->c, code, &(struct check_location){ l->v->c->group_tree, 0, key, field }, "%s", message);
}

static void take_item(void *ctx, const struct item *item)
{
	struct loading *l = ctx;
	const struct block_group *last = l->items.n ? (struct block_group *)l->items.at + l->items.n - 1 : NULL;
	struct block_group group, *to;

	if (item->key.type != KEY_BLOCK_GROUP_ITEM)
		return;
	if (block_group_decode(&l->v->c->items, item, &group, NULL)) {
		l->v->c->groups_lost = true;
		return;
	}
	/* The next search starts at its end, so that must not be before the last one. */
	if (group.start + group.length < group.start || (last && group.start - last->start < last->length)) {
		report_group(l, CHECK_GROUP_CHUNK, &item->key, "key.objectid",
			     "block group overlaps the previous one, or exceeds the address space");
		return;
	}
	to = check_list_add(l->v->c, &l->items, sizeof(*to));
	if (to)
		*to = group;
}

/* Takes the block group items from @from up to, but not including, @end. */
static int take_from(struct loading *l, uint64_t from, uint64_t end)
{
	struct check *c = l->v->c;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret = cursor_seek(&l->cur, &KEY(from, KEY_BLOCK_GROUP_ITEM, 0), &err);

	while (!ret && !c->failed && l->cur.item.key.objectid < end) {
		take_item(l, &l->cur.item);
		ret = cursor_next(&l->cur, &err);
	}
	if (ret == -ENOMEM)
		return check_fail(c, ret, &err);
	if (ret < 0)
		c->groups_lost = c->extents_lost = true;
	return c->failed;
}

/*
 * Without a block group tree, the items are among the extents. Looks up one for each chunk, and searches where there is
 * no chunk and should be no extents. extents.c passes other items that it meets to check_group_item().
 */
static int load_between_extents(struct loading *l, const struct tree_root *root)
{
	const struct known_chunk *chunks = l->v->chunks.at;
	uint64_t end = 0;
	int ret = 0;

	cursor_init(&l->cur, l->v->c->fs, root);
	for (size_t i = 0; !ret && i < l->v->chunks.n; i++) {
		if (end < chunks[i].logical)
			ret = take_from(l, end, chunks[i].logical);
		if (!ret)
			ret = take_from(l, chunks[i].logical, chunks[i].logical + 1);
		end = chunks[i].logical + chunks[i].length;
	}
	if (!ret)
		ret = take_from(l, end, UINT64_MAX);
	cursor_release(&l->cur);
	return ret;
}

static void add_group(struct loading *l, const struct known_chunk *chunk, const struct block_group *group)
{
	struct check *c = l->v->c;
	struct check_group *to = check_list_add(c, &c->groups, sizeof(*to));

	if (!to)
		return;
	*to = (struct check_group){ .chunk = chunk, .item = group };
	if (chunk) {
		to->start = chunk->logical;
		to->length = chunk->length;
		to->flags = chunk->type;
	}
	if (group) {
		/* If the lengths differ, use the chunk's, because blocks can only be there. */
		if (!chunk) {
			to->start = group->start;
			to->length = group->length;
		}
		to->flags = group->flags;
		to->said_used = group->used;
	}
}

static void check_pair(struct loading *l, const struct known_chunk *chunk, const struct block_group *group)
{
	const struct btrkit_key key = KEY(group->start, KEY_BLOCK_GROUP_ITEM, group->length);
	const uint64_t lengths[] = { group->length, chunk->length }, flags[] = { group->flags, chunk->type };
	struct check_location at = { l->v->c->group_tree, 0, &key, "key.offset", .values = lengths };

	if (group->length != chunk->length)
		check_report_at(l->v->c, CHECK_GROUP_DIFFERS, &at,
				"block group has %" PRIu64 " bytes, its chunk has %" PRIu64, group->length,
				chunk->length);
	at.field = "flags";
	at.values = flags;
	if (group->flags != chunk->type)
		check_report_at(l->v->c, CHECK_GROUP_DIFFERS, &at,
				"block group has flags 0x%" PRIx64 ", its chunk has 0x%" PRIx64, group->flags,
				chunk->type);
}

static void report_lonely_chunk(const struct loading *l, const struct known_chunk *chunk)
{
	const struct btrkit_key key = KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, chunk->logical);

	if (!l->v->c->groups_lost)
		check_report_at(l->v->c, CHECK_CHUNK_GROUP, &(struct check_location){ OID_CHUNK_TREE, 0, &key, NULL },
				"chunk has no block group");
}

static void report_lonely_group(const struct loading *l, const struct block_group *group)
{
	if (!l->v->c->chunks_lost)
		report_group(l, CHECK_GROUP_CHUNK, &KEY(group->start, KEY_BLOCK_GROUP_ITEM, group->length),
			     "key.objectid", "block group has no chunk");
}

/* Compares both lists, which are sorted by address. */
static void compare(struct loading *l)
{
	const struct known_chunk *chunks = l->v->chunks.at;
	const struct block_group *groups = l->items.at;
	const size_t num_chunks = l->v->chunks.n, num_groups = l->items.n;

	for (size_t i = 0, j = 0; (i < num_chunks || j < num_groups) && !l->v->c->failed;) {
		if (j == num_groups || (i < num_chunks && chunks[i].logical < groups[j].start)) {
			report_lonely_chunk(l, &chunks[i]);
			add_group(l, &chunks[i++], NULL);
		} else if (i == num_chunks || chunks[i].logical > groups[j].start) {
			const uint64_t end = groups[j].start + groups[j].length;
			const struct known_chunk *before = i ? &chunks[i - 1] : NULL;

			report_lonely_group(l, &groups[j]);
			/* Lookups by address need groups that do not overlap. */
			if ((!before || groups[j].start - before->logical >= before->length) &&
			    (i == num_chunks || chunks[i].logical >= end))
				add_group(l, NULL, &groups[j]);
			j++;
		} else {
			check_pair(l, &chunks[i], &groups[j]);
			add_group(l, &chunks[i++], &groups[j++]);
		}
	}
}

int volume_groups(struct volume_check *v)
{
	struct check *c = v->c;
	const bool own = c->fs->super.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct loading l = { .v = v };
	struct tree_root root;
	int ret;

	c->group_tree = own ? OID_BLOCK_GROUP_TREE : OID_EXTENT_TREE;
	ret = fs_find_root(c->fs, c->group_tree, &root, NULL, &err);
	if (ret == -ENOMEM)
		return check_fail(c, ret, &err);
	/* roots.c reports a missing tree. */
	if (ret)
		c->groups_lost = true;
	else if (own)
		ret = check_each_item(c, &root, &c->groups_lost, take_item, &l);
	else
		ret = load_between_extents(&l, &root);
	compare(&l);
	free(l.items.at);
	return c->failed;
}

void check_group_item(struct check *c, const struct btrkit_key *key)
{
	size_t hint = 0;
	const struct check_group *g = check_group_of(c, key->objectid, &hint);

	if (g && g->start < key->objectid)
		check_report_at(c, CHECK_GROUP_CHUNK, &(struct check_location){ c->group_tree, 0, key, "key.objectid" },
				"block group begins inside another one");
}
