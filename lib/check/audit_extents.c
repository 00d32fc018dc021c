// SPDX-License-Identifier: LGPL-2.1-or-later
/* The extent tree as it is: extents that neither overlap nor leave their block group, and what refers to each. */
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"
#include "lib/format/feature_bits.h"
#include "lib/tree/cursor.h"

/* What a hash of 64 bits may be off by: references with equal hashes lie one behind the other. */
#define HASH_STEPS_MAX 65536

struct load {
	struct audit *a;
	struct cursor c;
	size_t group;	/* the current one, or the next */
	uint64_t used;	/* of it */
	uint64_t items; /* block group items met */
	uint64_t end;	/* of the last extent */
	bool have;	/* there is a current extent, the last of a->extents */
};

static struct audit_extent *current(struct load *l)
{
	struct audit_extent *extents = l->a->extents.at;

	return l->have ? &extents[l->a->extents.n - 1] : NULL;
}

int audit_blame_extent(const struct audit_extent *e, int ret, struct btrkit_error *err)
{
	const struct btrkit_key key = e->skinny ? KEY(e->bytenr, KEY_METADATA_ITEM, e->level) :
						  KEY(e->bytenr, KEY_EXTENT_ITEM, e->num_bytes);

	if (ret < 0) {
		err_at_tree(err, OID_EXTENT_TREE);
		err_at_key(err, &key);
	}
	return ret;
}

const struct audit_extent *audit_extent_of(const struct audit *a, uint64_t bytenr)
{
	const struct audit_extent *extents = a->extents.at;
	size_t low = 0, high = a->extents.n;

	/* The first that begins behind the address. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (extents[mid].bytenr <= bytenr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && bytenr - extents[low - 1].bytenr < extents[low - 1].num_bytes ? &extents[low - 1] : NULL;
}

const struct block_group *audit_group_of(const struct audit *a, uint64_t logical)
{
	size_t low = 0, high = a->groups.n;

	/* The last that does not begin behind the address. */
	while (low + 1 < high) {
		size_t mid = low + (high - low) / 2;

		if (a->groups.at[mid].start <= logical)
			low = mid;
		else
			high = mid;
	}
	return &a->groups.at[low];
}

/* There are no more references to come of the current extent. */
static int end_extent(struct load *l, struct btrkit_error *err)
{
	const struct audit_extent *e = current(l);

	l->have = false;
	if (!e)
		return 0;
	if (!e->refs || e->refs != e->counted)
		return audit_blame_extent(e,
					  err_corrupt(err, "refs",
						      "extent says %" PRIu64 " references, there are %" PRIu64, e->refs,
						      e->counted),
					  err);
	return 0;
}

static int end_group(struct load *l, struct btrkit_error *err)
{
	const struct block_groups *groups = &l->a->groups;
	const struct block_group *g = &groups->at[l->group++];

	if (g->used != l->used)
		return block_groups_blame(groups, g,
					  err_corrupt(err, "used",
						      "block group says %" PRIu64 " bytes are used, its "
						      "extents are %" PRIu64,
						      g->used, l->used),
					  err);
	l->used = 0;
	return 0;
}

/* There will be nothing more of what lies before a new extent. */
static int end_before(struct load *l, uint64_t bytenr, struct btrkit_error *err)
{
	const struct block_groups *groups = &l->a->groups;
	int ret = end_extent(l, err);

	while (!ret && l->group < groups->n && bytenr >= groups->at[l->group].start + groups->at[l->group].length)
		ret = end_group(l, err);
	return ret;
}

/* Whether an extent may lie in its group. That only the chunk tree lies in system groups is seen in the walk. */
static int judge_place(const struct load *l, const struct extent_item *ei, struct btrkit_error *err)
{
	const struct block_group *g = l->a->groups.at + l->group;
	const uint64_t wanted = ei->flags & EXTENT_FLAG_DATA ? BG_DATA : BG_METADATA | BG_SYSTEM;

	if (l->group == l->a->groups.n || ei->bytenr < g->start)
		return err_corrupt(err, "key.objectid", "extent outside of any block group");
	if (ei->bytenr < l->end)
		return err_corrupt(err, "key.objectid", "extent begins inside the one before, which ends at %" PRIu64,
				   l->end);
	if (!ei->num_bytes || ei->num_bytes > g->start + g->length - ei->bytenr)
		return err_corrupt(err, "key.offset",
				   "extent of %" PRIu64 " bytes in a block group that ends at %" PRIu64, ei->num_bytes,
				   g->start + g->length);
	if (!(g->flags & wanted))
		return err_corrupt(err, "flags",
				   "extent with flags 0x%" PRIx64 " in a block group with flags 0x%" PRIx64, ei->flags,
				   g->flags);
	return 0;
}

