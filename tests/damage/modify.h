/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_DAMAGE_MODIFY_H
#define BTRKIT_TESTS_DAMAGE_MODIFY_H

/* Filesystems with a bit of everything, ways to damage them, and operations on the result. */

#include <errno.h>

#include <btrkit/btrkit.h>

#include "tests/crash/sparse.h"

#define BASE_TOP 5u
#define BASE_DIR 256u /* inode number of a subvolume's root directory */
#define BASE_FILES 8u

/* An undamaged filesystem. */
struct base {
	struct sparse *at;
	uint32_t nodesize;
	struct base_block {
		uint64_t offset, logical;
		uint8_t level;
	} * blocks; /* all tree blocks, by address */
	size_t num_blocks;
	uint64_t dir, full, files[BASE_FILES], many; /* inodes in the top-level subvolume */
	uint64_t sub, snapshot, dead;		     /* subvolumes */
};

enum base_kind {
	BASE_SMALL_NODES,
	BASE_HOLES, /* without NO_HOLES; with quotas */
	BASE_KINDS
};

/* Exits on failure. */
void base_make(struct base *b, enum base_kind kind);
void base_free(struct base *b);

/* Pseudo-random number, which depends only on @state. */
uint64_t hurt_number(uint64_t *state);
/* Damage some trees in @at, a layer over the base's device; checksums are updated. */
void hurt(const struct base *b, struct sparse *at, uint64_t *state);

/* Environment of an operation. */
struct doing {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	const struct base *b;
	struct btrkit_error *err;
	unsigned round; /* number of operations so far, for unique names */
	uint64_t extracted;
};

struct operation {
	const char *name;
	int (*run)(struct doing *d);
};

/* On names and attributes; on file contents and subvolumes. */
extern const struct operation name_operations[], content_operations[];
extern const size_t num_name_operations, num_content_operations;

static inline uint64_t doing_file(const struct doing *d, unsigned i)
{
	return d->b->files[i % BASE_FILES];
}

/* Ignore -ENOENT: an earlier operation may have removed the object. */
static inline int doing_pass(int ret)
{
	return ret == -ENOENT ? 0 : ret;
}

/* Creates an object with a unique name: @name and the round. */
int doing_create(struct doing *d, uint64_t root, uint64_t dir, const char *name, uint32_t mode);

/* Reads everything in the filesystem. */
int read_all(struct doing *d);

#endif
