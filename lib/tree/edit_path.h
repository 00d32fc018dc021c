/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_EDIT_PATH_H
#define BTRKIT_TREE_EDIT_PATH_H

/*
 * Shared by the files that edit trees. The path is that of the tree's cursor: t->c.nodes and t->c.slots from the level
 * of the root down to 0. edit_cow_path() makes it private. The other functions require a private path, and leave a
 * valid one.
 */

#include "lib/tree/edit.h"

/* Private blocks, for overlay.c and edit_cow.c. */

/* In overlay.c: */
/* Creates an empty private block of tree @t at a new address. */
int overlay_new_node(struct edit_tree *t, unsigned level, const struct btrkit_key *first, struct node **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Creates a private copy of @from at a new address. */
int overlay_copy_node(struct edit_tree *t, const struct node *from, struct node **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Opens a tree for editing. */
int overlay_open(struct overlay *o, const struct tree_root *root, struct edit_tree **ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_cow.c: */
/* Adds or drops the references that a block makes: full backreferences, or references in the name of its owner. */
int overlay_change_refs(struct overlay *o, const struct node *n, bool full, int add,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In overlay_away.c: */
/* Adds or removes a leaf that overlay_take_full() may return. */
void overlay_add_young(struct overlay *o, struct node *n);
void overlay_grown_up(struct overlay *o, struct node *n);

/* In overlay.c: */
/* Forgets a private block that has no references any more. */
void overlay_forget_node(struct overlay *o, struct node *n);
/* Whether a private block of the tree may be shared with another one. Every tree has its own root block. */
static inline bool edit_may_share_private(const struct edit_tree *t, const struct node *n)
{
	return n->era < t->era && n->bytenr != t->c.root.bytenr;
}
/*
 * Drops the tree's reference to one of its blocks; a private block without other references is then dead. @last: the
 * number of references was not looked up; the commit fails if this was not the only one
 */
int overlay_free_node(struct edit_tree *t, uint64_t bytenr, unsigned level, bool last,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit.c: */
/* Passes on the result of an edit. If it may have left the tree half changed, note that the transaction has failed. */
int edit_ended(struct edit_tree *t, int ret, const struct btrkit_error *err);

/* In overlay.c: */
/* Makes @n the root of the tree. */
void edit_set_root(struct edit_tree *t, const struct node *n);

/* In edit_cow.c: */
/* Copies a block, and change references accordingly. Returns @n itself if it is this tree's own. */
int edit_cow(struct edit_tree *t, struct node *n, struct node **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Drops a block whose contents have moved to another block of the tree. No block is allocated for that, and @n is not
 * changed, because others may still use it.
 */
int edit_let_go(struct edit_tree *t, const struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Makes every block of the path private, from the root down to a level. */
int edit_cow_path(struct edit_tree *t, unsigned down_to, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit.c: */
/* Gets the path to the leaf where @key is or belongs. Cheap if the path leads there already. */
int edit_find_leaf(struct edit_tree *t, const struct btrkit_key *key, bool *exact,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gets the path to the item with @key, and makes it private, in order to change the item. @return 0; -ENOENT; <0 */
int edit_find_item(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The first key after the leaf of the path. @return whether there is one */
bool edit_separator(const struct edit_tree *t, struct btrkit_key *key);

/* Changes of the path's leaf, and their consequences above it. */

/* Like leaf_items(), node_ptrs() and the data of a leaf, for writing. */
static inline struct disk_item *items_of(struct node *n)
{
	return (struct disk_item *)(n->data + sizeof(struct disk_header));
}

static inline struct disk_key_ptr *ptrs_of(struct node *n)
{
	return (struct disk_key_ptr *)(n->data + sizeof(struct disk_header));
}

static inline uint8_t *data_of(struct node *n)
{
	return n->data + sizeof(struct disk_header);
}

/* Size of an item, including its header. */
static inline uint32_t leaf_item_bytes(const struct node *leaf, uint32_t slot)
{
	return (uint32_t)sizeof(struct disk_item) + le32_get(leaf_items(leaf)[slot].size);
}

static inline uint32_t leaf_end(const struct node *leaf)
{
	return leaf->nritems ? le32_get(leaf_items(leaf)[leaf->nritems - 1].offset) : leaf_room(leaf->size);
}

/* Space that is neither used by item headers nor by data. */
static inline uint32_t leaf_free(const struct node *leaf)
{
	return leaf_end(leaf) - leaf->nritems * (uint32_t)sizeof(struct disk_item);
}

static inline uint32_t leaf_used(const struct node *leaf)
{
	return leaf_room(leaf->size) - leaf_free(leaf);
}

static inline uint32_t node_capacity(const struct node *n)
{
	return leaf_room(n->size) / (uint32_t)sizeof(struct disk_key_ptr);
}

/* In edit_shape.c: */
void node_set_nritems(struct node *n, uint32_t nritems);
/* Opens a gap of @n items with @bytes of data at the slot. The caller fills in the item headers. */
void leaf_open(struct node *leaf, uint32_t slot, uint32_t n, uint32_t bytes);
/* Removes items. */
void leaf_close(struct node *leaf, uint32_t slot, uint32_t n);
/* Copies the items of @from from @slot on to the end of @to, or to its beginning, depending on the keys. */
void leaf_copy_tail(const struct node *from, uint32_t slot, struct node *to);
/* Like leaf_copy_tail(), and remove them from @from. */
void leaf_move_tail(struct node *from, uint32_t slot, struct node *to);
/* Changes the size of an item's data, keeping its beginning. There must be room. */
void leaf_resize(struct node *leaf, uint32_t slot, uint32_t size);

/* After a change of the first key of the path's block at @level: update the keys in the levels above. */
void edit_fix_first_key(struct edit_tree *t, unsigned level);
/*
 * Makes room for an item of @bytes, including its header, at the path's slot, by moving items to a private neighbour.
 * @return whether there is room now; if not, nothing was changed
 */
bool edit_push(struct edit_tree *t, uint32_t bytes);
/*
 * Moves the items of the path's leaf from @slot on to a new leaf on its right. The path stays at the left one, or goes
 * to the first moved item.
 */
int edit_split_leaf(struct edit_tree *t, uint32_t slot, bool go_right, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Creates an empty leaf on the right of the path's, for @first. The path goes to it. */
int edit_append_leaf(struct edit_tree *t, const struct btrkit_key *first, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_join.c: */
/* After deletions: remove an empty leaf, or merge a sparse one with a neighbour. The path is lost. */
int edit_shrink(struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes the leaf of the path, which need not be private, whatever its contents. The path is lost. */
int edit_drop_leaf(struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
