/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_PLACE_H
#define BTRKIT_IO_PLACE_H

/* What lies on what, as sysfs has it: a partition on its disk, a loop device on its file or on another device. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Bytes of a file or a block device. */
struct place {
	bool block;
	dev_t dev; /* the block device, or what the file lies on */
	ino_t ino; /* of a file */
	uint64_t start, len;
};

#define PLACES_MAX 12

/* A place, what that lies on, and so on. */
struct places {
	struct place at[PLACES_MAX];
	size_t n;
	size_t own; /* so many of them have no loop device in between */
};

struct place place_of(const struct stat *st, uint64_t start, uint64_t len);
void places_find(const struct place *place, struct places *ret);

/* A loop device. */
struct loop {
	char name[32];	     /* in /dev */
	dev_t dev;
	struct place behind; /* what it shows */
};

/* @name: as in /sys/block. @return whether it has anything behind it */
bool loop_find(const char *name, struct loop *ret);

/* What is in both: @len 0 if nothing is. */
struct place place_overlap(const struct place *a, const struct place *b);

struct partition {
	dev_t dev;
	uint64_t start; /* on its disk */
	char path[300]; /* of its device file */
};

/* The partition, as Linux has it, in which a range of a disk lies. @return whether there is one */
bool partition_find(dev_t disk, uint64_t start, uint64_t len, struct partition *ret);

#endif