/* A reference of the current extent. */
static int take_ref(struct load *l, const struct extent_ref *ref, struct btrkit_error *err)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	const bool of_data = ref->type == KEY_EXTENT_DATA_REF || ref->type == KEY_SHARED_DATA_REF;
	struct audit_extent *e = current(l);
	struct audit_ref *to;

	if (ref->type == KEY_EXTENT_OWNER_REF) {
		if (e->flags & EXTENT_FLAG_DATA && l->a->fs->super.incompat & INCOMPAT_SIMPLE_QUOTA)
			return 0;
		return err_corrupt(err, "type", "owner reference where there is none");
	}
	if (of_data != !!(e->flags & EXTENT_FLAG_DATA))
		return err_corrupt(err, "type", "reference of type %u to an extent with flags 0x%" PRIx64, ref->type,
				   e->flags);
	to = audit_list_add(&l->a->found, sizeof(*to));
	if (!to)
		return err_nomem(err);
	*to = (struct audit_ref){ .bytenr = e->bytenr,
				  .type = ref->type,
				  .count = ref->count,
				  .root_or_parent = shared ? ref->parent : ref->root };
	if (ref->type == KEY_EXTENT_DATA_REF) {
		to->objectid = ref->objectid;
		to->offset = ref->offset;
	}
	e->counted += ref->count;
	l->a->counts.refs++;
	return 0;
}

static int take_extent(struct load *l, struct btrkit_error *err)
{
	struct extent_item ei;
	struct extent_ref ref;
	struct audit_extent *e;
	int ret = extent_item_decode(&l->c.fs->items, &l->c.item, &ei, err);

	if (!ret)
		ret = judge_place(l, &ei, err);
	if (ret)
		return ret;
	e = audit_list_add(&l->a->extents, sizeof(*e));
	if (!e)
		return err_nomem(err);
	*e = (struct audit_extent){ .bytenr = ei.bytenr,
				    .num_bytes = ei.num_bytes,
				    .refs = ei.refs,
				    .generation = ei.generation,
				    .flags = ei.flags,
				    .level = ei.level,
				    .skinny = l->c.item.key.type == KEY_METADATA_ITEM };
	l->have = true;
	l->end = ei.bytenr + ei.num_bytes;
	l->used += ei.num_bytes;
	l->a->counts.extents++;
	while (!(ret = extent_item_next_ref(&ei, &ref, err))) {
		ret = take_ref(l, &ref, err);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

/* A reference with an item of its own. */
static int take_keyed(struct load *l, struct btrkit_error *err)
{
	const struct btrkit_key *key = &l->c.item.key;
	struct extent_ref ref;
	uint64_t hash;
	int ret;

	if (!l->have || current(l)->bytenr != key->objectid)
		return err_corrupt(err, "key.objectid", "reference to an extent that there is not");
	ret = extent_keyed_ref_decode(&l->c.item, &ref, err);
	if (ret)
		return ret;
	hash = extent_data_ref_hash(ref.root, ref.objectid, ref.offset);
	if (ref.type == KEY_EXTENT_DATA_REF && key->offset - hash >= HASH_STEPS_MAX)
		return err_corrupt(err, "key.offset", "reference at a hash of %" PRIu64 ", which should be %" PRIu64,
				   key->offset, hash);
	return take_ref(l, &ref, err);
}

static int take_group(struct load *l, struct btrkit_error *err)
{
	const struct btrkit_key *key = &l->c.item.key;
	const struct block_group *g = block_groups_find(&l->a->groups, key->objectid);

	if (l->a->groups.tree != OID_EXTENT_TREE || !g || g->length != key->offset)
		return err_corrupt(err, "key.objectid", "block group without a chunk");
	l->items++;
	return 0;
}

static int take_item(struct load *l, struct btrkit_error *err)
{
	const struct btrkit_key *key = &l->c.item.key;
	int ret = item_validate(&l->c.fs->items, &l->c.item, err);

	if (ret)
		return ret;
	switch (key->type) {
	case KEY_EXTENT_ITEM:
	case KEY_METADATA_ITEM:
		return take_extent(l, err);
	case KEY_TREE_BLOCK_REF:
	case KEY_SHARED_BLOCK_REF:
	case KEY_EXTENT_DATA_REF:
	case KEY_SHARED_DATA_REF:
	case KEY_EXTENT_OWNER_REF:
		return take_keyed(l, err);
	case KEY_BLOCK_GROUP_ITEM:
		return take_group(l, err);
	default:
		return err_corrupt(err, "key.type", "item of type %u in the extent tree", key->type);
	}
}

static int load(struct load *l, struct btrkit_error *err)
{
	int ret;

	for (ret = cursor_seek(&l->c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&l->c, err)) {
		const struct btrkit_key *key = &l->c.item.key;

		if (key->type == KEY_EXTENT_ITEM || key->type == KEY_METADATA_ITEM)
			ret = end_before(l, key->objectid, err);
		if (!ret)
			ret = cursor_blame(&l->c, take_item(l, err), err);
		if (ret)
			return ret;
	}
	if (ret > 0)
		ret = end_extent(l, err);
	while (!ret && l->group < l->a->groups.n)
		ret = end_group(l, err);
	if (!ret && l->a->groups.tree == OID_EXTENT_TREE && l->items != l->a->groups.n)
		ret = err_corrupt(err, NULL, "%" PRIu64 " block group items for %zu block groups", l->items,
				  l->a->groups.n);
	return ret;
}

int audit_load_extents(struct audit *a, struct btrkit_error *err)
{
	struct load l = { .a = a };
	struct tree_root root = { 0 };
	int ret = block_groups_load(a->fs, &a->groups, err);

	if (!ret)
		ret = fs_find_root(a->fs, OID_EXTENT_TREE, &root, NULL, err);
	if (ret)
		return ret;
	a->counts.groups = a->groups.n;
	cursor_init(&l.c, a->fs, &root);
	l.c.scan = true;
	ret = load(&l, err);
	cursor_release(&l.c);
	return ret;
}
