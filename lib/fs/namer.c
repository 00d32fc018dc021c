// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/format/items/files/inode.h"
#include "lib/tree/cursor.h"

/*
 * Limits of the cache of directory paths. When one is reached, the cache is emptied, which costs one lookup for each
 * directory that is needed again.
 */
#define KEPT_MAX 8192
#define KEPT_BYTES_MAX (8u << 20)
/* Linux cannot create deeper directories; a longer chain of parents is a loop. */
#define DEPTH_MAX 65536u
#define PATH_BYTES_MAX (1u << 20)

struct kept_dir {
	uint64_t inode;
	UT_hash_handle hh;
	size_t len;
	char path[]; /* ends in a slash unless empty */
};

struct path_namer {
	struct cursor cursor;
	struct kept_dir *kept;
	size_t kept_bytes;
	/* A path is built from back to front at the end of the buffer. */
	char *buf;
	size_t size, used;
};

int path_namer_create(struct btrkit_fs *fs, const struct tree_root *root, struct path_namer **ret,
		      struct btrkit_error *err)
{
	struct path_namer *n = calloc(1, sizeof(*n));

	if (!n)
		return err_nomem(err);
	cursor_init(&n->cursor, fs, root);
	*ret = n;
	return 0;
}

static void forget_all(struct path_namer *n)
{
	struct kept_dir *dir, *next;

	HASH_ITER(hh, n->kept, dir, next)
	{
		HASH_DEL(n->kept, dir);
		free(dir);
	}
	n->kept_bytes = 0;
}

struct path_namer *path_namer_destroy(struct path_namer *n)
{
	if (!n)
		return NULL;
	cursor_release(&n->cursor);
	forget_all(n);
	free(n->buf);
	free(n);
	return NULL;
}

static int prepend(struct path_namer *n, const void *data, size_t len, struct btrkit_error *err)
{
	if (!n->size || n->size - n->used < len) {
		size_t size = n->size ? n->size : 4096;
		char *more;

		while (size - n->used < len)
			size *= 2;
		if (size > PATH_BYTES_MAX)
			return err_corrupt(err, "name", "a path is longer than %u bytes", PATH_BYTES_MAX);
		more = malloc(size);
		if (!more)
			return err_nomem(err);
		if (n->used)
			memcpy(more + size - n->used, n->buf + n->size - n->used, n->used);
		free(n->buf);
		n->buf = more;
		n->size = size;
	}
	n->used += len;
	memcpy(n->buf + n->size - n->used, data, len);
	return 0;
}

/* Adds the path of directory @inode to the cache: all of the current path but its last @behind bytes. */
static void keep(struct path_namer *n, uint64_t inode, size_t behind)
{
	size_t len = n->used - behind;
	struct kept_dir *dir;

	if (HASH_COUNT(n->kept) >= KEPT_MAX || n->kept_bytes + len > KEPT_BYTES_MAX)
		forget_all(n);
	dir = malloc(sizeof(*dir) + len);
	if (!dir)
		return;
	dir->inode = inode;
	dir->len = len;
	memcpy(dir->path, n->buf + n->size - n->used, len);
	HASH_ADD(hh, n->kept, inode, sizeof(dir->inode), dir);
	if (!dir->hh.tbl)
		free(dir);
	else
		n->kept_bytes += len;
}

/* Finds the name and parent of a directory, which has only one name. */
static int find_name(struct path_namer *n, uint64_t inode, struct inode_ref *ret, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(inode, KEY_INODE_REF, 0);
	struct inode_ref_iter it;
	int r;

	r = cursor_seek(&n->cursor, &key, err);
	if (r < 0)
		return r;
	if (!r && n->cursor.item.key.objectid == inode &&
	    (n->cursor.item.key.type == KEY_INODE_REF || n->cursor.item.key.type == KEY_INODE_EXTREF)) {
		it = inode_ref_first(&n->cursor.item);
		r = inode_ref_next(&it, ret, err);
		if (r <= 0)
			return cursor_blame(&n->cursor, r, err);
	}
	r = err_corrupt(err, NULL, "directory inode %" PRIu64 " has no name", inode);
	err_at_tree(err, n->cursor.root.id);
	return r;
}

int path_namer_path(struct path_namer *n, uint64_t parent, const void *name, size_t name_len, const char **path,
		    size_t *path_len, struct btrkit_error *err)
{
	uint64_t dir = parent;
	int ret;

	n->used = 0;
	ret = prepend(n, name, name_len, err);
	for (unsigned depth = 0; !ret && dir != OID_FIRST_FREE; depth++) {
		struct kept_dir *known;
		struct inode_ref ref;

		HASH_FIND(hh, n->kept, &dir, sizeof(dir), known);
		if (known) {
			ret = prepend(n, known->path, known->len, err);
			break;
		}
		if (depth == DEPTH_MAX) {
			ret = err_corrupt(err, NULL, "directory inode %" PRIu64 " is not connected to the root",
					  parent);
			err_at_tree(err, n->cursor.root.id);
			break;
		}
		ret = find_name(n, dir, &ref, err);
		if (!ret)
			ret = prepend(n, "/", 1, err);
		if (!ret)
			ret = prepend(n, ref.name, ref.name_len, err);
		if (!ret)
			dir = ref.parent;
	}
	if (ret)
		return ret;
	if (parent != OID_FIRST_FREE) {
		struct kept_dir *known;

		HASH_FIND(hh, n->kept, &parent, sizeof(parent), known);
		if (!known)
			keep(n, parent, name_len);
	}
	*path = n->buf + n->size - n->used;
	*path_len = n->used;
	return 0;
}
