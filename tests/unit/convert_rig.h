/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CONVERT_RIG_H
#define BTRKIT_TESTS_CONVERT_RIG_H

/* Filesystems in memory with a v1 cache as Linux writes it, and with leftovers of one. */

#include "tests/unit/unit.h"

#include "lib/space_cache/convert.h"
#include "lib/format/feature_bits.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define BOTH (COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID)
#define FILES 40u   /* with a header */
#define NAMELESS 5u /* files without a header */
#define EXTENTS 3u  /* of each file */
#define INO(i) (300u + 2 * (i))
#define DIRECTORY 307u /* an inode of the root tree that is not a cache file */
#define SUBVOLUME 305u /* an objectid that an orphan item and a header name, without an inode */
#define EXTENT_BYTES 8192u

/*
 * Creates a filesystem. The low bits of @variant choose features and sizes; TREE: with a free space tree; LEFTOVER:
 * with an item in that tree that belongs to no block group.
 */
#define TREE 8u
#define LEFTOVER 16u
#define VARIANTS 16u
void rig_make(struct written *w, unsigned variant);
/* Sets these fields in the superblocks. */
void rig_put_super(struct written *w, uint64_t compat_ro, uint64_t cache_generation);

/* Opens the filesystem, does it and closes the filesystem; an error fails the test. */
struct btrkit_space_change rig_convert(struct written *w, enum btrkit_space_cache_kind to, unsigned flags);
struct btrkit_space_summary rig_status(struct written *w);

/* The filesystem is consistent, in whichever state, and items that do not belong to a cache still exist. */
void rig_check_whole(struct written *w);
/* The free space tree is in use, and nothing of the v1 cache is left. */
void rig_check_v2(struct written *w);

#endif
