// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the owners in the root tree and numbers them. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/sweep/drop.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaves.h"
#include "lib/usage/owners/roots.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"

/* Limit for following the ancestors of a snapshot. If it is reached, sets are only less compact. */
#define ANCESTORS_MAX 256

static int add_own(struct usage_work *w, struct tree_root root, struct btrkit_error *err)
{
	struct tree_root *to = array_add(&w->own, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	*to = root;
	return 0;
}

static int take_root(struct usage_work *w, const struct item *item, struct tree_root *extent_tree,
		     struct btrkit_error *err)
{
	struct usage_root *to;
	struct root_item ri;
	int ret = root_item_decode(&w->fs->items, item, &ri, err);

	if (ret)
		return ret;
	if (item->key.objectid == OID_EXTENT_TREE)
		*extent_tree = tree_root_of(&item->key, &ri);
	if (!sweep_has_files(item->key.objectid))
		return add_own(w, tree_root_of(&item->key, &ri), err);
	to = array_add(&w->roots, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = (struct usage_root){
		.root = tree_root_of(&item->key, &ri),
		.refs = ri.refs,
		.drop = sweep_drop_of(&ri),
	};
	memcpy(to->uuid, ri.uuid, sizeof(to->uuid));
	memcpy(to->parent_uuid, ri.parent_uuid, sizeof(to->parent_uuid));
	return 0;
}

/* Files in the root tree belong to the v1 space cache. */
static int take_v1(struct usage_work *w, const struct item *item, struct btrkit_error *err)
{
	struct usage_stray *to;
	struct file_extent fe;
	int ret = file_extent_decode(&w->fs->items, item, &fe, err);

	if (ret || !fe.disk_bytenr)
		return ret;
	to = array_add(&w->v1, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = (struct usage_stray){ .bytenr = fe.disk_bytenr, .sectors = usage_sectors(w->u, fe.disk_num_bytes) };
	return 0;
}

struct root_reader {
	struct usage_work *w;
	struct tree_root *extent_tree;
};

static int take_leaf(void *ctx, const struct node *leaf, struct btrkit_error *err)
{
	const struct root_reader *r = ctx;
	struct usage_work *w = r->w;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (item.key.type == KEY_ROOT_ITEM)
			ret = take_root(w, &item, r->extent_tree, &what);
		else if (item.key.type == KEY_EXTENT_DATA)
			ret = take_v1(w, &item, &what);
		if (ret) {
			err_at_tree(&what, OID_ROOT_TREE);
			err_at_logical(&what, leaf->bytenr);
			err_at_item(&what, i, &item.key);
			ret = usage_damage(w, ret, &what, err);
		}
	}
	return ret;
}

int usage_find_roots(struct usage_work *w, struct tree_root *extent_tree, struct btrkit_error *err)
{
	struct root_reader r = { w, extent_tree };

	return usage_each_leaf(w, &w->fs->root_tree, take_leaf, &r, err);
}

static enum btrkit_usage_kind kind_of(const struct usage_root *r)
{
	switch (r->root.id) {
	case OID_TREE_RELOC:
		return BTRKIT_USAGE_RELOCATION;
	case OID_DATA_RELOC_TREE:
		return BTRKIT_USAGE_DATA_RELOCATION;
	default:
		return r->refs ? BTRKIT_USAGE_SUBVOLUME : BTRKIT_USAGE_DROPPED;
	}
}

static uint64_t id_of(const struct usage_root *r)
{
	return r->root.id == OID_TREE_RELOC ? r->root.key_offset : r->root.id;
}

/* Sort key of owners: determines their numbers in sets. */
struct place {
	uint8_t family[UUID_SIZE];
	uint64_t when, id; /* generation in which it was as its neighbours are */
	uint32_t owner;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int family = memcmp(x->family, y->family, sizeof(x->family));

	if (family)
		return family;
	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->owner < y->owner ? -1 : 1;
}

static int compare_owners(const void *a, const void *b)
{
	const struct btrkit_usage_owner *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_uuids(const void *a, const void *b)
{
	const struct usage_root *const *x = a, *const *y = b;

	return memcmp((*x)->uuid, (*y)->uuid, sizeof((*x)->uuid));
}

static struct usage_root *find_by_uuid(const uint8_t uuid[UUID_SIZE], struct usage_root *const *by_uuid, size_t n)
{
	struct usage_root key, *wanted = &key, **found;

	memcpy(key.uuid, uuid, sizeof(key.uuid));
	found = bsearch(&wanted, by_uuid, n, sizeof(*by_uuid), compare_uuids);
	return found ? *found : NULL;
}

static void find_family(const struct usage_root *r, struct usage_root *const *by_uuid, size_t n,
			uint8_t family[UUID_SIZE])
{
	for (unsigned step = 0; step < ANCESTORS_MAX && !base_uuid_is_none(r->parent_uuid); step++) {
		const struct usage_root *parent = find_by_uuid(r->parent_uuid, by_uuid, n);

		if (!parent) {
			/* The parent was deleted, but siblings have the same parent. */
			memcpy(family, r->parent_uuid, UUID_SIZE);
			return;
		}
		r = parent;
	}
	memcpy(family, r->uuid, UUID_SIZE);
}

/*
 * A subvolume that snapshots are made of is changed between them, so it shares most with the latest one. A snapshot
 * without snapshots of its own shares most with those made at about the same time, even if it was changed later.
 */
static uint64_t when_was(const struct usage_root *r)
{
	const bool snapshot = kind_of(r) != BTRKIT_USAGE_RELOCATION && r->root.key_offset;

	return snapshot && !r->has_snapshots ? r->root.key_offset : r->root.generation;
}

/* Builds the sorted list of owners without duplicates. The filesystem itself is the last one. */
static int list_owners(struct usage_work *w, struct btrkit_error *err)
{
	const struct usage_root *roots = w->roots.at;
	struct btrkit_usage *u = w->u;
	size_t n = 0;

	u->owners = calloc(w->roots.n + 1, sizeof(*u->owners));
	if (!u->owners)
		return err_nomem(err);
	for (size_t i = 0; i < w->roots.n; i++) {
		u->owners[i].kind = kind_of(&roots[i]);
		u->owners[i].id = id_of(&roots[i]);
	}
	u->owners[w->roots.n].kind = BTRKIT_USAGE_FILESYSTEM;
	qsort(u->owners, w->roots.n + 1, sizeof(*u->owners), compare_owners);
	for (size_t i = 0; i < w->roots.n + 1; i++)
		if (!n || compare_owners(&u->owners[n - 1], &u->owners[i]))
			u->owners[n++] = u->owners[i];
	u->num_owners = n;
	return 0;
}

static uint32_t owner_of(const struct btrkit_usage *u, const struct usage_root *r)
{
	const struct btrkit_usage_owner key = { .kind = kind_of(r), .id = id_of(r) };
	const struct btrkit_usage_owner *found = bsearch(&key, u->owners, u->num_owners, sizeof(key), compare_owners);

	return (uint32_t)(found - u->owners);
}

/* Fills in the sort keys of all owners. */
static void fill_places(struct usage_work *w, struct usage_root **by_uuid, struct place *places)
{
	struct usage_root *roots = w->roots.at;
	struct btrkit_usage *u = w->u;

	for (size_t i = 0; i < w->roots.n; i++)
		by_uuid[i] = &roots[i];
	if (w->roots.n)
		qsort(by_uuid, w->roots.n, sizeof(*by_uuid), compare_uuids);
	for (size_t i = 0; i < u->num_owners; i++) {
		places[i].owner = (uint32_t)i;
		places[i].id = u->owners[i].id;
		/* After all others. */
		if (u->owners[i].kind == BTRKIT_USAGE_FILESYSTEM)
			memset(places[i].family, 0xff, sizeof(places[i].family));
	}
	for (size_t i = 0; i < w->roots.n; i++) {
		struct usage_root *parent = find_by_uuid(roots[i].parent_uuid, by_uuid, w->roots.n);

		if (parent && !base_uuid_is_none(parent->uuid))
			parent->has_snapshots = true;
	}
	for (size_t i = 0; i < w->roots.n; i++) {
		struct place *p = &places[owner_of(u, &roots[i])];

		p->when = when_was(&roots[i]);
		find_family(&roots[i], by_uuid, w->roots.n, p->family);
	}
}

static int number_owners(struct usage_work *w, struct place *places, struct btrkit_error *err)
{
	struct usage_root *roots = w->roots.at;
	struct btrkit_usage *u = w->u;
	const size_t n = u->num_owners;

	u->inside = calloc(n, sizeof(*u->inside));
	u->outside = calloc(n, sizeof(*u->outside));
	u->counting = calloc(n + 1, sizeof(*u->counting));
	w->orphans = calloc(n + 1, sizeof(*w->orphans));
	if (!u->inside || !u->outside || !u->counting || !w->orphans)
		return err_nomem(err);
	qsort(places, n, sizeof(*places), compare_places);
	for (size_t i = 0; i < n; i++) {
		const enum btrkit_usage_kind kind = u->owners[places[i].owner].kind;

		u->outside[i] = places[i].owner;
		u->inside[places[i].owner] = (uint32_t)i;
		u->counting[i + 1] = u->counting[i] + (kind == BTRKIT_USAGE_SUBVOLUME || kind == BTRKIT_USAGE_DROPPED);
	}
	for (size_t i = 0; i < w->roots.n; i++)
		roots[i].owner = u->inside[owner_of(u, &roots[i])];
	return 0;
}

int usage_name_owners(struct usage_work *w, struct btrkit_error *err)
{
	struct btrkit_usage *u = w->u;
	struct usage_root **by_uuid;
	struct place *places;
	int ret = list_owners(w, err);

	if (ret)
		return ret;
	by_uuid = calloc(w->roots.n + 1, sizeof(*by_uuid));
	places = calloc(u->num_owners, sizeof(*places));
	if (by_uuid && places) {
		fill_places(w, by_uuid, places);
		ret = number_owners(w, places, err);
	} else {
		ret = err_nomem(err);
	}
	free(by_uuid);
	free(places);
	if (!ret)
		ret = sets_init(&u->sets, (uint32_t)u->num_owners, u->counting, w->opts.set_memory, err);
	return ret ? ret : sets_single(&u->sets, u->inside[u->num_owners - 1], &w->filesystem, err);
}
