// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builds the forest of directories in the order of a walk. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_dirs.h"
#include "lib/usage/paths/paths_link.h"
#include "lib/usage/paths/paths_read.h"

/* Directories deeper than this have no node of their own: Linux cannot use longer paths. */
#define NODE_DEPTH_MAX 4096u
/* Linux cannot create deeper directories. */
#define DIR_DEPTH_MAX 65536u
#define NAME_BYTES_MAX 65536u

struct link {
	struct paths_work *pw;
	uint32_t limit;	   /* maximum depth of nodes */
	uint32_t *order;   /* all directories sorted by parent and index */
	uint32_t *next;	   /* per directory: index in order of its next child */
	struct array list; /* struct paths_node */
};

static const struct paths_found *found_at(const struct link *l, uint32_t dir)
{
	return (const struct paths_found *)l->pw->found.at + dir;
}

static struct paths_subvolume *find_subvolume(const struct paths_work *pw, uint64_t id)
{
	size_t low = 0, high = pw->num_subvolumes;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (pw->subvolumes[mid].root.id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < pw->num_subvolumes && pw->subvolumes[low].root.id == id ? &pw->subvolumes[low] : NULL;
}

/* Returns the subvolume that contains a directory. */
static struct paths_subvolume *subvolume_of(const struct paths_work *pw, uint32_t dir)
{
	size_t low = 0, high = pw->num_subvolumes;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (pw->subvolumes[mid].first <= dir)
			low = mid + 1;
		else
			high = mid;
	}
	return &pw->subvolumes[low - 1];
}

static void find_parents(struct link *l, const struct paths_subvolume *s)
{
	struct paths_work *pw = l->pw;
	uint32_t hint = s->first;

	for (uint32_t i = s->first; i < s->first + s->num; i++) {
		const struct paths_found *f = found_at(l, i);

		pw->dirs[i].index = f->index;
		if (f->named)
			pw->dirs[i].parent = paths_find_dir(pw, s, f->parent, &hint);
	}
}

/* Finds the root directory of a subvolume and its parent. */
static int place_top(struct link *l, struct paths_subvolume *s, struct btrkit_error *err)
{
	struct paths_work *pw = l->pw;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const struct paths_subvolume *parent;
	uint32_t hint = s->first;

	s->top = paths_find_dir(pw, s, OID_FIRST_FREE, &hint);
	if (s->top == PATHS_NONE) {
		err_set(&what, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " has no root directory", s->root.id);
		return paths_report(pw, s->root.id, &what, err);
	}
	pw->dirs[s->top].index = s->index;
	parent = s->placed ? find_subvolume(pw, s->parent) : NULL;
	if (parent)
		pw->dirs[s->top].parent = paths_find_dir(pw, parent, s->dirid, &hint);
	return 0;
}

static int make_dirs(struct link *l, struct btrkit_error *err)
{
	struct paths_work *pw = l->pw;
	int ret = 0;

	pw->num_dirs = pw->found.n;
	pw->dirs = calloc(pw->num_dirs + 1, sizeof(*pw->dirs));
	if (!pw->dirs)
		return err_nomem(err);
	for (uint32_t i = 0; i < pw->num_dirs; i++)
		pw->dirs[i] = (struct paths_dir){
			.inode = found_at(l, i)->inode, .parent = PATHS_NONE, .rank = PATHS_NONE, .node = PATHS_NONE
		};
	for (size_t i = 0; i < pw->num_subvolumes; i++)
		find_parents(l, &pw->subvolumes[i]);
	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++)
		ret = place_top(l, &pw->subvolumes[i], err);
	return ret;
}

