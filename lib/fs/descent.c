// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/descent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/subvolume.h"

/* Records that a subvolume is entered. @return 0; 1: it was entered before; -ENOMEM */
static int remember_root(struct descent *d, uint64_t root, struct btrkit_error *err)
{
	size_t low = 0, high = d->num_roots;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (d->roots[middle] < root)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < d->num_roots && d->roots[low] == root)
		return 1;
	if (d->num_roots == d->room) {
		const size_t room = d->room ? 2 * d->room : 16;
		uint64_t *more = reallocarray(d->roots, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		d->roots = more;
		d->room = room;
	}
	memmove(d->roots + low + 1, d->roots + low, (d->num_roots - low) * sizeof(*d->roots));
	d->roots[low] = root;
	d->num_roots++;
	return 0;
}

int descent_begin(struct descent *d, struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	*d = (struct descent){ .fs = fs, .root = root, .inode = inode };
	return remember_root(d, root, err);
}

void descent_end(struct descent *d)
{
	struct descent_dir *dir, *next;

	HASH_ITER(hh, d->dirs, dir, next)
	{
		HASH_DEL(d->dirs, dir);
		free(dir);
	}
	free(d->roots);
}

/* Records that a directory is entered whose name is lost. @return 0; 1: it was entered before; -ENOMEM */
static int remember_dir(struct descent *d, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	struct descent_dir *dir = NULL, key = { .key = { root, inode } };

	HASH_FIND(hh, d->dirs, &key.key, sizeof(key.key), dir);
	if (dir)
		return 1;
	dir = malloc(sizeof(*dir));
	if (!dir)
		return err_nomem(err);
	*dir = key;
	HASH_ADD(hh, d->dirs, key, sizeof(dir->key), dir);
	if (dir->hh.tbl)
		return 0;
	free(dir);
	return err_nomem(err);
}

static bool is_name(const struct cursor *c, uint64_t inode)
{
	return c->item.key.objectid == inode &&
	       (c->item.key.type == KEY_INODE_REF || c->item.key.type == KEY_INODE_EXTREF);
}

/*
 * Checks that the inode has only one name, and that it is the one of the entry.
 * @return 0; 1: no; <0: what cannot be read, or that there is no name at all
 */
static int is_only_name(struct cursor *c, uint64_t dir, const struct btrkit_dir_entry *e, struct btrkit_error *err)
{
	struct inode_ref_iter it;
	struct inode_ref ref;
	int ret = cursor_seek(c, &KEY(e->inode, KEY_INODE_REF, 0), err);

	if (ret < 0)
		return ret;
	if (ret || !is_name(c, e->inode)) {
		ret = err_corrupt(err, NULL, "directory %" PRIu64 " has no INODE_REF", e->inode);
		err_at_tree(err, c->root.id);
		return ret;
	}
	if (c->item.key.type != KEY_INODE_REF || c->item.key.offset != dir)
		return 1;
	it = inode_ref_first(&c->item);
	ret = inode_ref_next(&it, &ref, err);
	if (!ret && (ref.index != e->index || ref.name_len != e->name_len))
		return 1;
	if (!ret && memcmp(ref.name, e->name, e->name_len) != 0)
		return 1;
	if (!ret)
		ret = inode_ref_next(&it, &ref, err);
	if (ret < 0)
		return cursor_blame(c, ret, err);
	if (!ret)
		return 1;
	ret = cursor_next(c, err);
	return ret < 0 ? ret : !ret && is_name(c, e->inode);
}

/* Decides about a directory whose name cannot be read for the reason @what. @return as descent_enter() */
static int enter_lost(struct descent *d, const struct btrkit_dir_entry *e, struct btrkit_error *what,
		      struct btrkit_error *err)
{
	const int ret = remember_dir(d, e->root, e->inode, err);

	if (ret < 0)
		return ret;
	if (ret)
		return err_corrupt(err, NULL, "directory %" PRIu64 ", whose name is lost, has several entries",
				   e->inode);
	text_add(what->message, sizeof(what->message),
		 "; whether directory %" PRIu64 " has this name alone is not known", e->inode);
	if (err)
		*err = *what;
	return 1;
}

int descent_enter(struct descent *d, uint64_t root, uint64_t inode, const struct btrkit_dir_entry *e,
		  struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct subvolume s;
	struct cursor c;
	int ret;

	if (e->root != root) {
		ret = remember_root(d, e->root, err);
		return ret <= 0 ? ret :
				  err_corrupt(err, NULL, "subvolume %" PRIu64 " is attached in several places",
					      e->root);
	}
	if (e->inode == OID_FIRST_FREE || (e->root == d->root && e->inode == d->inode))
		return err_corrupt(err, NULL, "entry leads back to directory %" PRIu64 " above it",
				   e->inode);
	ret = subvolume_get(d->fs, root, &s, err);
	if (ret)
		return ret;
	cursor_init(&c, d->fs, &s.root);
	ret = is_only_name(&c, inode, e, &what);
	cursor_release(&c);
	if (ret < 0)
		return ret == -ENOMEM ? err_nomem(err) : enter_lost(d, e, &what, err);
	return ret ? err_corrupt(err, NULL, "directory %" PRIu64 " has several names", e->inode) : 0;
}

struct btrkit_descent {
	struct descent d;
};

int btrkit_descent_begin(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_descent **ret,
			 struct btrkit_error *err)
{
	struct btrkit_descent *d = malloc(sizeof(*d));
	int r;

	if (!d)
		return err_nomem(err);
	r = descent_begin(&d->d, fs, root, inode, err);
	if (r)
		btrkit_descent_end(d);
	else
		*ret = d;
	return r;
}

struct btrkit_descent *btrkit_descent_end(struct btrkit_descent *d)
{
	if (d)
		descent_end(&d->d);
	free(d);
	return NULL;
}

int btrkit_descent_enter(struct btrkit_descent *d, uint64_t root, uint64_t inode, const struct btrkit_dir_entry *entry,
			 struct btrkit_error *err)
{
	return descent_enter(&d->d, root, inode, entry, err);
}
