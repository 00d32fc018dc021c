/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_DAMAGE_MODIFY_H
#define BTRKIT_TESTS_DAMAGE_MODIFY_H

/* Filesystems with something of everything in them, what is damaged in them, and what is done with them then. */

#include <errno.h>

#include <btrkit/btrkit.h>

#include "tests/crash/sparse.h"

#define BASE_TOP 5u
#define BASE_DIR 256u /* the root directory of each subvolume */
#define BASE_FILES 8u

/* One that nothing is wrong with. */
struct base {
	struct sparse *at;
	uint32_t nodesize;
	struct base_block {
		uint64_t offset, logical;
		uint8_t level;
	} * blocks; /* of trees, in the order of their places */
	size_t num_blocks;
	uint64_t dir, full, files[BASE_FILES], many; /* inodes of the top level */
	uint64_t sub, snapshot, dead;		     /* subvolumes */
};

enum base_kind {
	BASE_SMALL_NODES,
	BASE_HOLES, /* whose files have items for them; with quotas */
	BASE_KINDS
};

/* Ends the program when it cannot be made. */
void base_make(struct base *b, enum base_kind kind);
void base_free(struct base *b);

/* The next of numbers that depend on @state only. */
uint64_t hurt_number(uint64_t *state);
/* Damages some of the trees in @at, which lies over the base's device; checksums are good. */
void hurt(const struct base *b, struct sparse *at, uint64_t *state);

/* What an operation is done with. */
struct doing {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	const struct base *b;
	struct btrkit_error *err;
	unsigned round; /* how often it was done, for names that are new */
	uint64_t extracted;
};

struct operation {
	const char *name;
	int (*run)(struct doing *d);
};

/* Of names and attributes; of contents and subvolumes. */
extern const struct operation name_operations[], content_operations[];
extern const size_t num_name_operations, num_content_operations;

static inline uint64_t doing_file(const struct doing *d, unsigned i)
{
	return d->b->files[i % BASE_FILES];
}

/* What an operation before has removed is passed over. */
static inline int doing_pass(int ret)
{
	return ret == -ENOENT ? 0 : ret;
}

/* A name that is new, but for what is the same in the same round. */
int doing_create(struct doing *d, uint64_t root, uint64_t dir, const char *name, uint32_t mode);

/* All that can be read of it. */
int read_all(struct doing *d);

#endif
