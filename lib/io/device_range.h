/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_DEVICE_RANGE_H
#define BTRKIT_IO_DEVICE_RANGE_H

/* Block device layers as found in sysfs: a partition on its disk, a loop device on its file or on another device. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A range of a file or block device. */
struct device_range {
	bool block;
	dev_t dev; /* the block device, or the device of the filesystem with the file */
	ino_t ino; /* of a file */
	uint64_t start, len;
};

#define DEVICE_RANGES_MAX 12

/* A device range, what that lies on, and so on. */
struct device_ranges {
	struct device_range at[DEVICE_RANGES_MAX];
	size_t n;
	size_t own; /* the number of device ranges before the first loop device */
};

struct device_range device_range_of(const struct stat *st, uint64_t start, uint64_t len);
void device_ranges_find(const struct device_range *device_range, struct device_ranges *ret);

/* A loop device. */
struct loop {
	char name[32];	     /* in /dev */
	dev_t dev;
	struct device_range behind; /* what it shows */
};

/* @name: as in /sys/block. @return whether it is a loop device that is in use */
bool loop_find(const char *name, struct loop *ret);

/* The intersection of both; its @len is 0 if it is empty. */
struct device_range device_range_overlap(const struct device_range *a, const struct device_range *b);

struct partition {
	dev_t dev;
	uint64_t start; /* on its disk */
	char path[300]; /* of its device node */
};

/* Finds the partition known to Linux that contains a range of a disk. @return whether there is one */
bool partition_find(dev_t disk, uint64_t start, uint64_t len, struct partition *ret);

#endif
