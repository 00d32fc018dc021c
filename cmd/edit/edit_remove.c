// SPDX-License-Identifier: LGPL-2.1-or-later
/* rm, also recursively. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"

/* The maximum depth. Deeper directories can only be a loop in a damaged filesystem. */
#define DEPTH_MAX (1u << 20)

/* Something to remove. */
struct doomed {
	uint64_t root, dir;	/* subvolume and inode of the directory */
	struct btrkit_found found; /* for a subvolume its root directory */
	uint32_t depth;
	bool read;	/* a directory whose entries are after it in the list */
	size_t name_len;
	char *name;
};

/* Everything found and not yet removed: entries come after their directory, and the last one is removed first. */
struct doom {
	struct edit *e;
	uint64_t root, dir;	/* the directory being read */
	uint32_t depth;
	struct doomed *list;
	size_t n, room;
};

static int add(struct doom *d, const struct btrkit_found *found, const char *name, size_t len)
{
	char *copy;

	if (d->n == d->room) {
		const size_t room = d->room ? 2 * d->room : 64;
		struct doomed *more = realloc(d->list, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->list = more;
		d->room = room;
	}
	/* Names in nodes are not terminated, and in damaged nodes may contain zero bytes. */
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, name, len);
	copy[len] = 0;
	d->list[d->n++] = (struct doomed){ d->root, d->dir, *found, d->depth, false, len, copy };
	return 0;
}

static int add_entry(void *ctx, const struct btrkit_dir_entry *entry)
{
	const struct btrkit_found found = { entry->root, entry->inode, entry->type };

	return add(ctx, &found, entry->name, entry->name_len);
}

/* Adds the entries of a directory to the list. */
static int read_dir(struct doom *d, const struct btrkit_found *dir, struct btrkit_error *err)
{
	const size_t n = d->n;
	int ret;

	if (d->depth++ == DEPTH_MAX)
		return edit_fail(err, EUCLEAN, "a directory is below itself");
	d->root = dir->root;
	d->dir = dir->inode;
	*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = btrkit_inode_entries(d->e->fs, d->root, d->dir, add_entry, d, err);
	if (ret == -ENOMEM && !err->err)
		return edit_fail(err, ENOMEM, "entries");
	/* An empty subvolume can be removed although it is read-only. */
	return ret || d->n == n ? ret : edit_unlock(d->e, d->root, err);
}

static int step(struct doom *d, struct btrkit_error *err)
{
	struct doomed *last = &d->list[d->n - 1];
	int ret;

	if (last->found.type == DT_DIR && last->found.inode != BTRKIT_EMPTY_SUBVOLUME && !last->read) {
		const struct btrkit_found dir = last->found;

		last->read = true;
		d->depth = last->depth;
		return read_dir(d, &dir, err);
	}
	ret = btrkit_txn_unlink(d->e->txn, last->root, last->dir, last->name, last->name_len,
				last->found.type == DT_DIR ? BTRKIT_UNLINK_DIR : BTRKIT_UNLINK_FILE, err);
	free(last->name);
	d->n--;
	return ret;
}

static int remove_tree(struct edit *e, const struct edit_spot *s, const struct btrkit_found *f,
		       struct btrkit_error *err)
{
	struct doom d = { .e = e, .root = s->root, .dir = s->at.dir };
	int ret;

	/* Directories are read from the trees. What is removed after this flush is known anyway. */
	ret = btrkit_txn_flush(e->txn, err);
	if (!ret && add(&d, f, s->at.name, s->at.len))
		ret = edit_fail(err, ENOMEM, "entries");
	while (!ret && d.n)
		ret = step(&d, err);
	while (d.n)
		free(d.list[--d.n].name);
	free(d.list);
	return ret;
}

static int remove_path(struct edit *e, const char *path, bool below, struct btrkit_error *err)
{
	struct btrkit_found f;
	struct edit_spot s;
	int ret = 0;

	if (below) {
		ret = edit_spot(e, path, &s, err);
		if (!ret && s.last > EDIT_ROOT)
			ret = edit_fail(err, EINVAL, "a path to remove must not end with . or ..");
		if (!ret)
			ret = s.at.len ? btrkit_txn_lookup(e->txn, s.root, s.at.dir, s.at.name, s.at.len, &f, err) :
					 edit_fail(err, EBUSY, path);
		if (!ret && f.type == DT_DIR)
			return remove_tree(e, &s, &f, err);
	}
	return ret ? ret : edit_unlink(e, path, err);
}

int edit_rm(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		ret = remove_path(e, words[i], flags & 1, err);
		if (ret == -ENOENT && flags & 2)
			ret = 0;
	}
	return ret;
}
