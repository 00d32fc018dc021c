// SPDX-License-Identifier: LGPL-2.1-or-later
/* The paths of an inode, one for each of its names. */
#include <btrkit/inode.h>

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/fs/inode.h"
#include "lib/fs/lost_names.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"

struct naming {
	struct cursor c;
	struct path_namer *namer;
	uint64_t inode;
	bool known;	  /* the inode item was read */
	uint32_t nlink;	  /* from that */
	bool damaged;	  /* references may be lost */
	uint64_t named;	  /* names that were found */
	uint64_t entries; /* those of them that only directory entries have */
	btrkit_path_fn fn;
	btrkit_lost_fn lost; /* NULL: the first damage ends the search */
	void *ctx;
	struct btrkit_error *err;
};

/* Reports damage. @return 0: it goes on; <0 */
static int tell(const struct naming *n, int ret, const struct btrkit_error *what)
{
	return n->lost && ret != -ENOMEM ? n->lost(n->ctx, what) : err_pass(n->err, what, ret);
}

/* Passes on the path of a name. */
static int name_path(struct naming *n, uint64_t dir, const uint8_t *name, size_t name_len)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const char *path;
	size_t len;
	int ret = path_namer_path(n->namer, dir, name, name_len, &path, &len, &what);

	n->named++;
	if (!ret)
		return n->fn(n->ctx, path, len);
	text_add(what.message, sizeof(what.message), "; a path of inode %" PRIu64 ", through directory %" PRIu64
		 ", is missing", n->inode, dir);
	return tell(n, ret, &what);
}

/* Passes on a path for every name in an INODE_REF or INODE_EXTREF item. */
static int name_paths(struct naming *n)
{
	struct inode_ref_iter it = inode_ref_first(&n->c.item);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_ref ref;
	int ret;

	while (!(ret = inode_ref_next(&it, &ref, &what))) {
		ret = name_path(n, ref.parent, ref.name, ref.name_len);
		if (ret)
			return ret;
	}
	if (ret == 1)
		return 0;
	n->damaged = true;
	return tell(n, cursor_blame(&n->c, ret, &what), &what);
}

/* Whether items of the inode, up to its last reference, may have keys from @first to before @end. */
static bool concerns(const struct naming *n, const struct btrkit_key *first, const struct btrkit_key *end)
{
	return key_cmp(first, &KEY(n->inode, KEY_INODE_EXTREF, UINT64_MAX)) <= 0 &&
	       key_cmp(end, &KEY(n->inode, KEY_INODE_ITEM, 0)) > 0;
}

/* A cursor_lost_fn. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	struct btrkit_error told = *what;
	struct btrkit_key first, end;
	struct naming *n = ctx;

	/* The references end before it. */
	if (!cursor_lost_keys(&n->c, &first, &end) && !concerns(n, &first, &end))
		return 1;
	n->damaged = true;
	text_add(told.message, sizeof(told.message),
		 n->known ? "; references of inode %" PRIu64 " are missing" : "; inode %" PRIu64 " is missing",
		 n->inode);
	return tell(n, ret, &told);
}

static int take_item(struct naming *n)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_item item;
	int ret;

	if (n->c.item.key.type == KEY_INODE_REF || n->c.item.key.type == KEY_INODE_EXTREF)
		return name_paths(n);
	if (n->c.item.key.type != KEY_INODE_ITEM)
		return 0;
	ret = inode_item_decode(&n->c.fs->items, &n->c.item, &item, &what);
	if (ret) {
		n->damaged = true;
		return tell(n, cursor_blame(&n->c, ret, &what), &what);
	}
	n->known = true;
	n->nlink = item.nlink;
	return 0;
}

/* Passes on the paths of names that have references which can be read. */
static int list_references(struct naming *n)
{
	struct btrkit_key at = KEY(n->inode, KEY_INODE_ITEM, 0);
	bool first = true;
	int ret;

	while (!(ret = cursor_next_around(&n->c, &at, first, lose_block, n, n->err))) {
		first = false;
		if (at.objectid != n->inode || at.type > KEY_INODE_EXTREF)
			break;
		if (at.type != KEY_INODE_ITEM && !n->known && !n->damaged)
			break;
		/* The root directory's only reference is to itself. */
		if (n->inode == OID_FIRST_FREE && at.type != KEY_INODE_ITEM)
			break;
		ret = take_item(n);
		if (ret)
			return ret;
	}
	if (ret < 0)
		return ret;
	if (!n->known && !n->damaged)
		return err_set(n->err, BTRKIT_NOT_FOUND, "no inode %" PRIu64 " in subvolume %" PRIu64, n->inode,
			       n->c.root.id);
	return 0;
}

/* A lost_name_fn. */
static int take_entry(void *ctx, const struct lost_name *name)
{
	struct naming *n = ctx;

	n->entries++;
	return name_path(n, name->dir, name->name, name->len);
}

/* Passes on the paths of names whose references are lost, and tells whether there may be more. */
static int list_lost(struct naming *n)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = lost_names_each(n->c.fs, &n->c.root, n->inode, take_entry, n, n->err);

	if (ret)
		return ret;
	ret = err_corrupt(&what, NULL, "of inode %" PRIu64 ", %" PRIu64
			  " names without reference were found by DIR_ITEM or DIR_INDEX", n->inode, n->entries);
	err_at_tree(&what, n->c.root.id);
	if (!n->known)
		text_add(what.message, sizeof(what.message), "; how many are missing is unknown");
	else if (n->nlink < n->named)
		text_add(what.message, sizeof(what.message), "; the link count does not tell how many are missing");
	else if (n->nlink == n->named)
		text_add(what.message, sizeof(what.message), "; none is missing");
	else
		text_add(what.message, sizeof(what.message), "; %" PRIu64 " are still missing", n->nlink - n->named);
	return tell(n, ret, &what);
}

static int list_paths(struct naming *n)
{
	int ret = list_references(n);

	if (ret)
		return ret;
	if (n->inode == OID_FIRST_FREE)
		return n->fn(n->ctx, "", 0);
	return n->damaged ? list_lost(n) : 0;
}

int btrkit_inode_paths_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn,
			      btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct naming n = { .inode = inode, .fn = fn, .lost = lost, .ctx = ctx, .err = err };
	struct subvolume s = { 0 };
	int ret;

	ret = subvolume_get(fs, root, &s, err);
	cursor_init(&n.c, fs, &s.root);
	if (!ret)
		ret = path_namer_create(fs, &s.root, &n.namer, err);
	if (!ret && lost)
		path_namer_go_around(n.namer);
	if (!ret)
		ret = list_paths(&n);
	path_namer_destroy(n.namer);
	cursor_release(&n.c);
	return ret;
}

int btrkit_inode_paths(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn, void *ctx,
		       struct btrkit_error *err)
{
	return btrkit_inode_paths_around(fs, root, inode, fn, NULL, ctx, err);
}
