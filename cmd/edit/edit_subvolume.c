// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on subvolumes, named like those of btrfs(8). */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"

/* Finds a subvolume by id or else by path. @follow: a symbolic link that is the last name */
static int find_subvolume(struct edit *e, const char *word, bool follow, uint64_t *id, struct btrkit_error *err)
{
	struct btrkit_subvolume s;
	struct btrkit_found f;
	char *end;
	int ret;

	errno = 0;
	*id = strtoull(word, &end, 10);
	if (isdigit((unsigned char)*word) && !*end && !errno) {
		ret = edit_subvolume(e, *id, &s, err);
		if (ret != -ENOENT)
			return ret;
	}
	ret = follow ? edit_find_target(e, word, &f, err) : edit_find(e, word, &f, err);
	if (ret)
		return ret;
	if (f.type != DT_DIR || f.inode != BTRKIT_TOP_INODE) {
		edit_fail(err, EINVAL, "");
		snprintf(err->message, sizeof(err->message), "%.150s is not a subvolume", word);
		return -EINVAL;
	}
	*id = f.root;
	return 0;
}

int edit_subvolume_create(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		struct edit_spot s;

		if (flags)
			ret = edit_make_dirs(e, words[i], false, err);
		if (!ret)
			ret = edit_spot(e, words[i], &s, err);
		if (ret)
			return ret;
		ret = s.at.len ? btrkit_txn_subvolume_create(e->txn, s.root, s.at.dir, s.at.name, s.at.len, NULL, NULL,
							     err) :
				 edit_fail(err, EEXIST, words[i]);
	}
	return ret;
}

int edit_subvolume_snapshot(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_new_snapshot what = BTRKIT_NEW_SNAPSHOT_INIT;
	struct edit_spot s;
	uint64_t id;
	int ret = find_subvolume(e, words[0], true, &id, err);

	(void)n;
	what.flags = flags ? BTRKIT_NEW_SNAPSHOT_READ_ONLY : 0;
	if (!ret)
		ret = edit_spot(e, words[1], &s, err);
	if (ret)
		return ret;
	return s.at.len ? btrkit_txn_subvolume_snapshot(e->txn, id, s.root, s.at.dir, s.at.name, s.at.len, &what, NULL,
							err) :
			  edit_fail(err, EEXIST, words[1]);
}

static int delete_one(struct edit *e, const struct btrkit_subvolume_deletion *d, struct btrkit_error *err)
{
	int ret = d->hold == BTRKIT_SUBVOLUME_IN_READ_ONLY ? edit_unlock(e, d->other, err) : 0;

	return ret ? ret : btrkit_txn_subvolume_delete(e->txn, d->id, err);
}

/* Nested subvolumes, each in the one before. */
struct chain {
	uint64_t *id;
	size_t n;
};

static int add_link(struct chain *c, uint64_t id, struct btrkit_error *err)
{
	uint64_t *more;

	for (size_t i = 0; i < c->n; i++)
		if (c->id[i] == id)
			return edit_fail(err, EUCLEAN, "a subvolume is nested in itself");
	more = realloc(c->id, (c->n + 1) * sizeof(*more));
	if (!more)
		return edit_fail(err, ENOMEM, "subvolumes");
	c->id = more;
	c->id[c->n++] = id;
	return 0;
}

/* Deletes a subvolume; @below: including those nested in it. */
static int delete(struct edit *e, uint64_t id, bool below, struct btrkit_error *err)
{
	struct chain c = { 0 };
	int ret = add_link(&c, id, err);

	while (!ret && c.n) {
		struct btrkit_subvolume_deletion d = { .id = c.id[c.n - 1] };

		ret = btrkit_subvolumes_deletable(e->fs, &d, 1, err);
		if (ret)
			break;
		if (below && d.hold == BTRKIT_SUBVOLUME_HOLDS) {
			ret = add_link(&c, d.other, err);
		} else {
			ret = delete_one(e, &d, err);
			c.n--;
		}
	}
	free(c.id);
	return ret;
}

int edit_subvolume_delete(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		uint64_t id;

		ret = find_subvolume(e, words[i], false, &id, err);
		if (!ret)
			ret = delete(e, id, flags, err);
	}
	return ret;
}

int edit_subvolume_sync(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	(void)words;
	(void)n;
	(void)flags;
	return btrkit_txn_subvolumes_clean(e->txn, NULL, err);
}

int edit_subvolume_set_default(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	uint64_t id;
	int ret = find_subvolume(e, words[0], true, &id, err);

	(void)n;
	(void)flags;
	return ret ? ret : btrkit_txn_subvolume_set_default(e->txn, id, err);
}

static int set_ro(struct edit *e, const char *path, const char *value, bool forget, struct btrkit_error *err)
{
	const bool on = !strcmp(value, "true");
	uint64_t id;
	int ret;

	if (!on && strcmp(value, "false") != 0)
		return edit_fail(err, EINVAL, "invalid value of ro: expected true or false");
	ret = find_subvolume(e, path, true, &id, err);
	return ret ? ret : edit_set_read_only(e, id, on, forget, err);
}

int edit_property_set(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_found f;
	int ret;

	(void)n;
	if (!strcmp(words[1], "ro"))
		return set_ro(e, words[0], words[2], flags, err);
	if (strcmp(words[1], "compression") != 0)
		return edit_fail(err, EINVAL, "unknown property: expected ro or compression");
	ret = edit_target(e, words[0], &f, err);
	return ret ? ret :
		     btrkit_txn_xattr_set(e->txn, f.root, f.inode, "btrfs.compression", words[2], strlen(words[2]), 0,
					  err);
}
