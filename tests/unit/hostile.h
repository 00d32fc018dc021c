/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_HOSTILE_H
#define BTRKIT_TESTS_HOSTILE_H

/* Hand-made directories, files and subvolumes with arbitrary entries, in a synthetic filesystem. */

#include "tests/unit/synthetic.h"

#define HOSTILE_ITEMS 400u

struct hostile {
	struct syn_item items[HOSTILE_ITEMS];
	size_t n;
};

void hostile_init(struct hostile *h);
void hostile_free(struct hostile *h);

/* Adds an inode of the type that @mode says. */
void hostile_inode(struct hostile *h, uint64_t inode, uint32_t mode, uint32_t nlink, uint64_t size);
/* Adds the entry in a directory, or the back reference of the inode. */
void hostile_entry(struct hostile *h, uint64_t dir, uint64_t index, const char *name, uint64_t inode, uint8_t type);
void hostile_ref(struct hostile *h, uint64_t inode, uint64_t dir, uint64_t index, const char *name);
/* Adds both. */
void hostile_name(struct hostile *h, uint64_t dir, uint64_t index, const char *name, uint64_t inode, uint8_t type);
/* Inline data of a file or a symbolic link. */
void hostile_data(struct hostile *h, uint64_t inode, const char *text);
void hostile_xattr(struct hostile *h, uint64_t inode, const char *name, const char *value);

/* Builds the filesystem from all these items. */
void hostile_create(struct hostile *h, struct synthetic *s);
/* Builds the filesystem from all these items, and opens it. */
struct btrkit_fs *hostile_open(struct hostile *h, struct synthetic *s);

#endif
