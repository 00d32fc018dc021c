// SPDX-License-Identifier: LGPL-2.1-or-later
/* Determines the path of the file that a finding is about. */
#include "lib/check/path.h"
#include "lib/check/state.h"
#include "lib/check/trees/roots.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/path.h"

#include <stdlib.h>
#include <string.h>


/* Reads the first name of an inode from its refs. */
static bool first_name(struct cursor *cur, uint64_t inode, struct inode_ref *ret)
{
	struct inode_ref_iter it;

	if (cursor_seek(cur, &KEY(inode, KEY_INODE_REF, 0), NULL) || cur->item.key.objectid != inode ||
	    cur->item.key.type > KEY_INODE_EXTREF)
		return false;
	it = inode_ref_first(&cur->item);
	return !inode_ref_next(&it, ret, NULL);
}

/* Changes to the namer of a tree. It is kept, because what it does about lost names reads the whole tree. */
static bool use_tree(struct check_namer *n, struct btrkit_fs *fs, const struct tree_root *root)
{
	if (n->namer && n->root.id == root->id && n->root.bytenr == root->bytenr)
		return true;
	check_namer_end(n);
	if (path_namer_create(fs, root, &n->namer, NULL))
		return false;
	path_namer_go_around(n->namer);
	n->root = *root;
	return true;
}

static char *path_of(struct check_namer *n, struct btrkit_fs *fs, const struct tree_root *root, struct cursor *cur,
		     uint64_t inode)
{
	struct inode_ref name;
	const char *path;
	char *ret = NULL;
	size_t len;

	if (!first_name(cur, inode, &name) || !use_tree(n, fs, root))
		return NULL;
	/* A damaged name may contain a NUL, which would cut the path short. */
	if (!path_namer_path(n->namer, name.parent, name.name, name.name_len, &path, &len, NULL) && len &&
	    !memchr(path, 0, len))
		ret = calloc(1, len + 1);
	if (ret)
		memcpy(ret, path, len);
	return ret;
}

void check_namer_end(struct check_namer *n)
{
	path_namer_destroy(n->namer);
	*n = (struct check_namer){ 0 };
}

char *check_path(const struct check *c, struct check_namer *n, const struct btrkit_error *what)
{
	const struct check_root *root;
	struct cursor cur;
	char *ret;

	/* The top directory has only the name "..". */
	if (!(what->places & BTRKIT_AT_KEY) || !(what->places & BTRKIT_AT_TREE) || !oid_is_file_tree(what->tree) ||
	    what->key.objectid <= OID_FIRST_FREE || what->key.objectid > OID_LAST_FREE)
		return NULL;
	root = check_find_root(c, what->tree);
	if (!root)
		return NULL;
	cursor_init(&cur, c->fs, &root->root);
	ret = path_of(n, c->fs, &root->root, &cur, what->key.objectid);
	cursor_release(&cur);
	return ret;
}
