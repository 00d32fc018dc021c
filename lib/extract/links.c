// SPDX-License-Identifier: LGPL-2.1-or-later
/* Inodes with more names to come. */
#include "lib/extract/extract.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

static struct extract_link *find(struct extract *x, const struct extract_item *item)
{
	struct extract_link *l, key = { 0 };

	key.key.root = item->i.root;
	key.key.inode = item->i.inode;
	HASH_FIND(hh, x->links, &key.key, sizeof(key.key), l);
	return l;
}

static void drop(struct extract *x, struct extract_link *l)
{
	HASH_DEL(x->links, l);
	free(l->path);
	free(l);
}

static int remember(struct extract *x, const struct extract_item *item)
{
	struct extract_link *l = calloc(1, sizeof(*l));

	if (!l)
		return err_nomem(x->err);
	l->key.root = item->i.root;
	l->key.inode = item->i.inode;
	l->left = item->i.nlink - 1;
	l->path = strdup(item->path);
	if (l->path)
		HASH_ADD(hh, x->links, key, sizeof(l->key), l);
	if (l->path && l->hh.tbl)
		return 0;
	free(l->path);
	free(l);
	return err_nomem(x->err);
}

int extract_find_link(struct extract *x, struct extract_item *item)
{
	struct extract_link *l;

	if (item->i.nlink < 2)
		return 0;
	l = find(x, item);
	if (!l)
		return remember(x, item);
	item->link = l->path;
	return 0;
}

int extract_move_link(struct extract *x, const struct extract_item *item)
{
	struct extract_link *l = find(x, item);
	char *path;

	if (!l)
		return 0;
	path = strdup(item->path);
	if (!path)
		return err_nomem(x->err);
	free(l->path);
	l->path = path;
	return 0;
}

void extract_end_link(struct extract *x, const struct extract_item *item)
{
	struct extract_link *l = find(x, item);

	if (l && !--l->left)
		drop(x, l);
}

void extract_free_links(struct extract *x)
{
	struct extract_link *l, *next;

	HASH_ITER(hh, x->links, l, next)
		drop(x, l);
}
