/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_CSUM_H
#define BTRKIT_BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>

#define CSUM_SIZE_MAX 32

/* A checksum algorithm that a superblock may name. */
struct csum_kind {
	uint16_t type;		/* value of the superblock's csum_type */
	uint16_t size;		/* bytes stored */
	const char *name;
	/* Write size bytes to @sum. NULL if this build lacks the algorithm, or its library must not compute it. */
	void (*compute)(const void *data, size_t len, uint8_t *sum);
};

/* @return NULL: unknown checksum type */
const struct csum_kind *csum_kind_find(uint16_t type);

#endif
