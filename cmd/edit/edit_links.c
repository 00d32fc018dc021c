// SPDX-License-Identifier: LGPL-2.1-or-later
/* Local files with further names to come, and the inodes that they were copied to. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Out of memory: hh.tbl of the element that could not be added is NULL. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#include "cmd/edit/edit.h"

struct edit_link {
	struct {
		dev_t dev;
		ino_t ino;
	} local;
	struct btrkit_found made;
	nlink_t left;
	UT_hash_handle hh;
};

static struct edit_link *find(struct edit_link *links, const struct stat *st)
{
	struct edit_link *l, key;

	memset(&key, 0, sizeof(key));
	key.local.dev = st->st_dev;
	key.local.ino = st->st_ino;
	HASH_FIND(hh, links, &key.local, sizeof(key.local), l);
	return l;
}

static void drop(struct edit_link **links, struct edit_link *l)
{
	HASH_DEL(*links, l);
	free(l);
}

const struct btrkit_found *edit_links_find(struct edit_link *links, const struct stat *st)
{
	const struct edit_link *l = st->st_nlink > 1 ? find(links, st) : NULL;

	return l ? &l->made : NULL;
}

int edit_links_add(struct edit_link **links, const struct stat *st, const struct btrkit_found *made,
		   struct btrkit_error *err)
{
	struct edit_link *l;

	if (st->st_nlink < 2)
		return 0;
	l = find(*links, st);
	if (l) {
		l->made = *made;
		edit_links_end(links, st);
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return edit_fail(err, ENOMEM, "names of files");
	l->local.dev = st->st_dev;
	l->local.ino = st->st_ino;
	l->made = *made;
	l->left = st->st_nlink - 1;
	HASH_ADD(hh, *links, local, sizeof(l->local), l);
	if (l->hh.tbl)
		return 0;
	free(l);
	return edit_fail(err, ENOMEM, "names of files");
}

void edit_links_end(struct edit_link **links, const struct stat *st)
{
	struct edit_link *l = find(*links, st);

	if (l && !--l->left)
		drop(links, l);
}

void edit_links_free(struct edit_link **links)
{
	struct edit_link *l, *next;

	HASH_ITER(hh, *links, l, next)
		drop(links, l);
}
