/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_REFS_HEAD_H
#define BTRKIT_TXN_REFS_HEAD_H

/* What refs.c collects and refs_apply.c applies. */

#include "lib/base/hash.h"
#include "lib/space/range.h"
#include "lib/tree/edit.h"

struct btrkit_txn;

/* How often a reference was added, less how often it was dropped. */
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
	int64_t total; /* of all changes */
	uint8_t level;
	bool data;
	bool fresh;	   /* allocated, and not in the extent tree */
	bool changed;	   /* else only allocated */
	bool full_backref; /* is to be set */
	bool last;	   /* nothing may refer to it when the changes are applied */
};

struct refs {
	struct btrkit_txn *txn;
	struct ref_head *heads; /* by address */
	size_t pending;		/* of those, changed ones */
	size_t pending_data;	/* and of these, data */
	size_t queued;		/* changes of all of them */
	bool no_files;		/* simple quotas: references of files must not change */
	bool changed_files;
};

/* Sorts the changes and makes one of those of the same reference; what cancelled out is gone. */
void ref_head_net(struct refs *r, struct ref_head *h);
struct ref_head *ref_head_free(struct ref_head *h);

/* The item of an extent as it is being changed. */
struct extent_bytes {
	uint64_t bytenr;
	uint64_t refs;
	uint8_t *bytes;
	uint32_t size;
	uint32_t refs_at; /* where its inline references begin */
	bool keyed;	  /* some are known not to be inline */
};

/* An inline reference, or where it would go. */
struct inline_place {
	uint32_t at;
	uint32_t len;	/* 0: it is not there */
	uint32_t count; /* 0: it is not there */
};
int inline_ref_find(const struct extent_bytes *x, const struct extent_ref *ref, struct inline_place *ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Puts it in with another count, or takes it out when that is 0. There must be room in @x. */
void inline_ref_set(struct extent_bytes *x, const struct inline_place *place, const struct extent_ref *ref,
		    uint32_t count);

/* The items of references that are not inline. */
int keyed_ref_change(struct edit_tree *t, uint64_t bytenr, const struct ref_change *change,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the extent has any, whose own item has @key. */
int keyed_refs_exist(struct edit_tree *t, const struct btrkit_key *key, bool *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The count of a reference after the change: of a tree block's 0 or 1. @return 0 or -EUCLEAN */
int ref_count_changed(const struct ref_change *change, uint32_t before, uint32_t *after,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
bool ref_equal(const struct extent_ref *a, const struct extent_ref *b);

/* How a batch is applied: refs_apply.c. */
struct refs_batch;
int refs_batch_create(struct refs *r, struct refs_batch **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct refs_batch *refs_batch_destroy(struct refs_batch *b);
/* Extents must come in the order of addresses. */
int refs_batch_apply(struct refs_batch *b, struct ref_head *h, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Applies what was put off. */
int refs_batch_end(struct refs_batch *b, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The item of a tree block or data extent in the extent tree, which becomes current. @return 0; 1: none; <0 */
int refs_find_item(struct edit_tree *t, const struct range *extent, bool data, unsigned level, struct extent_item *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
