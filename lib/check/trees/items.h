/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_ITEMS_H
#define BTRKIT_CHECK_ITEMS_H

#include "lib/check/state.h"

/*
 * Passes all items of a tree to @take. Skips what cannot be read, and sets *lost then.
 * @return 0, or what check_fail() returned
 */
int check_each_item(struct check *c, const struct tree_root *root, bool *lost,
		    void (*take)(void *ctx, const struct item *item), void *ctx);
/* As cursor_find(), cursor_seek() and cursor_next(), but running out of memory ends the check. For any thread. */
int check_find(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_seek(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_next(struct check *c, struct cursor *cur);
/* Reads a good copy of a block whose damage is reported elsewhere. @return whether it is in @buf */
bool check_reread(struct check *c, const struct node_ref *ref, uint8_t *buf);

#endif
