/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_SYNTHETIC_H
#define BTRKIT_TESTS_SYNTHETIC_H

/*
 * A filesystem built byte by byte in memory: one DUP chunk, nodes of 4 KiB, a root tree, an extent tree, and a
 * top-level subvolume with as many levels as its items need. It is small enough to be damaged in every way.
 */

#include <btrkit/filesystem.h>

#include "lib/format/disk.h"
#include "lib/format/items/root.h"

#define SYN_NODESIZE 4096u
#define SYN_SIZE (80ull << 20) /* past the first superblock mirror */
#define SYN_LOGICAL (16ull << 20)
#define SYN_LENGTH (16ull << 20)
#define SYN_COPY_1 (1ull << 20) /* location of the first copy of the chunk */
#define SYN_COPY_2 (32ull << 20)
#define SYN_GENERATION 7u

#define SYN_MORE_MAX 32 /* items of the root tree, without those of the two trees that always exist */

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
	/* More items of the root tree and fields of the superblock, to be set before syn_finish(). */
	struct syn_item early; /* an item before that of tree 5; unused without data */
	struct syn_item more[SYN_MORE_MAX];
	size_t num_more;
	struct disk_root_item more_roots[4];
	size_t num_more_roots;
	uint64_t compat_ro, cache_generation;
};

/* Makes the whole filesystem, with these items in tree 5. A failure fails the test. */
void syn_create(struct synthetic *s, const struct syn_item *items, size_t n);

/*
 * Like syn_create(), in steps, for an extent tree that depends on the addresses of the blocks of tree 5: begin, write
 * tree 5, then finish with the items of the extent tree.
 */
void syn_begin(struct synthetic *s);
void syn_put_fs_tree(struct synthetic *s, const struct syn_item *items, size_t n);
void syn_finish(struct synthetic *s, uint64_t last_snapshot, const struct syn_item *extents, size_t n);

/*
 * Between syn_begin() and syn_finish(): add another tree, or another item of the root tree, in key order and above that
 * of tree 5. The data of an item must stay valid until syn_finish().
 */
void syn_put_tree(struct synthetic *s, uint64_t id, const struct syn_item *items, size_t n);
void syn_add_root_item(struct synthetic *s, const struct syn_item *item);

void syn_destroy(struct synthetic *s);

/* Reads one copy of a block, to damage it; writes it back with syn_put(), which renews the checksum if @sign is set. */
void syn_get(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE]);
void syn_put(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE], int sign);
void syn_get_super(struct synthetic *s, unsigned mirror, struct disk_super *super);
void syn_put_super(struct synthetic *s, unsigned mirror, struct disk_super *super, int sign);

/* Opens the filesystem; from then on the handle owns the device. @return what btrkit_fs_open() returned */
int syn_open(struct synthetic *s, const struct btrkit_open_options *opts, struct btrkit_fs **fs,
	     struct btrkit_error *err);

#endif