static int compare_places(const void *a, const void *b, void *ctx)
{
	const struct paths_dir *dirs = ctx;
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (dirs[i].parent != dirs[j].parent)
		return dirs[i].parent < dirs[j].parent ? -1 : 1;
	if (dirs[i].index != dirs[j].index)
		return dirs[i].index < dirs[j].index ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int order_children(struct link *l, struct btrkit_error *err)
{
	const struct paths_work *pw = l->pw;
	const size_t n = pw->num_dirs;

	l->order = malloc((n + 1) * sizeof(*l->order));
	l->next = malloc((n + 1) * sizeof(*l->next));
	if (!l->order || !l->next)
		return err_nomem(err);
	for (uint32_t i = 0; i < n; i++) {
		l->order[i] = i;
		l->next[i] = PATHS_NONE;
	}
	qsort_r(l->order, n, sizeof(*l->order), compare_places, pw->dirs);
	for (uint32_t i = (uint32_t)n; i-- > 0;)
		if (pw->dirs[l->order[i]].parent != PATHS_NONE)
			l->next[pw->dirs[l->order[i]].parent] = i;
	return 0;
}

/* Sets the name of a subvolume's root directory, prefixed with the names of parents that have no nodes. */
static int name_top(struct link *l, const struct paths_subvolume *s, uint32_t dir, struct paths_node *node,
		    struct btrkit_error *err)
{
	struct paths_work *pw = l->pw;
	struct array *names = &pw->p->names;
	uint32_t above = pw->dirs[dir].parent;
	size_t len = s->name_len;
	char *at;

	node->name = s->name;
	node->name_len = s->name_len;
	for (; pw->dirs[above].depth > l->limit; above = pw->dirs[above].parent)
		len += found_at(l, above)->name_len + 1;
	if (above == pw->dirs[dir].parent || len > NAME_BYTES_MAX)
		return 0;
	node->name = paths_add_name(names, NULL, len);
	if (node->name == UINT64_MAX)
		return err_nomem(err);
	node->name_len = (uint32_t)len;
	at = (char *)names->at + names->n - s->name_len;
	memcpy(at, (char *)names->at + s->name, s->name_len);
	for (above = pw->dirs[dir].parent; pw->dirs[above].depth > l->limit; above = pw->dirs[above].parent) {
		const struct paths_found *f = found_at(l, above);

		*--at = '/';
		at -= f->name_len;
		memcpy(at, (char *)names->at + f->name, f->name_len);
	}
	return 0;
}

static int add_node(struct link *l, uint32_t dir, uint32_t parent, struct btrkit_error *err)
{
	struct paths_work *pw = l->pw;
	struct paths_dir *d = &pw->dirs[dir];
	struct paths_node *node = array_add(&l->list, sizeof(*node), err);

	if (!node)
		return -ENOMEM;
	d->node = (uint32_t)l->list.n - 1;
	*node = (struct paths_node){ .inode = d->inode, .parent = parent, .depth = d->depth };
	if (d->inode == OID_FIRST_FREE) {
		const struct paths_subvolume *s = subvolume_of(pw, dir);

		node->subvolume = s->root.id;
		return parent == PATHS_NONE ? 0 : name_top(l, s, dir, node, err);
	}
	node->subvolume = ((struct paths_node *)l->list.at)[parent].subvolume;
	node->name = found_at(l, dir)->name;
	node->name_len = found_at(l, dir)->name_len;
	return 0;
}

/* Enters a directory during the walk. @root: it is the start of a tree, without parent */
static int enter(struct link *l, uint32_t dir, bool root, uint32_t *rank, struct btrkit_error *err)
{
	struct paths_dir *d = &l->pw->dirs[dir];
	const struct paths_dir *parent = root ? NULL : &l->pw->dirs[d->parent];

	d->rank = (*rank)++;
	d->depth = d->inode == OID_FIRST_FREE ? 0 : parent->depth + 1;
	if (d->depth <= l->limit)
		return add_node(l, dir, parent ? parent->node : PATHS_NONE, err);
	d->node = parent->node;
	return 0;
}

static int walk(struct link *l, uint32_t root, uint32_t *rank, struct btrkit_error *err)
{
	struct paths_dir *dirs = l->pw->dirs;
	uint32_t at = root;
	int ret = enter(l, root, true, rank, err);

	while (!ret) {
		const uint32_t place = l->next[at];
		const uint32_t child = place < l->pw->num_dirs ? l->order[place] : PATHS_NONE;

		if (child != PATHS_NONE && dirs[child].parent == at) {
			l->next[at]++;
			/* Subvolumes may form a loop. */
			if (dirs[child].rank != PATHS_NONE || dirs[at].depth >= DIR_DEPTH_MAX)
				continue;
			ret = enter(l, child, false, rank, err);
			at = child;
			continue;
		}
		if (dirs[at].depth <= l->limit)
			((struct paths_node *)l->list.at)[dirs[at].node].end = (uint32_t)l->list.n;
		if (at == root)
			break;
		at = dirs[at].parent;
	}
	return ret;
}

/* Subvolumes that were not reached start their own trees; those without a parent are tried first. */
static int walk_rest(struct link *l, uint32_t *rank, struct btrkit_error *err)
{
	struct paths_work *pw = l->pw;
	const size_t n = pw->num_subvolumes;
	int ret = 0;

	for (size_t i = 0; !ret && i < 2 * n; i++) {
		const struct paths_subvolume *s = &pw->subvolumes[i % n];
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (s->top == PATHS_NONE || pw->dirs[s->top].rank != PATHS_NONE ||
		    (i < n && pw->dirs[s->top].parent != PATHS_NONE))
			continue;
		err_corrupt(&what, NULL, "subvolume %" PRIu64 " is not attached to a reachable directory", s->root.id);
		ret = paths_report(pw, OID_ROOT_TREE, &what, err);
		if (!ret)
			ret = walk(l, s->top, rank, err);
	}
	/* Only after the walks, which need it. */
	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++) {
		const uint32_t top = pw->subvolumes[i].top;

		if (top != PATHS_NONE && ((struct paths_node *)l->list.at)[pw->dirs[top].node].parent == PATHS_NONE)
			pw->dirs[top].parent = PATHS_NONE;
	}
	return ret;
}

