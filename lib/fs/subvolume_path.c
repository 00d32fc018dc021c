// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/subvolume.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"

/* Limits that are much higher than what Linux can follow. */
#define PATH_BYTES_MAX (1u << 20)
#define STEPS_MAX 4096u

struct place {
	uint64_t parent;
	struct root_ref ref; /* the name points into the cursor's leaf */
};

/* Finds the parent of a subvolume and leaves the cursor at one of the two references. */
static int find_place(struct cursor *c, uint64_t id, struct place *ret, struct btrkit_error *err)
{
	int r = subvolume_parent_either(c, id, &ret->parent, err);

	if (r)
		return r;
	if (!ret->parent)
		return err_set(err, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " is not attached to a directory", id);
	return cursor_blame(c, root_ref_decode(&c->item, &ret->ref, err), err);
}

/* Prepends the path of @place in its parent to *path. */
static int prepend(struct btrkit_fs *fs, const struct place *place, char **path, size_t *len, struct btrkit_error *err)
{
	struct path_namer *namer;
	struct subvolume parent;
	const char *more;
	char *joined;
	size_t n;
	int r;

	r = subvolume_get(fs, place->parent, &parent, err);
	/* In the top directory, the name is the path: nothing is read from the tree of a lost parent. */
	if (r && (r == -ENOENT || r == -ENOMEM || place->ref.dirid != OID_FIRST_FREE))
		return r;
	if (r) {
		parent.root = (struct tree_root){ .id = place->parent };
		if (err)
			*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	}
	r = path_namer_create(fs, &parent.root, &namer, err);
	if (r)
		return r;
	path_namer_go_around(namer);
	r = path_namer_path(namer, place->ref.dirid, place->ref.name, place->ref.name_len, &more, &n, err);
	if (!r && *len + n + 1 > PATH_BYTES_MAX)
		r = err_corrupt(err, "name", "the path of a subvolume is longer than %u bytes", PATH_BYTES_MAX);
	if (!r) {
		joined = malloc(n + 1 + *len);
		if (joined) {
			memcpy(joined, more, n);
			if (*len) {
				joined[n++] = '/';
				memcpy(joined + n, *path, *len);
			}
			free(*path);
			*path = joined;
			*len += n;
		} else {
			r = err_nomem(err);
		}
	}
	path_namer_destroy(namer);
	return r;
}

int btrkit_subvolume_path(struct btrkit_fs *fs, uint64_t id, btrkit_path_fn fn, void *ctx, struct btrkit_error *err)
{
	struct subvolume s;
	char *path = NULL;
	size_t len = 0;
	struct cursor c;
	int r;

	r = subvolume_get(fs, id, &s, err);
	if (r)
		return r;
	cursor_init(&c, fs, &fs->root_tree);
	for (unsigned steps = 0; !r && id != OID_FS_TREE; steps++) {
		struct place place;

		/* Damaged references may form a loop. */
		if (steps == STEPS_MAX)
			r = err_corrupt(err, "key.offset", "subvolume %" PRIu64 " is not connected to the top level",
					s.root.id);
		if (!r)
			r = find_place(&c, id, &place, err);
		if (!r)
			r = prepend(fs, &place, &path, &len, err);
		if (!r)
			id = place.parent;
	}
	cursor_release(&c);
	if (!r)
		r = fn(ctx, path ? path : "", len);
	free(path);
	return r;
}
