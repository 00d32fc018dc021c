// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ranges of files: holes, preallocation, cloning. */
#include <dirent.h>
#include <errno.h>

#include "cmd/edit/edit.h"

/* Parses PATH OFFSET LENGTH. @change: the file is to be changed */
static int take_range(struct edit *e, char **words, bool change, struct btrkit_found *f, uint64_t *range,
		      struct btrkit_error *err)
{
	int ret = edit_number(words[1], &range[0], err);

	if (!ret)
		ret = edit_number(words[2], &range[1], err);
	if (ret)
		return ret;
	return change ? edit_target_file(e, words[0], f, err) : edit_find_target(e, words[0], f, err);
}

int edit_punch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_found f;
	uint64_t range[2];
	int ret = take_range(e, words, true, &f, range, err);

	(void)n;
	(void)flags;
	return ret ? ret : btrkit_txn_punch(e->txn, f.root, f.inode, range[0], range[1], err);
}

int edit_prealloc(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_found f;
	uint64_t range[2];
	int ret = take_range(e, words, true, &f, range, err);

	(void)n;
	return ret ? ret :
		     btrkit_txn_prealloc(e->txn, f.root, f.inode, range[0], range[1],
					 flags ? BTRKIT_PREALLOC_KEEP_SIZE : 0, err);
}

static int clone_range(struct edit *e, char **words, struct btrkit_error *err)
{
	struct btrkit_found from, to;
	struct btrkit_clone what;
	uint64_t range[2], offset;
	int ret = edit_number(words[4], &offset, err);

	if (!ret)
		ret = take_range(e, words, false, &from, range, err);
	if (!ret)
		ret = edit_target_file(e, words[3], &to, err);
	if (!ret && from.inode == BTRKIT_EMPTY_SUBVOLUME)
		ret = edit_fail(err, EISDIR, words[0]);
	if (ret)
		return ret;
	what = (struct btrkit_clone){ .from_root = from.root,
				      .from_inode = from.inode,
				      .from_offset = range[0],
				      .to_root = to.root,
				      .to_inode = to.inode,
				      .to_offset = offset,
				      .length = range[1] };
	return btrkit_txn_clone(e->txn, &what, err);
}

/* Creates a file with the permissions and owners of another. */
static int make_like(struct edit *e, const struct btrkit_found *f, const char *path, struct btrkit_found *ret,
		     struct btrkit_error *err)
{
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	struct btrkit_inode like;
	int r = btrkit_txn_flush(e->txn, err);

	if (!r)
		r = btrkit_inode_get(e->fs, f->root, f->inode, &like, err);
	if (r)
		return r;
	what.mode = like.mode;
	what.uid = like.uid;
	what.gid = like.gid;
	return edit_create(e, path, &what, &ret->root, &ret->inode, err);
}

static int clone_file(struct edit *e, char **words, struct btrkit_error *err)
{
	struct btrkit_found from, to;
	struct btrkit_clone what;
	int ret = edit_find_target(e, words[0], &from, err);

	if (ret)
		return ret;
	if (from.type != DT_REG)
		return edit_fail(err, from.type == DT_DIR ? EISDIR : EINVAL, words[0]);
	ret = edit_target_file(e, words[1], &to, err);
	if (ret == -ENOENT)
		ret = make_like(e, &from, words[1], &to, err);
	else if (!ret && to.root == from.root && to.inode == from.inode)
		ret = edit_fail(err, EINVAL, "cannot clone a file to itself");
	else if (!ret)
		ret = btrkit_txn_truncate(e->txn, to.root, to.inode, 0, err);
	if (ret)
		return ret;
	what = (struct btrkit_clone){
		.from_root = from.root, .from_inode = from.inode, .to_root = to.root, .to_inode = to.inode
	};
	return btrkit_txn_clone(e->txn, &what, err);
}

int edit_clone(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	(void)flags;
	if (n != 2 && n != 5)
		return edit_fail(err, EINVAL, "clone takes FROM TO, or FROM AT LENGTH TO AT");
	return n == 2 ? clone_file(e, words, err) : clone_range(e, words, err);
}
