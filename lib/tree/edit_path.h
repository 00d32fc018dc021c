/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_EDIT_PATH_H
#define BTRKIT_TREE_EDIT_PATH_H

/*
 * What the files of editing share. The path is that of the tree's cursor: t->c.nodes and t->c.slots from the root's
 * level down to 0. edit_cow_path() makes it private; the other functions want it so, and leave a path that is right.
 */

#include "lib/tree/edit.h"

/* Private blocks, for overlay.c and edit_cow.c. */

/* An empty private block of tree @t at a new place. */
int overlay_new_node(struct edit_tree *t, unsigned level, const struct btrkit_key *first, struct node **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A private copy of @from at a new place. */
int overlay_copy_node(struct edit_tree *t, const struct node *from, struct node **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A tree is open for editing from here on. */
int overlay_open(struct overlay *o, const struct tree_root *root, struct edit_tree **ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds or drops the references that a block makes: full ones, or in the name of its owner. */
int overlay_change_refs(struct overlay *o, const struct node *n, bool full, int add,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A leaf came that overlay_take_full() may take, and is not to be taken any more. */
void overlay_add_young(struct overlay *o, struct node *n);
void overlay_grown_up(struct overlay *o, struct node *n);
/* A private block has no references any more. */
void overlay_forget_node(struct overlay *o, struct node *n);
/* Whether a private block of the tree may be another one's too. Every tree has its own root block. */
static inline bool edit_may_share_private(const struct edit_tree *t, const struct node *n)
{
	return n->era < t->era && n->bytenr != t->c.root.bytenr;
}
/*
 * Drops the tree's reference to a block of it; a private one is dead then, if there is no other.
 * @last: nobody asked how many there are; the commit fails if this was not the only one
 */
int overlay_free_node(struct edit_tree *t, uint64_t bytenr, unsigned level, bool last,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Passes on what an edit returned; a failure that may have left the tree half changed is noted. */
int edit_ended(struct edit_tree *t, int ret);
/* @n is the tree's root from now on. */
void edit_set_root(struct edit_tree *t, const struct node *n);

/* A copy of the block, with the changes of references that this asks for; @n itself if it is this tree's own. */
int edit_cow(struct edit_tree *t, struct node *n, struct node **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * What is in a block has gone into another one of the tree, which has no reference to it any more. No block is taken
 * for that, and @n is not changed: others may have it still.
 */
int edit_let_go(struct edit_tree *t, const struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Makes every block of the path private, from the root's down to that of a level. */
int edit_cow_path(struct edit_tree *t, unsigned down_to, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The path to the leaf where @key is or belongs; cheap when the path leads there already. */
int edit_find_leaf(struct edit_tree *t, const struct btrkit_key *key, bool *exact,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The path to the item with @key, to change it: all of it is private. @return 0; -ENOENT; <0 */
int edit_find_item(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The first key behind the leaf of the path, if there is one. */
bool edit_separator(const struct edit_tree *t, struct btrkit_key *key);

/* Changes of the path's leaf, and what follows from it above. */

/* The same as leaf_items() and node_ptrs(), and the data of a leaf, to write there. */
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

/* Bytes that an item takes, its header included. */
static inline uint32_t leaf_item_bytes(const struct node *leaf, uint32_t slot)
{
	return (uint32_t)sizeof(struct disk_item) + le32_get(leaf_items(leaf)[slot].size);
}

static inline uint32_t leaf_end(const struct node *leaf)
{
	return leaf->nritems ? le32_get(leaf_items(leaf)[leaf->nritems - 1].offset) : leaf_room(leaf->size);
}

/* Bytes that are neither item headers nor data. */
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

void node_set_nritems(struct node *n, uint32_t nritems);
/* Opens a gap of @n items with @bytes of data at the slot; item headers are the caller's to fill in. */
void leaf_open(struct node *leaf, uint32_t slot, uint32_t n, uint32_t bytes);
/* Takes out items. */
void leaf_close(struct node *leaf, uint32_t slot, uint32_t n);
/* Appends the items @slot and up of @from to @to, or puts them before its first. */
void leaf_copy_tail(const struct node *from, uint32_t slot, struct node *to);
/* The same, and takes them out of @from. */
void leaf_move_tail(struct node *from, uint32_t slot, struct node *to);
/* Another size for an item's data, which keeps its beginning. There must be room. */
void leaf_resize(struct node *leaf, uint32_t slot, uint32_t size);

/* After the first key of the path's block at @level has changed: the keys that the levels above have of it. */
void edit_fix_first_key(struct edit_tree *t, unsigned level);
/*
 * Makes room for an item of so many bytes, its header included, at the path's slot by giving items to a neighbour that
 * is private. @return whether there is room now; if not, nothing was changed
 */
bool edit_push(struct edit_tree *t, uint32_t bytes);
/*
 * The items of the path's leaf from @slot up go to a new leaf on its right; the path stays on the left one, or goes to
 * the first of them.
 */
int edit_split_leaf(struct edit_tree *t, uint32_t slot, bool go_right, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A new, empty leaf on the right of the path's, where @first will be put: the path leads to it. */
int edit_append_leaf(struct edit_tree *t, const struct btrkit_key *first, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After items were taken out: an empty leaf goes, a sparse one is joined with a neighbour. The path is lost. */
int edit_shrink(struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops the leaf of the path, which need not be private, whatever is in it. The path is lost. */
int edit_drop_leaf(struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
