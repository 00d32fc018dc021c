/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_ENTRIES_H
#define BTRKIT_SWEEP_ENTRIES_H

/*
 * Arrays of entries sorted by address, as in tables of extents and blocks. An entry begins with 8 bytes: the address, a
 * multiple of 4096, and flags in the low bits, which other threads may change at the same time. What follows is up to
 * the table.
 */

#include <stddef.h>
#include <stdint.h>

#define SWEEP_ADDRESS (~4095ull)

/* Returns the address of entry @i; @size: of an entry. */
static inline uint64_t sweep_entry_address(const void *entries, size_t size, size_t i)
{
	const uint64_t *at = (const void *)((const uint8_t *)entries + i * size);

	return __atomic_load_n(at, __ATOMIC_RELAXED) & SWEEP_ADDRESS;
}

/* Merges the sorted @more into @entries, of which @n are in use, with room for @num_more. No address is in both. */
void sweep_entries_merge(void *entries, size_t n, size_t size, const void *more, size_t num_more);

#endif
