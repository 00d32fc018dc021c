/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_BULK_H
#define BTRKIT_TREE_BULK_H

/*
 * Builds a tree bottom-up from its items in key order. Leaves are filled completely, each block is written once, and
 * the memory needed is one block per level, however many items there are.
 *
 * The address of each block is requested by its level and its index in that level. To learn the number of blocks in
 * advance, pass the same items through a builder that only counts.
 */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct bulk_config {
	const struct node_rules *rules;
	const struct item_ctx *items;
	const uint8_t *chunk_tree_uuid;
	uint64_t owner;
	uint64_t generation;
	/* Determines the address of block @index of @level. */
	int (*place)(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err);
	/* Gets a finished block, verified and with its checksum. NULL: the builder only counts. */
	int (*write)(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err);
	/* Gets the first key of each block as soon as it is known, from counting builders, too. May be NULL. */
	int (*first_key)(void *ctx, unsigned level, uint64_t index, const struct btrkit_key *key,
			 struct btrkit_error *err);
	void *ctx;
};

struct bulk;

/* @config must live as long as the builder. @return 0 or -ENOMEM */
int bulk_create(const struct bulk_config *config, struct bulk **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct bulk *bulk_destroy(struct bulk *b);

/*
 * Adds an item, whose key must be greater than all before. A builder that only counts ignores key and @data.
 * @return 0; -EINVAL: keys are out of order, or the item does not fit into a leaf; -EUCLEAN: its validator rejects the
 * item; or an error of place() or write()
 */
int bulk_add(struct bulk *b, const struct btrkit_key *key, const void *data, uint32_t size,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the builder only counts, so that the contents of items are not needed. */
bool bulk_only_counts(const struct bulk *b);

/* Writes the rest. Without items, the tree is one empty leaf. @root: address, level, owner and generation */
int bulk_finish(struct bulk *b, struct tree_root *root, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Number of blocks of a level, after bulk_finish(). */
uint64_t bulk_blocks(const struct bulk *b, unsigned level);

#endif
