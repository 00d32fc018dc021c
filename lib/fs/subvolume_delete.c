// SPDX-License-Identifier: LGPL-2.1-or-later
/* Determines which subvolumes Linux would refuse to delete, from the references in the root tree. */
#include <btrkit/subvolume.h>

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/fs/subvolume.h"

static int compare_ids(const void *a, const void *b)
{
	const struct btrkit_subvolume_deletion *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static struct btrkit_subvolume_deletion *find(struct btrkit_subvolume_deletion *all, size_t n, uint64_t id)
{
	struct btrkit_subvolume_deletion key = { .id = id };

	return bsearch(&key, all, n, sizeof(*all), compare_ids);
}

static void hold(struct btrkit_subvolume_deletion *d, enum btrkit_subvolume_hold why, uint64_t other)
{
	d->hold = why;
	d->other = other;
}

/* Finds the first subvolume nested in @id that is not in @all; 0: there is none. */
static int find_other_child(struct cursor *c, uint64_t id, struct btrkit_subvolume_deletion *all, size_t n,
			    uint64_t *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(id, KEY_ROOT_REF, 0);
	int r;

	*ret = 0;
	for (r = cursor_seek(c, &key, err); !r; r = cursor_next(c, err)) {
		if (c->item.key.objectid != id || c->item.key.type != KEY_ROOT_REF)
			break;
		if (!find(all, n, c->item.key.offset)) {
			*ret = c->item.key.offset;
			break;
		}
	}
	return r < 0 ? r : 0;
}

/* Determines what prevents the deletion of a subvolume, except for others in @all. */
static int check_deletion(struct cursor *c, uint64_t default_id, struct btrkit_subvolume_deletion *d,
			  struct btrkit_subvolume_deletion *all, size_t n, uint64_t *parent, struct btrkit_error *err)
{
	struct subvolume s;
	uint64_t child;
	int r;

	hold(d, BTRKIT_SUBVOLUME_DELETABLE, 0);
	r = subvolume_get(c->fs, d->id, &s, err);
	if (!r)
		r = subvolume_parent(c, d->id, parent, err);
	if (!r)
		r = find_other_child(c, d->id, all, n, &child, err);
	if (r)
		return r;
	if (d->id == OID_FS_TREE)
		hold(d, BTRKIT_SUBVOLUME_TOP_LEVEL, 0);
	else if (d->id == default_id)
		hold(d, BTRKIT_SUBVOLUME_DEFAULT, 0);
	else if (child)
		hold(d, BTRKIT_SUBVOLUME_HOLDS, child);
	else if (!*parent)
		hold(d, BTRKIT_SUBVOLUME_NOWHERE, 0);
	if (d->hold != BTRKIT_SUBVOLUME_DELETABLE)
		return 0;
	r = subvolume_try(c->fs, *parent, &s, err);
	if (r == 1)
		hold(d, BTRKIT_SUBVOLUME_NOWHERE, 0);
	else if (!r && s.item.flags & ROOT_SUBVOL_RDONLY)
		hold(d, BTRKIT_SUBVOLUME_IN_READ_ONLY, *parent);
	return r < 0 ? r : 0;
}

/*
 * A subvolume that stays also keeps its parents. Each is marked once, so this ends even if they are nested in each
 * other.
 */
static void hold_above(struct btrkit_subvolume_deletion *all, const uint64_t *parents, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct btrkit_subvolume_deletion *d = &all[i];

		while (d->hold != BTRKIT_SUBVOLUME_DELETABLE) {
			struct btrkit_subvolume_deletion *above = find(all, n, parents[d - all]);

			if (!above || above->hold != BTRKIT_SUBVOLUME_DELETABLE)
				break;
			hold(above, BTRKIT_SUBVOLUME_HOLDS, d->id);
			d = above;
		}
	}
}

int btrkit_subvolumes_deletable(struct btrkit_fs *fs, struct btrkit_subvolume_deletion *subvolumes, size_t n,
				struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	uint64_t default_id = 0, *parents;
	struct cursor c;
	int r;

	for (size_t i = 1; i < n; i++)
		if (subvolumes[i - 1].id >= subvolumes[i].id)
			return err_set(err, BTRKIT_INVALID, "subvolumes are not in ascending order");
	r = subvolume_default(fs, &default_id, &own);
	if (r && r != -ENOENT)
		return err_pass(err, &own, r);
	parents = calloc(n ? n : 1, sizeof(*parents));
	if (!parents)
		return err_nomem(err);
	cursor_init(&c, fs, &fs->root_tree);
	r = 0;
	for (size_t i = 0; i < n && !r; i++)
		r = check_deletion(&c, default_id, &subvolumes[i], subvolumes, n, &parents[i], err);
	cursor_release(&c);
	if (!r)
		hold_above(subvolumes, parents, n);
	free(parents);
	return r;
}
