/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_CURSOR_H
#define BTRKIT_TREE_CURSOR_H

/*
 * A place in a tree. The cursor pins the blocks from the root to its leaf and items are read there in place: an item
 * is valid until the cursor moves. It always stands on an item, or is at an end; there is no position behind the last
 * item of a leaf. After a failure it stands nowhere: seek again.
 */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct cursor {
	struct btrkit_fs *fs;
	struct tree_root root;
	bool scan;	/* whole ranges will be read: request children ahead */
	bool once;	/* leaves that it goes through to their right end will hardly be wanted again */
	bool forward;	/* seeks go on to the right more often than not, in a tree that nobody changes meanwhile */
	struct btrkit_key until;	/* the last key that a scan will want; 0 0 0: to the end of the tree */
	struct node *nodes[LEVELS_MAX]; /* pinned; [0] is the leaf */
	uint32_t slots[LEVELS_MAX];
	struct item item; /* the current one */
	uint64_t leaves;  /* how many it has entered */
	uint32_t run;	  /* of them the last ones, each the right neighbour of the one before */
	struct btrkit_key before; /* with a run: the last key of that one */
	uint32_t ahead;	  /* children of nodes[1] before this slot were requested by read_on() */
};

/* A cursor of a tree; nothing is read yet. Free with cursor_release(). */
void cursor_init(struct cursor *c, struct btrkit_fs *fs, const struct tree_root *root);
void cursor_release(struct cursor *c);

/*
 * To the first item whose key is not below @key. Cheap when it lies in the leaf where the cursor stands.
 * @return 0 c->item is it; 1 there is none; <0
 */
int cursor_seek(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To the last item whose key is not above @key. @return 0; 1 there is none; <0 */
int cursor_seek_back(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To the item with that key. @return 0; 1 there is none; <0 */
int cursor_find(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Pins the blocks from the root down to @level on the way to @key, and there is no current item then: what callers
 * use that look for a block and not for an item.
 */
int cursor_descend(struct cursor *c, const struct btrkit_key *key, unsigned level,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After cursor_descend(): to the next block of @level. @return 0; 1 there is none; <0 */
int cursor_next_block(struct cursor *c, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To the neighbour. @return 0; 1 there is none (the cursor is then at an end: seek again); <0, -EINVAL after that */
int cursor_next(struct cursor *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Is told of a block that cannot be read. @return 0 to go on around it; <0 */
typedef int (*cursor_lost_fn)(void *ctx, int ret, const struct btrkit_error *what);
/*
 * To the first item from *@at on, or if that is not the @first to the neighbour, in either case around what cannot be
 * read. *@at becomes its key.
 * @return 0; 1: there is none; -ENOMEM; or what @lost returned
 */
int cursor_next_around(struct cursor *c, struct btrkit_key *at, bool first, cursor_lost_fn lost, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline const struct node *cursor_leaf(const struct cursor *c)
{
	return c->nodes[0];
}

/* Adds tree, block, slot and key to a failure that decoding the current item met. Returns its errno. */
int cursor_blame(const struct cursor *c, int ret, struct btrkit_error *err);

#endif
