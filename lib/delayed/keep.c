// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * When space is short, the newest inodes remain delayed, because they are likely to be written to soon. Items added
 * later to an inode that is in the tree find its leaf full, and split it into two that are half full.
 *
 * When memory is short, new directories that grow remain delayed. As long as the tree has no items of a directory, it
 * need not be searched to see whether a name is taken. And entries are ordered by their hashes, so they fill leaves
 * only if they are inserted all at once.
 */
#include <string.h>

#include "lib/delayed/impl.h"

/* How many of the highest inode numbers are kept. */
#define NEWEST 64u

/* Whether it has few items, all of them new. */
static bool is_small(const struct delayed_inode *in)
{
	return in->fresh && in->items == in->few && !in->index_size;
}

static bool copy_items(struct delayed_table *t, const struct delayed_inode *from, struct delayed_inode *to,
		       struct delayed_amount *kept)
{
	for (uint32_t i = 0; i < from->n; i++) {
		const struct delayed_item *it = from->few[i];
		const struct btrkit_key key = delayed_key(from, it);
		struct delayed_item *copy;

		if (delayed_item_add(t, to, &key, it->size, &copy, NULL))
			return false;
		copy->change = it->change;
		copy->size = it->size;
		memcpy(copy->data, it->data, it->size);
		kept->bytes += it->size + (int64_t)sizeof(struct disk_item);
	}
	return true;
}

/* Without memory to keep it, the inode is run, too. */
static void keep_inode(struct delayed_table *now, struct delayed_inode *in, struct delayed_amount *kept)
{
	struct delayed_amount own = { .items = 1, .leaves = 1 };
	struct delayed_inode *to;

	if (delayed_inode_get(now, in->objectid, &to, NULL))
		return;
	to->fresh = true;
	to->notes = in->notes;
	to->next_index = in->next_index;
	if (!copy_items(now, in, to, &own)) {
		to->n = to->sorted = 0;
		/* The tree will have its items. */
		to->fresh = false;
		return;
	}
	/* What is granted for it must be known when it has grown, too. */
	to->bytes = (uint64_t)own.bytes;
	in->n = in->sorted = 0;
	kept->items += own.items;
	kept->bytes += own.bytes;
	kept->leaves += own.leaves;
}

void delayed_keep_newest(struct delayed_tree *t, struct delayed_shard *s, struct delayed_amount *kept)
{
	const uint64_t next = atomic_load(&t->next_inode), first = next > NEWEST ? next - NEWEST : 0;
	const int64_t before = kept->bytes;

	for (size_t i = 0; next && i < s->running.size; i++) {
		struct delayed_inode *in = s->running.slots[i].in;

		if (in && in->n && in->objectid >= first && is_small(in))
			keep_inode(&s->now, in, kept);
	}
	s->bytes = (size_t)(kept->bytes - before);
}

static bool is_growing_directory(const struct delayed_inode *in)
{
	return in->fresh && in->own && in->next_index;
}

void delayed_keep_directories(struct delayed_shard *s, struct delayed_amount *kept)
{
	for (size_t i = 0; i < s->running.size; i++) {
		struct delayed_inode *in = s->running.slots[i].in;
		/* An upper bound: each entry counts as one place, but all other items together as one. */
		const struct delayed_amount own = { in ? in->n : 0, in ? (int64_t)in->bytes : 0, in ? in->n : 0 };

		if (!in || !is_growing_directory(in) || delayed_inode_move(&s->now, in))
			continue;
		delayed_amount_add(kept, &own);
		s->bytes += (size_t)own.bytes;
	}
}
