// SPDX-License-Identifier: LGPL-2.1-or-later
/* rm, with what is below. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "edit.h"

/* Something that is to go. */
struct doomed {
	uint64_t dir;	/* inode of the directory */
	uint64_t inode;
	uint8_t type;
	bool read;	/* a directory: what is in it lies behind it in the list */
	size_t name_len;
	char *name;
};

/* All that is known of it and not gone yet: what is in a directory behind it, so that the last goes first. */
struct doom {
	struct edit *e;
	uint64_t root;
	uint64_t dir;	/* that is being read */
	struct doomed *list;
	size_t n, room;
};

static int add(struct doom *d, uint64_t inode, uint8_t type, const char *name, size_t len)
{
	if (d->n == d->room) {
		const size_t room = d->room ? 2 * d->room : 64;
		struct doomed *more = realloc(d->list, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->list = more;
		d->room = room;
	}
	d->list[d->n] = (struct doomed){ d->dir, inode, type, false, len, strndup(name, len) };
	if (!d->list[d->n].name)
		return -ENOMEM;
	d->n++;
	return 0;
}

static int add_entry(void *ctx, const struct btrkit_dir_entry *entry)
{
	struct doom *d = ctx;

	/* Of a subvolume only the name is in this one; that it cannot be removed is for the library to say. */
	return add(d, entry->inode, entry->root == d->root ? entry->type : DT_UNKNOWN, entry->name, entry->name_len);
}

static int step(struct doom *d, struct btrkit_error *err)
{
	struct doomed *last = &d->list[d->n - 1];
	int ret;

	if (last->type == DT_DIR && !last->read) {
		last->read = true;
		d->dir = last->inode;
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		ret = btrkit_dir_read(d->e->fs, d->root, last->inode, add_entry, d, err);
		return ret == -ENOMEM && !err->err ? edit_fail(err, ENOMEM, "entries") : ret;
	}
	ret = btrkit_unlink(d->e->txn, d->root, last->dir, last->name, last->name_len,
			    last->type == DT_DIR ? BTRKIT_UNLINK_DIR : BTRKIT_UNLINK_FILE, err);
	free(last->name);
	d->n--;
	return ret;
}

static int remove_tree(struct edit *e, const struct edit_spot *s, const struct btrkit_found *f,
		       struct btrkit_error *err)
{
	struct doom d = { .e = e, .root = s->root, .dir = s->at.dir };
	int ret;

	/* The directories are read as they are now; what goes from then on is known. */
	ret = btrkit_txn_flush(e->txn, err);
	if (!ret && add(&d, f->inode, f->type, s->at.name, s->at.len))
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
	int ret = edit_spot(e, path, &s, err);

	if (!ret && below) {
		ret = s.at.len ? btrkit_txn_lookup(e->txn, s.root, s.at.dir, s.at.name, s.at.len, &f, err) :
				 edit_fail(err, EBUSY, path);
		if (!ret && f.type == DT_DIR && f.root == s.root && f.inode != BTRKIT_EMPTY_SUBVOLUME)
			return remove_tree(e, &s, &f, err);
	}
	return ret ? ret : btrkit_unlink(e->txn, s.root, s.at.dir, s.at.name, s.at.len, BTRKIT_UNLINK_FILE, err);
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
