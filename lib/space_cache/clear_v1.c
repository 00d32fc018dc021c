// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Removes the v1 cache: batches of headers with their files first, then files without a header. If this is interrupted,
 * the v1 cache has fewer block groups and is still consistent.
 */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/refs.h"
#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/space_cache.h"
#include "lib/space_cache/convert.h"

#define BATCH_MAX 512u /* headers or files */
#define EXTENTS 4096u  /* maximum items per deletion, far more than Linux creates in one file */

struct clearing {
	struct conversion *cv;
	struct btrkit_txn **txn;
	struct edit_tree *t; /* the root tree */
	size_t batch;
	uint64_t files[BATCH_MAX]; /* to be removed, sorted */
	size_t n;
	uint64_t removed[BATCH_MAX];
	size_t num_removed;
	uint64_t done; /* total number of removed files */
};

/* Applies pending changes, and commits if the transaction has become large. */
static int breathe(struct clearing *cl, struct btrkit_error *err)
{
	struct conversion *cv = cl->cv;
	int ret;

	ret = progress_tell(&cv->progress, PROGRESS_REMOVE, cl->done, cv->sum.v1_files, err);
	if (!ret)
		ret = txn_run_refs(*cl->txn, err);
	if (!ret && txn_bytes(*cl->txn) >= cv->held_bytes / 2)
		ret = convert_next_txn(cv, cl->txn, err);
	return ret ? ret : txn_tree(*cl->txn, OID_ROOT_TREE, &cl->t, err);
}

/* Drops the reference of the current item, a file extent. */
static int drop_extent(struct clearing *cl, struct btrkit_error *err)
{
	const struct cursor *c = &cl->t->c;
	struct extent_change change;
	struct file_extent fe;
	int ret = file_extent_decode(&c->fs->items, &c->item, &fe, err);

	if (ret)
		return cursor_blame(c, ret, err);
	if (!fe.disk_bytenr)
		return 0;
	change = (struct extent_change){ .bytenr = fe.disk_bytenr,
					 .num_bytes = fe.disk_num_bytes,
					 .data = true,
					 .ref = { .type = KEY_EXTENT_DATA_REF,
						  .root = OID_ROOT_TREE,
						  .objectid = c->item.key.objectid,
						  .offset = c->item.key.offset - fe.offset },
					 .add = -1 };
	return txn_change_data_ref(*cl->txn, &change, err);
}

/*
 * Removes consecutive files in the tree, beginning with files[first]. *next is the index of the file to continue with.
 */
static int remove_run(struct clearing *cl, size_t first, size_t *next, struct btrkit_error *err)
{
	struct btrkit_key from = { 0 }, to = { 0 };
	struct v1_files files = { 0 };
	struct cursor *c = &cl->t->c;
	size_t at = first;
	unsigned items = 0;
	int ret;

	for (ret = cursor_seek(c, &KEY(cl->files[at], 0, 0), err); !ret && items < EXTENTS; ret = cursor_next(c, err)) {
		const struct btrkit_key key = c->item.key;

		if (items && key.objectid != cl->files[at] && at + 1 < cl->n && key.objectid == cl->files[at + 1])
			at++;
		if (key.objectid != cl->files[at] || !v1_files_has(&files, c))
			break;
		if (key.type == KEY_INODE_ITEM)
			cl->removed[cl->num_removed++] = key.objectid;
		if (key.type == KEY_EXTENT_DATA)
			ret = drop_extent(cl, err);
		if (ret)
			break;
		from = items++ ? from : key;
		to = key;
	}
	if (ret < 0)
		return ret;
	*next = items < EXTENTS ? at + 1 : at;
	return items ? edit_delete_range(cl->t, &from, &to, NULL, err) : 0;
}

static bool has_removed(const struct clearing *cl, uint64_t ino)
{
	size_t i = 0;

	while (i < cl->num_removed && cl->removed[i] < ino)
		i++;
	return i < cl->num_removed && cl->removed[i] == ino;
}

