/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_SYNTHETIC_H
#define BTRKIT_TESTS_SYNTHETIC_H

/*
 * A filesystem made byte by byte in memory: one DUP chunk, nodes of 4 KiB, a root tree, an extent tree, and a top-level
 * subvolume of as many levels as its items need. Small enough to be damaged in every way.
 */

#include <btrkit/filesystem.h>

#include "lib/format/disk.h"
#include "lib/format/items/root.h"

#define SYN_NODESIZE 4096u
#define SYN_SIZE (80ull << 20) /* behind the first superblock mirror */
#define SYN_LOGICAL (16ull << 20)
#define SYN_LENGTH (16ull << 20)
#define SYN_COPY_1 (1ull << 20) /* where the chunk's copies lie */
#define SYN_COPY_2 (32ull << 20)
#define SYN_GENERATION 7u

#define SYN_MORE_MAX 32 /* items of the root tree besides those of the two trees that are always there */

struct syn_item {
	struct btrkit_key key;
	const void *data;
	uint32_t size;
};

struct synthetic {
	struct btrkit_io *io;
	uint64_t next; /* logical address of the next block */
	uint64_t chunk_root, root_root, extent_root, fs_root;
	uint8_t fs_level;
	/* What else is in the root tree and in the superblock; set before syn_finish(). */
	struct syn_item early; /* the one before that of tree 5, if it has data */
	struct syn_item more[SYN_MORE_MAX];
	size_t num_more;
	struct disk_root_item more_roots[4];
	size_t num_more_roots;
	uint64_t compat_ro, cache_generation;
};

/* The whole filesystem with these items in tree 5. Fails the test when it cannot be made. */
void syn_create(struct synthetic *s, const struct syn_item *items, size_t n);

/*
 * The same in steps, for an extent tree that has to know where the blocks of tree 5 lie: begin, the tree, then the
 * extent tree and the rest.
 */
void syn_begin(struct synthetic *s);
void syn_put_fs_tree(struct synthetic *s, const struct syn_item *items, size_t n);
void syn_finish(struct synthetic *s, uint64_t last_snapshot, const struct syn_item *extents, size_t n);

/*
 * Between syn_begin() and syn_finish(): another tree, or another item of the root tree. Both in the order of their
 * keys, which are above that of tree 5. The bytes of an item must live until syn_finish().
 */
void syn_put_tree(struct synthetic *s, uint64_t id, const struct syn_item *items, size_t n);
void syn_add_root_item(struct synthetic *s, const struct syn_item *item);

void syn_destroy(struct synthetic *s);

/* The bytes of a block's copy, for damaging; put back with syn_put(), which with @sign renews the checksum. */
void syn_get(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE]);
void syn_put(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE], int sign);
void syn_get_super(struct synthetic *s, unsigned mirror, struct disk_super *super);
void syn_put_super(struct synthetic *s, unsigned mirror, struct disk_super *super, int sign);

/* Opens it; the handle owns the device from then on. @return what btrkit_fs_open() returned */
int syn_open(struct synthetic *s, const struct btrkit_open_options *opts, struct btrkit_fs **fs,
	     struct btrkit_error *err);

#endif
