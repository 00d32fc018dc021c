/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_BULK_H
#define BTRKIT_TREE_BULK_H

/*
 * Builds a tree from its items in the order of their keys, from the bottom up: leaves are packed full, every block is
 * written once, and memory is one block a level, however many items come.
 *
 * Where a block goes is asked for by its level and its number in that level. Who has to know beforehand how many
 * blocks there will be runs the same items through a builder that only counts.
 */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct bulk_config {
	const struct node_judge *judge;
	const struct item_ctx *items;
	const uint8_t *chunk_tree_uuid;
	uint64_t owner;
	uint64_t generation;
	/* Address of block number @index of @level. */
	int (*place)(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err);
	/* Takes a finished block: verified, with its checksum. NULL: a builder that only counts. */
	int (*write)(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err);
	/* Hears the first key of each block, when it is known; may be NULL. Counting builders too. */
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
 * Adds an item, whose key must be above all before. In a builder that only counts neither key nor @data is looked at.
 * @return 0; -EINVAL: key out of order, or an item too large for a leaf; -EUCLEAN: an item that its own validator
 * refuses; or what place() or write() returned
 */
int bulk_add(struct bulk *b, const struct btrkit_key *key, const void *data, uint32_t size,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the builder only counts, so that nobody need make the bytes of items. */
bool bulk_only_counts(const struct bulk *b);

/* Writes what is left. A tree without items is one empty leaf. @root gets address, level, owner and generation. */
int bulk_finish(struct bulk *b, struct tree_root *root, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* After bulk_finish(): the blocks of a level. */
uint64_t bulk_blocks(const struct bulk *b, unsigned level);

#endif
