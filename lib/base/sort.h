/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_SORT_H
#define BTRKIT_BASE_SORT_H

/* Radix sort of many entries. */

#include <stddef.h>
#include <stdint.h>

struct sort_entry {
	uint64_t rank, number; /* rank is the primary key */
	void *what;
};

/*
 * Sorts @n entries. The order of equal entries is undefined. Uses temporary memory for another @n entries if available.
 */
void sort_entries(struct sort_entry *at, size_t n);

#endif
