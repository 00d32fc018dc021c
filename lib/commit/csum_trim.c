// SPDX-License-Identifier: LGPL-2.1-or-later
/* Deletes checksums together with their data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/csums.h"
#include "lib/commit/txn.h"

static struct btrkit_key csum_key(uint64_t logical)
{
	return KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, logical);
}

int csums_before(struct cursor *c, uint64_t logical, struct range *ret, struct btrkit_error *err)
{
	const struct item_ctx *ctx = &c->fs->items;
	const struct btrkit_key key = csum_key(logical - 1);
	const struct item *item = &c->item;
	int r;

	r = cursor_seek_back(c, &key, err);
	if (r)
		return r;
	if (item->key.objectid != OID_EXTENT_CSUM || item->key.type != KEY_EXTENT_CSUM)
		return 1;
	r = cursor_blame(c, item_validate(ctx, item, err), err);
	if (r)
		return r;
	*ret = (struct range){ item->key.offset, (uint64_t)(item->size / ctx->csum_size) * ctx->sectorsize };
	return 0;
}

/*
 * Finds the last item that begins before @logical, if it extends past it. @ret: its range.
 * @return 0; 1: none does; <0
 */
static int covering_item(struct edit_tree *t, uint64_t logical, struct range *ret, struct btrkit_error *err)
{
	const int r = csums_before(&t->c, logical, ret, err);

	return r ? r : range_end(ret) <= logical;
}

int csums_exist(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct range there;
	struct cursor c;
	int ret;

	ret = overlay_committed_root(txn->overlay, OID_CSUM_TREE, &root, &own);
	if (ret)
		return ret == -ENOENT ? 0 : err_pass(err, &own, ret);
	cursor_init(&c, txn->fs, &root);
	ret = csums_before(&c, range_end(r), &there, err);
	cursor_release(&c);
	return ret ? (ret < 0 ? ret : 0) : range_end(&there) > r->start;
}

/* Size of the checksums for @data bytes. */
static uint32_t csum_bytes(const struct edit_tree *t, uint64_t data)
{
	return (uint32_t)(data / t->c.fs->geometry.sectorsize * t->c.fs->geometry.csum->size);
}

/*
 * Splits the current item, which covers @there: it is truncated at @from, and its part from @to on becomes an item of
 * its own.
 */
static int split_item(struct edit_tree *t, const struct range *there, uint64_t from, uint64_t to,
		      struct btrkit_error *err)
{
	const struct btrkit_key key = csum_key(there->start), rest_key = csum_key(to);
	const uint32_t kept = from > there->start ? csum_bytes(t, from - there->start) : 0;
	uint32_t rest = range_end(there) > to ? csum_bytes(t, range_end(there) - to) : 0;
	uint8_t *bytes = NULL;
	int ret = 0;

	if (rest) {
		bytes = malloc(rest);
		if (!bytes)
			return err_nomem(err);
		memcpy(bytes, t->c.item.data + csum_bytes(t, to - there->start), rest);
	}
	ret = kept ? edit_replace(t, &key, NULL, kept, err) : edit_delete(t, &key, err);
	if (!ret && rest)
		ret = edit_insert(t, &rest_key, bytes, rest, err);
	free(bytes);
	return ret;
}

int csums_trim(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err)
{
	const uint64_t end = range_end(r);
	const struct btrkit_key first = csum_key(r->start), last = csum_key(end - 1);
	struct edit_tree *t;
	struct range there;
	int ret;

	ret = overlay_try_tree(txn->overlay, OID_CSUM_TREE, &t, err);
	if (ret)
		return ret < 0 ? ret : 0;
	/* The item that begins before the range, if any, and the one that ends after it, which may be the same. */
	ret = r->start ? covering_item(t, r->start, &there, err) : 1;
	if (!ret)
		ret = split_item(t, &there, r->start, end, err);
	if (ret >= 0)
		ret = covering_item(t, end, &there, err);
	if (!ret)
		ret = split_item(t, &there, there.start, end, err);
	if (ret < 0)
		return ret;
	return edit_delete_range(t, &first, &last, NULL, err);
}
