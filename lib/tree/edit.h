/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_EDIT_H
#define BTRKIT_TREE_EDIT_H

/*
 * Edits of a tree within a transaction. t->c is the tree's own cursor: cursor_seek(&t->c, ...) etc. read the current
 * tree, and edits at or near its position are cheap. After an edit it has no current item. Other cursors in the tree
 * must not be used any more, except for cursor_release().
 *
 * Which blocks are copied, and which references change by that, is the same as in Linux: see edit_cow.c. Items are only
 * validated when their block is sealed.
 *
 * If a function fails with an error other than -EEXIST, -ENOENT or -EINVAL, the tree may be half changed: abort the
 * transaction.
 */

#include "lib/tree/overlay.h"

/* Inserts an item. @return 0; -EEXIST; -EINVAL: does not fit into a leaf; <0 */
int edit_insert(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Inserts many items in key order, as many at a time as fit into their place, so that a leaf is split only once.
 * @return as edit_insert(): the items before an existing one have been inserted; also -EINVAL: keys are out of order
 */
int edit_insert_many(struct edit_tree *t, const struct item *items, size_t n,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_delete.c: */
/* Deletes an item. @return 0; -ENOENT; <0 */
int edit_delete(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Gets an item that is being deleted, when the tree has its own references to what it refers to. @return 0; <0 */
typedef int (*edit_gone_fn)(void *ctx, const struct item *item, struct btrkit_error *err);
/*
 * Deletes the items with those keys, which must be in order, as far as they are consecutive items in the leaf of the
 * first. A leaf with no others is not copied. @taken: number of items deleted
 * @return 0; -ENOENT: the first does not exist; <0
 */
int edit_delete_many(struct edit_tree *t, const struct btrkit_key *keys, size_t n, edit_gone_fn gone, void *ctx,
		     size_t *taken, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Deletes all items from @first to @last, inclusive. @count: their number; may be NULL. @return 0; <0 */
int edit_delete_range(struct edit_tree *t, const struct btrkit_key *first, const struct btrkit_key *last,
		      uint64_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit.c: */
/*
 * Replaces the contents of an item. @data must not be in the tree itself; it may be NULL in order to truncate the item.
 * @return 0; -ENOENT; -EINVAL; <0
 */
int edit_replace(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes the leaf of an item private. @data, @size: its contents, which may be changed until the next edit of the tree
 * @return 0; -ENOENT; <0
 */
int edit_bytes(struct edit_tree *t, const struct btrkit_key *key, uint8_t **data, uint32_t *size,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Changes the key of an item, which must remain in order. @return 0; -ENOENT; -EINVAL; <0 */
int edit_rekey(struct edit_tree *t, const struct btrkit_key *from, const struct btrkit_key *to,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Report that an item of tree @tree does not exist, or exists already. @return -ENOENT; -EEXIST */
int edit_no_such_item(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err);
int edit_there_already(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err);

/* In edit_cow.c: */
/* Whether a block of the tree is private and not shared, so that it can be changed in place. */
bool edit_is_own(const struct edit_tree *t, const struct node *n);

#endif