static int report_unmet(struct paths_work *pw, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++) {
		const struct paths_subvolume *s = &pw->subvolumes[i];
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		uint32_t unmet = 0;

		for (uint32_t dir = s->first; dir < s->first + s->num; dir++)
			unmet += pw->dirs[dir].rank == PATHS_NONE;
		if (!unmet)
			continue;
		err_corrupt(&what, NULL, "directories that are not reachable from the root directory: %" PRIu32, unmet);
		ret = paths_report(pw, s->root.id, &what, err);
	}
	return ret;
}

static int list_tops(struct paths_work *pw, struct btrkit_error *err)
{
	struct btrkit_usage_paths *p = pw->p;

	p->tops = calloc(pw->num_subvolumes + 1, sizeof(*p->tops));
	if (!p->tops)
		return err_nomem(err);
	for (size_t i = 0; i < pw->num_subvolumes; i++) {
		const struct paths_subvolume *s = &pw->subvolumes[i];

		if (s->top != PATHS_NONE)
			p->tops[p->num_tops++] = (struct paths_top){ s->root.id, pw->dirs[s->top].node };
	}
	return 0;
}

int paths_link(struct paths_work *pw, struct btrkit_error *err)
{
	const uint32_t asked = pw->opts.flags & BTRKIT_USAGE_PATHS_LIMITED ? pw->opts.depth : NODE_DEPTH_MAX;
	struct link l = { .pw = pw, .limit = asked < NODE_DEPTH_MAX ? asked : NODE_DEPTH_MAX };
	const struct paths_subvolume *first = pw->subvolumes;
	uint32_t rank = 0;
	int ret = make_dirs(&l, err);

	if (!ret)
		ret = order_children(&l, err);
	if (!ret && pw->num_subvolumes && first->root.id == OID_FS_TREE && first->top != PATHS_NONE)
		ret = walk(&l, first->top, &rank, err);
	if (!ret)
		ret = walk_rest(&l, &rank, err);
	free(l.order);
	free(l.next);
	pw->p->nodes = l.list.at;
	pw->p->num_nodes = l.list.n;
	free(pw->found.at);
	pw->found = (struct array){ 0 };
	if (!ret)
		ret = report_unmet(pw, err);
	return ret ? ret : list_tops(pw, err);
}

uint32_t paths_common(const struct btrkit_usage_paths *p, uint32_t a, uint32_t b)
{
	if (b == PATHS_NONE)
		return PATHS_NONE;
	while (a != PATHS_NONE && (b < a || b >= p->nodes[a].end))
		a = p->nodes[a].parent;
	return a;
}
