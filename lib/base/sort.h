/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_SORT_H
#define BTRKIT_BASE_SORT_H

/* Many things are put in the order of numbers, which are not compared with each other for that but taken apart. */

#include <stddef.h>
#include <stdint.h>

struct sort_entry {
	uint64_t rank, number; /* by rank first */
	void *what;
};

/* In which order equal ones come is not said. Takes memory for as many again while it works, if there is any. */
void sort_entries(struct sort_entry *at, size_t n);

#endif
