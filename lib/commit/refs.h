/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_REFS_H
#define BTRKIT_COMMIT_REFS_H

/*
 * Delayed references: changes of references are collected and netted in memory, by extent and reference, and applied to
 * the extent tree in batches, in address order.
 */

#include "lib/space/range.h"
#include "lib/tree/overlay.h"

struct btrkit_txn;
struct refs;

int refs_create(struct btrkit_txn *txn, struct refs **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct refs *refs_destroy(struct refs *r);

/* Adds a newly allocated extent that is not in the extent tree. Its first references follow by refs_change(). */
int refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
		    const struct btrkit_key *first, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Adds or drops references.
 * @return 0; -EOPNOTSUPP: files must not change with simple quotas; -EUCLEAN: the extent is known as another; -ENOMEM
 */
int refs_change(struct refs *r, const struct extent_change *change, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int refs_set_full_backref(struct refs *r, uint64_t bytenr, unsigned level,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * References and flags of a tree block, from the extent tree and pending changes.
 * @return 0; -EUCLEAN: no such extent; <0
 */
int refs_lookup(struct refs *r, uint64_t bytenr, unsigned level, uint64_t *count, uint64_t *flags,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether this reference, with any count, is the only one of a data extent, as far as can be determined without a
 * search. @last_snapshot: extents of this or an earlier generation may be referred to through shared tree blocks.
 * @fresh: the extent was allocated in this transaction
 * @return 0: it is the only one; 1: there may be others; -EUCLEAN: the extent is known as another; <0
 */
int refs_is_only(struct refs *r, const struct range *extent, const struct extent_ref *ref, uint64_t last_snapshot,
		 bool *fresh, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Number of extents with changes that are not in the extent tree yet. */
size_t refs_pending(const struct refs *r);
/* Of these, data extents. */
size_t refs_pending_data(const struct refs *r);
/* Number of data extents that were allocated, and have no reference yet. A commit frees those of failed operations. */
size_t refs_unused_data(const struct refs *r);
/* Number of their changes; some may still cancel out. */
size_t refs_queued(const struct refs *r);
/* Whether a reference from a file or a file tree has changed. */
bool refs_changed_files(const struct refs *r);
/* Applies all pending changes as one batch. Afterwards, more may be pending. @return 0; -EUCLEAN; <0 */
int refs_run(struct refs *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Frees extents that were allocated but never referenced. */
int refs_release_unused(struct refs *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
