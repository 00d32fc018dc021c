/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_USAGE_RIG_H
#define BTRKIT_TESTS_USAGE_RIG_H

/*
 * A synthetic filesystem with subvolumes and a matching extent tree: tree 5 has a file with many extents, subvolume 256
 * is a snapshot of it that shares every block, and 257 has its own tree, which shares one of the extents.
 */

#include <btrkit/usage.h>

#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "tests/unit/synthetic.h"

#define RIG_EXTENTS 300u /* of the file in tree 5: several levels of blocks */
#define RIG_LENGTH 8192u
#define RIG_DATA (SYN_LOGICAL + (8ull << 20))
#define RIG_ITEMS_MAX 2048u

struct rig {
	struct synthetic s;
	struct syn_item files[RIG_EXTENTS + 4];
	struct disk_file_extent extents[RIG_EXTENTS];
	struct disk_inode_item inode, nameless;
	struct disk_root_item snapshot;
	uint8_t inlined[21 + 100];
	struct syn_item items[RIG_ITEMS_MAX]; /* of the extent tree */
	uint8_t bytes[RIG_ITEMS_MAX][64];
	size_t num_items;
	size_t blocks_5, blocks_257; /* of the trees */
};

/* Makes the file trees. Then come the items of the extent tree, which tests may change before rig_finish(). */
void rig_begin(struct rig *r);
void rig_finish(struct rig *r);

/* The address of extent @i. */
static inline uint64_t rig_data(size_t i)
{
	return RIG_DATA + i * RIG_LENGTH;
}

/* The index of the item of the extent at @bytenr. */
size_t rig_find(const struct rig *r, uint64_t bytenr);
void rig_drop(struct rig *r, size_t item);

/* What a load reported. */
struct told {
	unsigned n;
	struct btrkit_error first, last;
};

/* Load and close the filesystem again. @told: NULL if the first damage is to end it. @return what the load returned */
int rig_load(struct rig *r, const struct btrkit_usage_options *opts, struct told *told, struct btrkit_usage **u,
	     struct btrkit_error *err);

#endif
