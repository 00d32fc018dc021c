// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/archive_links.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/source/source.h"

struct archive_hidden {
	uint32_t inode;
	bool wanted;
	struct archive_hidden *also;
	UT_hash_handle hh;
	char path[]; /* without empty names and single dots */
};

/* Copies a path in its shortest form. @return its length */
static size_t shorten(const char *path, char *to)
{
	size_t len = 0, n;
	const char *name;

	while ((name = source_next_name(&path, &n)), n) {
		if (len)
			to[len++] = '/';
		memcpy(to + len, name, n);
		len += n;
	}
	to[len] = '\0';
	return len;
}

int archive_links_hide(struct archive_links *l, const char *path, uint32_t target, struct archive_hidden *also,
		       struct btrkit_error *err)
{
	struct archive_hidden *h = calloc(1, sizeof(*h) + strlen(path) + 1), *old;
	size_t len;

	if (!h)
		return err_nomem(err);
	h->inode = target;
	h->also = also;
	len = shorten(path, h->path);
	HASH_FIND(hh, l->hidden, h->path, len, old);
	if (old) {
		free(h);
		return 0;
	}
	HASH_ADD(hh, l->hidden, path, len, h);
	if (!h->hh.tbl) {
		free(h);
		return err_nomem(err);
	}
	return 0;
}

int archive_links_find(const struct archive_links *l, const char *path, struct archive_hidden **ret,
		       struct btrkit_error *err)
{
	struct archive_hidden *h = NULL;
	char *key;

	*ret = NULL;
	if (!l->hidden)
		return 0;
	key = malloc(strlen(path) + 1);
	if (!key)
		return err_nomem(err);
	HASH_FIND(hh, l->hidden, key, shorten(path, key), h);
	free(key);
	while (h && h->also)
		h = h->also;
	*ret = h;
	return 0;
}

uint32_t archive_hidden_inode(const struct archive_hidden *h)
{
	return h->inode;
}

void archive_hidden_set_inode(struct archive_hidden *h, uint32_t inode)
{
	h->inode = inode;
}

bool archive_hidden_wanted(const struct archive_hidden *h)
{
	return h->wanted && h->inode == SOURCE_NONE;
}

int archive_links_later(struct archive_links *l, const char *path, struct archive_hidden *target,
			struct btrkit_error *err)
{
	struct archive_late *grown;

	if (l->num_late == l->max_late) {
		grown = reallocarray(l->late, l->max_late * 2 + 16, sizeof(*grown));
		if (!grown)
			return err_nomem(err);
		l->late = grown;
		l->max_late = l->max_late * 2 + 16;
	}
	l->late[l->num_late] = (struct archive_late){ strdup(path), target };
	if (!l->late[l->num_late].path)
		return err_nomem(err);
	l->num_late++;
	target->wanted = true;
	return archive_links_hide(l, path, SOURCE_NONE, target, err);
}

void archive_links_free(struct archive_links *l)
{
	struct archive_hidden *h, *next;

	HASH_ITER(hh, l->hidden, h, next) {
		HASH_DEL(l->hidden, h);
		free(h);
	}
	for (size_t i = 0; i < l->num_late; i++)
		free(l->late[i].path);
	free(l->late);
	*l = (struct archive_links){ 0 };
}
