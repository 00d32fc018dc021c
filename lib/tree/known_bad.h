/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_KNOWN_BAD_H
#define BTRKIT_TREE_KNOWN_BAD_H

/*
 * Each item of a leaf is validated before the leaf is written, since nothing may be written that is invalid. A leaf
 * that was damaged before can therefore not be changed, not even to repair what is beside the damage. A repair names
 * the items that it knows to be bad and leaves as they are: each may stand, but only with exactly the bytes that it
 * had.
 *
 * For example, if the mode of inode 257 is invalid and the link count of inode 258 is wrong, known_bad_add() for the
 * item of inode 257 lets the leaf with both be written when the other has been repaired.
 */

#include "lib/format/item.h"

struct edit_tree;
struct overlay;

/* An item that may stand. */
struct known_bad {
	struct known_bad *next;
	uint64_t tree;
	struct btrkit_key key;
	uint32_t size;
	uint8_t bytes[];
};

/*
 * Lets the item with a key stand in a tree, as it is now, up to the next commit. Requires the lock of the trees.
 * @return 0; -ENOENT: there is no such item; -EINVAL: the item is valid; <0
 */
int known_bad_add(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether an item of a tree is one of those, and has not changed. */
bool known_bad_stands(const struct overlay *o, uint64_t tree, const struct item *item);

void known_bad_free(struct overlay *o);

#endif
