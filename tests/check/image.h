/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_IMAGE_H
#define BTRKIT_TESTS_CHECK_IMAGE_H

/*
 * A good image in memory, of one device or several, changes to it, and what check reports for it. Exits on any failure.
 */

#include "lib/tree/filesystem.h"
#include "tests/crash/sparse.h"
#include "tests/fuzz/fields.h"

#define BLOCKS_MAX 65536u

/* The current image. */
extern struct image {
	const char *name;
	struct sparse *good;
	struct btrkit_fs *fs;
	unsigned num_devices; /* which lie one behind the other in the image, in the order of their numbers */
	uint64_t device_size;
	uint64_t blocks[BLOCKS_MAX]; /* all tree blocks including log trees, each once */
	size_t num_blocks;
} image;

_Noreturn void die(const char *what);

/* check must find nothing in it. */
void image_open(const char *path);
void image_close(void);
/* Finds the blocks of image.fs, if it was opened elsewhere. */
void image_find_blocks(void);

/* Name of the tree that a block says to belong to. */
const char *image_tree_name(uint64_t id);
/* Writes the name of an item's type to @ret. */
void image_type_name(const struct disk_key *key, const uint8_t *data, uint32_t size, char ret[40]);

/* A number that is equal for items of the same type and form. */
uint64_t image_item_kind(const struct disk_key *key, const uint8_t *data, uint32_t size);

#define CODES_ROOM 4096u
/*
 * @return 1: findings, 0: none, -1: it could not be opened, -2: it has a feature that check does not
 * support. @codes: of the findings, each once, in order of the codes
 */
int image_check(struct sparse *disk, char codes[CODES_ROOM]);

struct copy;

/* Returns where a copy lies in the image. */
uint64_t image_place(const struct copy *c);
/* Returns where a device lies in the image. @number: from 0 */
uint64_t image_device(unsigned number);

/* Writes all copies of a tree block, with a valid checksum. */
void image_put_block(struct sparse *disk, uint64_t bytenr, uint8_t *block);
/* Writes all copies of the superblock of a device, each with its own address. */
void image_put_super(struct sparse *disk, unsigned device, const uint8_t *super);

#endif
