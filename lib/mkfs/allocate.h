/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_ALLOCATE_H
#define BTRKIT_MKFS_ALLOCATE_H

/*
 * Chooses the devices and the length of a new chunk exactly as mkfs.btrfs does. There, the order of the devices depends
 * on all earlier allocations.
 */

#include "lib/mkfs/layout.h"

struct mkfs_allocator {
	struct mkfs_device *devices;
	unsigned num_devices; /* already in the filesystem */
	uint64_t total_bytes; /* of those devices */
	uint32_t nodesize;
	uint64_t logical;  /* start of the next chunk */
	uint64_t *ends;	   /* start of the free space, per device */
	unsigned *order;   /* in which devices are tried */
	unsigned *scratch; /* same size as order */
};

/* Initializes an allocator for @n devices. Only the first one is used until others are added. @return 0 or -ENOMEM */
int mkfs_allocator_create(struct mkfs_device *devices, unsigned n, uint32_t nodesize, struct mkfs_allocator *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_allocator_release(struct mkfs_allocator *a);
/* Adds the next device. */
void mkfs_allocator_add_device(struct mkfs_allocator *a);

/*
 * Allocates a chunk of a type and profile (BG_*). Its holes are not determined.
 * @return 0; -ENOSPC: no devices with enough free space; -ENOMEM
 */
int mkfs_allocate(struct mkfs_allocator *a, uint64_t type, struct mkfs_group *ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Allocates a chunk of a given length with a single stripe. */
int mkfs_allocate_single(struct mkfs_allocator *a, uint64_t type, uint64_t length, struct mkfs_group *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
