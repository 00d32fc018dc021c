/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_DAMAGE_H
#define BTRKIT_DUMP_DUMP_TREE_DAMAGE_H

/* Reports in a dump what cannot be read or is invalid; the dump continues. */

#include <errno.h>

#include "lib/dump/dump.h"
#include "lib/tree/node.h"

/* Stores the failure, if it is the first. */
void dump_blame(struct dump *d, int ret, const struct btrkit_error *what);

/*
 * Tells the caller what was lost since the last call. Not while several threads could do so, and in the order of the
 * output. @return 0, or what the caller returned
 */
int dump_tell_losses(struct dump *d, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_losses_free(struct dump_losses *l);

/* Prints that a block cannot be read because of @what, with the location and the error of each copy. */
void dump_damaged_block(struct dump *d, const struct node_ref *ref, int ret, const struct btrkit_error *what);
/* Reports an invalid item, in JSON on a line after the item. */
void dump_damaged_item(struct dump *d, const struct node *n, uint32_t slot, int ret, const struct btrkit_error *what);
/* Reports an invalid root item @key. @shown: the tree is printed anyway, because the item has a valid location */
void dump_damaged_root(struct dump *d, const struct btrkit_key *key, bool shown, int ret,
		       const struct btrkit_error *what);
/* Report that chunks cannot be read. Blocks in them will not be found. */
void dump_damaged_chunks(struct dump *d, int ret, const struct btrkit_error *what);
/* Report that a part of a device cannot be read. */
void dump_damaged_device(struct dump *d, int ret, const struct btrkit_error *what);
/* Report that the pointer in slot @slot of @n leads to keys that cannot be there. */
void dump_damaged_pointer(struct dump *d, const struct node *n, uint32_t slot, uint64_t tree);

/* Whether an error is damage of the filesystem, so that the dump can continue. */
static inline bool dump_is_damage(int ret)
{
	return ret && ret != -ENOMEM;
}

#endif
