/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_BATCH_H
#define BTRKIT_BACKREF_SHARE_BATCH_H

/* Batches of data extents, whose references are read in the order of their addresses. */

#include "lib/backref/share_state.h"

/* If the batch includes the leaf at @bytenr, continues with it. */
bool share_batch_enter(struct share_batch *b, uint64_t bytenr);
/* Replaces the batch by one that begins at the current item of @c, whose leaf is not shared. */
int share_batch_load(struct share_ctx *s, const struct cursor *c, bool one_inode,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Finds an extent of the current leaf. @return NULL: there is none */
struct share_extent *share_batch_find(struct share_batch *b, uint64_t bytenr, uint64_t inode);
void share_batch_release(struct share_batch *b);
/* Reads the references of the extent @e. */
int share_load_refs(struct share_ctx *s, struct share_extent *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
