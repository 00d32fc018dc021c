/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_REFS_H
#define BTRKIT_TXN_REFS_H

/*
 * Delayed references: changes of references are netted per extent and reference in memory, and applied to the extent
 * tree in batches in the order of addresses.
 */

#include "lib/space/range.h"
#include "lib/tree/overlay.h"

struct btrkit_txn;
struct refs;

int refs_create(struct btrkit_txn *txn, struct refs **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct refs *refs_destroy(struct refs *r);

/* A new extent, allocated and not in the extent tree: its first references follow by refs_change(). */
int refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
		    const struct btrkit_key *first, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @return 0; -EOPNOTSUPP: with simple quotas no file may change; -EUCLEAN: the extent is known as another; -ENOMEM */
int refs_change(struct refs *r, const struct extent_change *change, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int refs_set_full_backref(struct refs *r, uint64_t bytenr, unsigned level,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What the extent tree says together with what is pending. @return 0; -EUCLEAN: there is no such extent; <0 */
int refs_lookup(struct refs *r, uint64_t bytenr, unsigned level, uint64_t *count, uint64_t *flags,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether a data extent has no other reference than this one, however often, as far as can be said without a search.
 * @last_snapshot: what is older may be referred to by trees that share blocks. @fresh: it came in this transaction
 * @return 0 it has none; 1 it may have; -EUCLEAN: the extent is known as another; <0
 */
int refs_is_only(struct refs *r, const struct range *extent, const struct extent_ref *ref, uint64_t last_snapshot,
		 bool *fresh, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Extents with changes that are not in the extent tree yet. */
size_t refs_pending(const struct refs *r);
/* Of those, data extents. */
size_t refs_pending_data(const struct refs *r);
/* How many changes of references these are, before those that cancel out are found. */
size_t refs_queued(const struct refs *r);
/* Whether a reference of a file or of a tree of files has changed. */
bool refs_changed_files(const struct refs *r);
/* Applies all that is pending now, as one batch; more may be pending afterwards. @return 0; -EUCLEAN; <0 */
int refs_run(struct refs *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gives back what was allocated and never referenced. */
int refs_release_unused(struct refs *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
