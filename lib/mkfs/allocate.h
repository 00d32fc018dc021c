/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_ALLOCATE_H
#define BTRKIT_MKFS_ALLOCATE_H

/*
 * Which devices a new chunk gets and how long it is: as mkfs.btrfs has it, whose order of the devices depends on all
 * chunks before.
 */

#include "lib/mkfs/layout.h"

struct mkfs_allocator {
	struct mkfs_device *devices;
	unsigned num_devices; /* that are in the filesystem already */
	uint64_t total_bytes; /* of these */
	uint32_t nodesize;
	uint64_t logical;  /* where the next chunk begins */
	uint64_t *ends;	   /* of each device, where what is free begins */
	unsigned *order;   /* in which the devices are asked */
	unsigned *scratch; /* as large */
};

/* On the first of @n devices. @return 0 or -ENOMEM */
int mkfs_allocator_create(struct mkfs_device *devices, unsigned n, uint32_t nodesize, struct mkfs_allocator *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_allocator_release(struct mkfs_allocator *a);
/* Adds the next device. */
void mkfs_allocator_add_device(struct mkfs_allocator *a);

/*
 * Allocates a chunk of a type and profile (BG_*). Its holes stay empty.
 * @return 0; -ENOSPC: there are no devices with room for it; -ENOMEM
 */
int mkfs_allocate(struct mkfs_allocator *a, uint64_t type, struct mkfs_group *ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of a given length, in one stripe. */
int mkfs_allocate_single(struct mkfs_allocator *a, uint64_t type, uint64_t length, struct mkfs_group *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
