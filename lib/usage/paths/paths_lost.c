// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds directories whose inode or INODE_REF is lost, by the entries of their parents. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/fs/lost_names.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_dirs.h"

struct search {
	struct paths_work *pw;
	struct array lost; /* struct paths_found */
};

/* A lost_name_fn. */
static int take_name(void *ctx, const struct lost_name *name)
{
	struct search *s = ctx;
	struct paths_found *to;

	if (name->inode <= OID_FIRST_FREE || name->inode > OID_LAST_FREE)
		return 0;
	to = array_add(&s->lost, sizeof(*to), NULL);
	if (!to)
		return -ENOMEM;
	/* The index orders the names of a directory: those that were found so come last, by their inodes. */
	*to = (struct paths_found){ .inode = name->inode,
				    .index = UINT64_MAX,
				    .parent = name->dir,
				    .name = paths_add_name(&s->pw->p->names, name->name, name->len),
				    .name_len = (uint32_t)name->len,
				    .named = true,
				    .linked = true };
	return to->name == UINT64_MAX ? -ENOMEM : 0;
}

/* Of several entries for a directory, the one whose name was found first is used. */
static int compare(const void *a, const void *b)
{
	const struct paths_found *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int add(struct array *to, const struct paths_found *f, struct btrkit_error *err)
{
	struct paths_found *last = to->n ? (struct paths_found *)to->at + to->n - 1 : NULL;

	if (to->n >= PATHS_NONE - 1)
		return err_set(err, BTRKIT_UNSUPPORTED, "there are more than %" PRIu32 " directories", PATHS_NONE - 1);
	last = array_add(to, sizeof(*last), err);
	if (!last)
		return -ENOMEM;
	*last = *f;
	return 0;
}

/* Appends the directories of a subvolume that were found at @have, and the lost ones, in the order of inodes. */
static int merge(struct search *s, struct paths_subvolume *sub, const struct paths_found *have, struct array *to,
		 struct btrkit_error *err)
{
	const struct paths_found *lost = s->lost.at, *end = lost + s->lost.n, *have_end = have + sub->num;
	const size_t first = to->n;
	int ret = 0;

	while (!ret && (have < have_end || lost < end)) {
		if (lost == end || (have < have_end && have->inode < lost->inode)) {
			ret = add(to, have++, err);
			continue;
		}
		/* Only the inode was found, or both: its own reference says more than an entry. */
		if (have < have_end && have->inode == lost->inode) {
			ret = add(to, have->named ? have : lost, err);
			have++;
		} else {
			ret = add(to, lost, err);
		}
		for (const uint64_t inode = lost->inode; lost < end && lost->inode == inode; lost++)
			;
	}
	sub->num = (uint32_t)(to->n - first);
	return ret;
}

int paths_find_lost(struct paths_work *pw, struct btrkit_error *err)
{
	struct search s = { .pw = pw };
	struct array all = { 0 };
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++) {
		struct paths_subvolume *sub = &pw->subvolumes[i];
		const uint32_t num = sub->num;

		s.lost.n = 0;
		if (lost_names_each(pw->w.fs, &sub->root, 0, take_name, &s, NULL))
			ret = err_nomem(err);
		if (s.lost.n)
			qsort(s.lost.at, s.lost.n, sizeof(struct paths_found), compare);
		if (!ret)
			ret = merge(&s, sub, num ? (const struct paths_found *)pw->found.at + at : NULL, &all, err);
		at += num;
	}
	free(s.lost.at);
	if (ret) {
		free(all.at);
		return ret;
	}
	free(pw->found.at);
	pw->found = all;
	return 0;
}
