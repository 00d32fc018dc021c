/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_EDIT_H
#define BTRKIT_TREE_EDIT_H

/*
 * Edits of a tree within a transaction. t->c is the tree's own cursor: cursor_seek(&t->c, ...) and the like read the
 * tree as it is, and an edit at or near where it stands is cheap. After an edit it has no current item; other cursors
 * that stand in the tree are not to be used any more, but for cursor_release().
 *
 * Which block is copied, and which references are changed by that, is Linux's way: see edit_cow.c. Items are judged
 * when the block is sealed, so an item may be put in as it comes.
 *
 * When a function fails with anything but -EEXIST, -ENOENT or -EINVAL the tree may be half changed: abort the
 * transaction.
 */

#include "lib/tree/overlay.h"

/* @return 0; -EEXIST; -EINVAL: larger than a leaf; <0 */
int edit_insert(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Many items in the order of their keys, as many at a time as fit where they belong: a leaf is split once, and not for
 * each. @return as edit_insert(), and those before one that is there already were put in; -EINVAL too if they are out
 * of order
 */
int edit_insert_many(struct edit_tree *t, const struct item *items, size_t n,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* @return 0; -ENOENT; <0 */
int edit_delete(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Is told of an item that goes, when the tree has its own references to what that names. @return 0; <0 */
typedef int (*edit_gone_fn)(void *ctx, const struct item *item, struct btrkit_error *err);
/*
 * The items with those keys, which are in order, as far as they lie one behind the other in the leaf of the first; a
 * leaf that has no others is not copied. @taken gets how many.
 * @return 0; -ENOENT: the first is not there; <0
 */
int edit_delete_many(struct edit_tree *t, const struct btrkit_key *keys, size_t n, edit_gone_fn gone, void *ctx,
		     size_t *taken, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* All items from @first to @last, both included. @count (may be NULL) gets their number. @return 0; <0 */
int edit_delete_range(struct edit_tree *t, const struct btrkit_key *first, const struct btrkit_key *last,
		      uint64_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * New contents for an item, of any size, not from the tree itself; @data may be NULL to shorten it.
 * @return 0; -ENOENT; -EINVAL; <0
 */
int edit_replace(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes the item's leaf private and gives its bytes, to be changed in place before the next edit of the tree.
 * @return 0; -ENOENT; <0
 */
int edit_bytes(struct edit_tree *t, const struct btrkit_key *key, uint8_t **data, uint32_t *size,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Another key for an item, which must stay in its place among its neighbours. @return 0; -ENOENT; -EINVAL; <0 */
int edit_rekey(struct edit_tree *t, const struct btrkit_key *from, const struct btrkit_key *to,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What is told of an item of tree @tree that is not there, or is. @return -ENOENT; -EEXIST */
int edit_no_such_item(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err);
int edit_there_already(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err);

/* Whether a block of the tree is private and nobody else's, so that it is changed where it is. */
bool edit_is_own(const struct edit_tree *t, const struct node *n);

#endif
