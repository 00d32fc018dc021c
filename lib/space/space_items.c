// SPDX-License-Identifier: LGPL-2.1-or-later
/* Edits of items that describe chunks and devices, which must or must not exist. */
#include "lib/space/space_impl.h"

#include <errno.h>

#include "lib/base/err.h"
#include "lib/tree/edit.h"

int space_missing_item(int ret, uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	if (ret == -ENOENT || ret == 1) {
		ret = err_corrupt(err, NULL, "item of a chunk is missing");
		err_at_tree(err, tree);
		err_at_key(err, key);
	}
	return ret;
}

int space_delete_item(struct space *s, uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, tree, &t, err);

	return ret ? ret : space_missing_item(edit_delete(t, key, err), tree, key, err);
}

int space_insert_item(struct space *s, uint64_t tree, const struct btrkit_key *key, const void *data, uint32_t size,
		      struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, tree, &t, err);

	if (!ret)
		ret = edit_insert(t, key, data, size, err);
	if (ret == -EEXIST) {
		ret = err_corrupt(err, NULL, "item of another chunk has the key of a new one");
		err_at_tree(err, tree);
		err_at_key(err, key);
	}
	return ret;
}