/* Linux adds an orphan item for a file that it is about to remove. Subvolumes being deleted have orphan items too. */
static int remove_orphans(struct clearing *cl, struct btrkit_error *err)
{
	struct cursor *c = &cl->t->c;
	struct btrkit_key key;
	int ret;

	if (!cl->num_removed)
		return 0;
	key = KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, cl->removed[0]);
	for (ret = cursor_seek(c, &key, err); !ret; ret = cursor_seek(c, &key, err)) {
		key = c->item.key;
		if (key.objectid != OID_ORPHAN || key.type != KEY_ORPHAN_ITEM ||
		    key.offset > cl->removed[cl->num_removed - 1])
			return 0;
		if (has_removed(cl, key.offset))
			ret = edit_delete(cl->t, &key, err);
		if (ret)
			return ret;
		key.offset++;
	}
	return ret < 0 ? ret : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int remove_files(struct clearing *cl, struct btrkit_error *err)
{
	size_t at = 0, kept = 0;
	int ret = 0;

	qsort(cl->files, cl->n, sizeof(cl->files[0]), compare_numbers);
	for (size_t i = 0; i < cl->n; i++)
		if (!kept || cl->files[i] != cl->files[kept - 1])
			cl->files[kept++] = cl->files[i];
	cl->n = kept;
	cl->num_removed = 0;
	while (!ret && at < cl->n) {
		const size_t before = at;

		ret = remove_run(cl, before, &at, err);
		/* The file has more than EXTENTS items. */
		if (!ret && at == before)
			ret = breathe(cl, err);
	}
	if (!ret)
		ret = remove_orphans(cl, err);
	cl->done += cl->num_removed;
	return ret ? ret : breathe(cl, err);
}

static bool is_header(const struct btrkit_key *key)
{
	return key->objectid == OID_FREE_SPACE && !key->type;
}

/* Removes the first headers and their files. @return 0; 1: no headers left; <0 */
static int remove_headers(struct clearing *cl, struct btrkit_error *err)
{
	struct cursor *c = &cl->t->c;
	struct btrkit_key first = { 0 }, last = { 0 };
	struct space_cache header;
	unsigned headers = 0;
	int ret;

	cl->n = 0;
	for (ret = cursor_seek(c, &KEY(OID_FREE_SPACE, 0, 0), err);
	     !ret && is_header(&c->item.key) && headers < cl->batch; ret = cursor_next(c, err)) {
		last = c->item.key;
		first = headers++ ? first : last;
		if (!space_cache_decode(&c->item, &header, NULL) && header.location.type == KEY_INODE_ITEM)
			cl->files[cl->n++] = header.location.objectid;
	}
	if (ret < 0 || !headers)
		return ret < 0 ? ret : 1;
	ret = edit_delete_range(cl->t, &first, &last, NULL, err);
	return ret ? ret : remove_files(cl, err);
}

/* Removes files after *ino, which have no headers. @return 0; 1: no files left; <0 */
static int remove_nameless(struct clearing *cl, uint64_t *ino, struct btrkit_error *err)
{
	struct v1_files files = { 0 };
	struct cursor *c = &cl->t->c;
	int ret;

	cl->n = 0;
	for (ret = cursor_seek(c, &KEY(*ino + 1, 0, 0), err); !ret && c->item.key.objectid <= OID_LAST_FREE;
	     ret = cursor_next(c, err)) {
		const uint64_t found = c->item.key.objectid;

		if (!v1_files_has(&files, c) || (cl->n && found == cl->files[cl->n - 1]))
			continue;
		if (cl->n == cl->batch)
			break;
		cl->files[cl->n++] = found;
	}
	if (ret < 0 || !cl->n)
		return ret < 0 ? ret : 1;
	*ino = cl->files[cl->n - 1];
	return remove_files(cl, err);
}

int convert_clear_v1(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err)
{
	struct clearing cl = { .cv = cv, .txn = txn, .batch = BATCH_MAX };
	const uint64_t fit = cv->held_bytes / 2 / cv->fs->geometry.nodesize / CONVERT_FILE_BLOCKS;
	uint64_t ino = OID_FIRST_FREE - 1;
	int ret;

	if (fit < cl.batch)
		cl.batch = fit + 1;
	ret = txn_tree(*txn, OID_ROOT_TREE, &cl.t, err);
	while (!ret)
		ret = remove_headers(&cl, err);
	if (ret == 1)
		ret = 0;
	while (!ret)
		ret = remove_nameless(&cl, &ino, err);
	return ret < 0 ? ret : 0;
}
