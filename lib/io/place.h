/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_PLACE_H
#define BTRKIT_IO_PLACE_H

/* Block device layers as found in sysfs: a partition on its disk, a loop device on its file or on another device. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A range of a file or block device. */
struct place {
	bool block;
	dev_t dev; /* the block device, or the device of the filesystem with the file */
	ino_t ino; /* of a file */
	uint64_t start, len;
};

#define PLACES_MAX 12

/* A place, what that lies on, and so on. */
struct places {
	struct place at[PLACES_MAX];
	size_t n;
	size_t own; /* the number of places before the first loop device */
};

struct place place_of(const struct stat *st, uint64_t start, uint64_t len);
void places_find(const struct place *place, struct places *ret);

/* A loop device. */
struct loop {
	char name[32];	     /* in /dev */
	dev_t dev;
	struct place behind; /* what it shows */
};

/* @name: as in /sys/block. @return whether it is a loop device that is in use */
bool loop_find(const char *name, struct loop *ret);

/* The intersection of both; its @len is 0 if it is empty. */
struct place place_overlap(const struct place *a, const struct place *b);

struct partition {
	dev_t dev;
	uint64_t start; /* on its disk */
	char path[300]; /* of its device node */
};

/* Finds the partition known to Linux that contains a range of a disk. @return whether there is one */
bool partition_find(dev_t disk, uint64_t start, uint64_t len, struct partition *ret);

#endif
