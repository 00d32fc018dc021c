/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_CSUM_H
#define BTRKIT_BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>

#define CSUM_SIZE_MAX 32

/* A kind of checksum that a superblock may name. */
struct csum_kind {
	uint16_t type;		/* the superblock's csum_type */
	uint16_t size;		/* bytes stored */
	const char *name;
	/* Writes size bytes to @sum; NULL where this build cannot compute the kind, or what it has for that may not. */
	void (*compute)(const void *data, size_t len, uint8_t *sum);
};

/* NULL for a type that btrfs does not know. */
const struct csum_kind *csum_kind_find(uint16_t type);

#endif
