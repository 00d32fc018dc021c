/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_IMPL_H
#define BTRKIT_BACKREF_SHARE_IMPL_H

/* For the files of share.h only. */

#include "lib/backref/share.h"

/* share.c: whether the leaf of @c, which is that of the listing or ahead of it, can be reached from another tree. */
int share_leaf(struct share_ctx *s, const struct cursor *c, bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* share_batch.c: if the batch includes the leaf at @bytenr, continue with it. */
bool share_batch_enter(struct share_batch *b, uint64_t bytenr);
/* Replace the batch by one that begins at the current item of @c, whose leaf is not shared. */
int share_batch_load(struct share_ctx *s, const struct cursor *c, bool one_inode,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Find an extent of the current leaf. @return NULL: there is none */
struct share_extent *share_batch_find(struct share_batch *b, uint64_t bytenr, uint64_t inode);
void share_batch_release(struct share_batch *b);
/* Read the references of the extent @e. */
int share_load_refs(struct share_ctx *s, struct share_extent *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
