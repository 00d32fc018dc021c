/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_CURSOR_H
#define BTRKIT_TREE_CURSOR_H

/*
 * A position in a tree. A cursor pins the blocks from the root to its leaf, and items are read in place: an item is
 * valid until the cursor moves. A cursor is always at an item or at an end; there is no position after the last item of
 * a leaf. After a failure it has no position, and must seek again.
 */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct cursor {
	struct btrkit_fs *fs;
	struct tree_root root;
	bool scan;	/* long ranges will be read: prefetch children */
	bool once;	/* leaves that were read to their right end are unlikely to be needed again */
	bool forward;	/* seeks mostly move to the right, and nobody changes the tree meanwhile */
	struct btrkit_key until;	/* last key needed by a scan; 0 0 0: no limit */
	struct node *nodes[LEVELS_MAX]; /* pinned; [0] is the leaf */
	uint32_t slots[LEVELS_MAX];
	struct item item; /* current item */
	uint64_t leaves;  /* number of leaves entered */
	uint32_t run;	  /* number of the last leaves of which each was the right neighbour of the one before */
	struct btrkit_key before; /* if @run: last key of the leaf before */
	uint32_t ahead;	  /* children of nodes[1] before this slot have been prefetched by read_on() */
};

/* Initializes a cursor; nothing is read yet. To be freed with cursor_release(). */
void cursor_init(struct cursor *c, struct btrkit_fs *fs, const struct tree_root *root);
void cursor_release(struct cursor *c);

/*
 * Moves to the first item whose key is not less than @key. Cheap within the current leaf.
 * @return 0: it is c->item; 1: there is none; <0
 */
int cursor_seek(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Moves to the last item whose key is not greater than @key. @return 0; 1: there is none; <0 */
int cursor_seek_back(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Moves to the item with that key. @return 0; 1: there is none; <0 */
int cursor_find(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Pins the blocks from the root down to @level on the path to @key, for callers that need a block, not an item.
 * Afterwards there is no current item.
 */
int cursor_descend(struct cursor *c, const struct btrkit_key *key, unsigned level,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After cursor_descend(): go to the next block of @level. @return 0; 1: there is none; <0 */
int cursor_next_block(struct cursor *c, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Moves to the next item. @return 0; 1: there is none (the cursor is at an end: seek again); <0; -EINVAL: no position
 */
int cursor_next(struct cursor *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Gets the error of a block that cannot be read. @return 0: skip it and continue; <0 */
typedef int (*cursor_lost_fn)(void *ctx, int ret, const struct btrkit_error *what);

/* In cursor_past.c: */
/*
 * Moves to the first item from *@at on, or if not @first to the next item, skipping what cannot be read. *@at is set to
 * its key. @lost may be NULL: nobody is told of what is skipped.
 * @return 0; 1: there is none; -ENOMEM; or what @lost returned
 */
int cursor_next_around(struct cursor *c, struct btrkit_key *at, bool first, cursor_lost_fn lost, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * For @lost, and after any other failure: the keys that are below the block that could not be entered, from @first to
 * before @end, or the greatest possible key. @return 0; 1: all blocks were entered
 */
int cursor_lost_keys(const struct cursor *c, struct btrkit_key *first, struct btrkit_key *end) BTRKIT_MUST_CHECK;

/* After cursor_lost_keys() returned 0: the block that could not be entered. @return 0; 1: it is the root */
int cursor_lost_block(const struct cursor *c, uint64_t *bytenr, unsigned *level) BTRKIT_MUST_CHECK;

static inline const struct node *cursor_leaf(const struct cursor *c)
{
	return c->nodes[0];
}

/* In cursor.c: */
/* Adds tree, block, slot and key of the current item to an error of decoding it. @return @ret */
int cursor_blame(const struct cursor *c, int ret, struct btrkit_error *err);

#endif
