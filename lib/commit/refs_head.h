/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_REFS_HEAD_H
#define BTRKIT_COMMIT_REFS_HEAD_H

/*
 * Shared by refs.c, which collects changes, refs_apply.c, which applies them in batches, and refs_item.c, which finds
 * and changes references in the items of the extent tree.
 */

#include "lib/base/hash.h"
#include "lib/space/range.h"
#include "lib/tree/edit.h"

struct btrkit_txn;

/* How many times a reference was added, minus how many times it was dropped. */
struct ref_change {
	struct extent_ref ref;
	int64_t net;
};

/* An extent with changes that are not in the extent tree yet. */
struct ref_head {
	struct range extent;
	UT_hash_handle hh;
	struct btrkit_key first; /* of a new tree block */
	struct ref_change *changes;
	uint32_t n, size;
	int64_t total; /* sum of all changes */
	uint8_t level;
	bool data;
	bool fresh;	   /* allocated, and not in the extent tree yet */
	bool changed;	   /* false: only allocated */
	bool full_backref; /* the flag is to be set */
	bool last;	   /* no references may remain when the changes are applied */
};

struct refs {
	struct btrkit_txn *txn;
	struct ref_head *heads; /* by address */
	size_t pending;		/* of these, changed ones */
	size_t pending_data;	/* of those, data extents */
	size_t unused_data;	/* data extents that were allocated, and have no reference yet */
	size_t queued;		/* number of changes in all of them */
	bool no_files;		/* simple quotas: references of files must not change */
	bool changed_files;
};

/* In refs.c: */
/* Sorts the changes, merges those of the same reference, and removes those that cancelled out. */
void ref_head_net(struct refs *r, struct ref_head *h);
struct ref_head *ref_head_free(struct ref_head *h);

/* An extent item that is being changed. */
struct extent_bytes {
	uint64_t bytenr;
	uint64_t refs;
	uint8_t *bytes;
	uint32_t size;
	uint32_t refs_at; /* offset of the inline references */
	bool keyed;	  /* some references are known to be keyed */
};

/* An inline reference, or the place to insert it. */
struct inline_place {
	uint32_t at;
	uint32_t len;	/* 0: not found */
	uint32_t count; /* 0: not found */
};

/* In refs_item.c: */
int inline_ref_find(const struct extent_bytes *x, const struct extent_ref *ref, struct inline_place *ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Inserts it or change its count, or removes it if the count is 0. @x must have room for it. */
void inline_ref_set(struct extent_bytes *x, const struct inline_place *place, const struct extent_ref *ref,
		    uint32_t count);

/* Changes a keyed reference, which is an item of its own. */
int keyed_ref_change(struct edit_tree *t, uint64_t bytenr, const struct ref_change *change,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the extent whose own item has @key has any keyed references. */
int keyed_refs_exist(struct edit_tree *t, const struct btrkit_key *key, bool *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Applies a change to a count, which for tree blocks must be 0 or 1. @return 0 or -EUCLEAN */
int ref_count_changed(const struct ref_change *change, uint32_t before, uint32_t *after,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In refs.c: */
bool ref_equal(const struct extent_ref *a, const struct extent_ref *b);

/* Applying a batch: refs_apply.c. */
struct refs_batch;

/* In refs_apply.c: */
int refs_batch_create(struct refs *r, struct refs_batch **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct refs_batch *refs_batch_destroy(struct refs_batch *b);
/* Extents must come in address order. */
int refs_batch_apply(struct refs_batch *b, struct ref_head *h, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Applies what was deferred. */
int refs_batch_end(struct refs_batch *b, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In refs.c: */
/* Finds the extent item of a tree block or data extent; it becomes the current item. @return 0; 1: none; <0 */
int refs_find_item(struct edit_tree *t, const struct range *extent, bool data, unsigned level, struct extent_item *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
