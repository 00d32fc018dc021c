/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_IMAGE_H
#define BTRKIT_TESTS_CHECK_IMAGE_H

/* A good image in memory, what is changed in it, and what check says then. Whatever fails ends the program. */

#include "lib/tree/filesystem.h"
#include "tests/crash/sparse.h"
#include "tests/fuzz/fields.h"

#define BLOCKS_MAX 65536u

/* The image at hand. */
extern struct image {
	const char *name;
	struct sparse *good;
	struct btrkit_fs *fs;
	uint64_t blocks[BLOCKS_MAX]; /* all of all trees, logs too, each once */
	size_t num_blocks;
} image;

_Noreturn void die(const char *what);

/* It must be one in which check finds nothing. */
void image_open(const char *path);
void image_close(void);
/* The blocks of image.fs, which somebody has opened. */
void image_find_blocks(void);

/* What is said of trees: those that one of them says to be its owner. */
const char *image_tree_name(uint64_t id);
/* The name of an item's type, into @ret. */
void image_type_name(const struct disk_key *key, const uint8_t *data, uint32_t size, char ret[40]);

/* A number for items of one type and one form. */
uint64_t image_item_kind(const struct disk_key *key, const uint8_t *data, uint32_t size);

#define CODES_ROOM 4096u
/* @return 1: found, 0: not, -1: it could not be opened. @codes: of the findings, each once, in the order of codes */
int image_judge(struct sparse *disk, char codes[CODES_ROOM]);

/* Puts a tree block on all its copies, with a good checksum. */
void image_put_block(struct sparse *disk, uint64_t bytenr, uint8_t *block);
/* Puts a superblock on all its copies, each of which says where it lies. */
void image_put_super(struct sparse *disk, const uint8_t *super);

#endif
