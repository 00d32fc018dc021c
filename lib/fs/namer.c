// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/lost_names.h"
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

/* A directory whose reference is lost, with its name by an entry. */
struct lost_dir {
	uint64_t inode, parent;
	UT_hash_handle hh;
	uint16_t len;
	uint8_t name[];
};

struct path_namer {
	struct cursor cursor;
	bool around;		/* find lost names */
	bool searched;		/* the table has been filled */
	struct lost_dir *lost;
	size_t lost_bytes;
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

static void forget_lost(struct path_namer *n)
{
	struct lost_dir *dir, *next;

	HASH_ITER(hh, n->lost, dir, next)
	{
		HASH_DEL(n->lost, dir);
		free(dir);
	}
}

void path_namer_go_around(struct path_namer *n)
{
	n->around = true;
}

struct path_namer *path_namer_destroy(struct path_namer *n)
{
	if (!n)
		return NULL;
	cursor_release(&n->cursor);
	forget_all(n);
	forget_lost(n);
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

/* A lost_name_fn. What is beyond the limits stays without a name. */
static int keep_lost(void *ctx, const struct lost_name *name)
{
	struct path_namer *n = ctx;
	struct lost_dir *dir;

	HASH_FIND(hh, n->lost, &name->inode, sizeof(name->inode), dir);
	if (dir || HASH_COUNT(n->lost) >= KEPT_MAX || n->lost_bytes + name->len > KEPT_BYTES_MAX)
		return 0;
	dir = malloc(sizeof(*dir) + name->len);
	if (!dir)
		return -ENOMEM;
	dir->inode = name->inode;
	dir->parent = name->dir;
	dir->len = (uint16_t)name->len;
	memcpy(dir->name, name->name, name->len);
	HASH_ADD(hh, n->lost, inode, sizeof(dir->inode), dir);
	if (!dir->hh.tbl) {
		free(dir);
		return -ENOMEM;
	}
	n->lost_bytes += name->len;
	return 0;
}

/* Finds the name of a directory whose reference is lost. @return 0; 1: none is known; -ENOMEM */
static int find_lost(struct path_namer *n, uint64_t inode, struct inode_ref *ret, struct btrkit_error *err)
{
	const struct lost_dir *dir;

	/* All at once, since that reads the whole tree. */
	if (!n->searched) {
		if (lost_names_each(n->cursor.fs, &n->cursor.root, 0, keep_lost, n, NULL))
			return err_nomem(err);
		n->searched = true;
	}
	HASH_FIND(hh, n->lost, &inode, sizeof(inode), dir);
	if (!dir)
		return 1;
	*ret = (struct inode_ref){ .parent = dir->parent, .name = dir->name, .name_len = dir->len };
	return 0;
}

/* Finds the name and parent of a directory by its reference. */
static int read_name(struct path_namer *n, uint64_t inode, struct inode_ref *ret, struct btrkit_error *err)
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

/* Finds the name and parent of a directory, which has only one name. */
static int find_name(struct path_namer *n, uint64_t inode, struct inode_ref *ret, struct btrkit_error *err)
{
	const int r = read_name(n, inode, ret, err);
	int found;

	if (!r || r == -ENOMEM || !n->around)
		return r;
	found = find_lost(n, inode, ret, err);
	if (!found && err)
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return found == 1 ? r : found;
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
