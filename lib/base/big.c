// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static size_t whole(size_t size)
{
	return (size + BIG_MIN - 1) & ~(BIG_MIN - 1);
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Linux 6.7 and later align large mappings to huge pages by themselves; older kernels need this. */
static char *map_aligned(size_t size)
{
	char *p = map(size);
	size_t skip;

	if (!p || !((uintptr_t)p & (BIG_MIN - 1)))
		return p;
	munmap(p, size);
	p = map(size + BIG_MIN);
	if (!p)
		return NULL;
	skip = -(uintptr_t)p & (BIG_MIN - 1);
	if (skip)
		munmap(p, skip);
	munmap(p + skip + size, BIG_MIN - skip);
	return p + skip;
}

void *big_take(size_t size)
{
	void *p;

	if (size < BIG_MIN)
		return calloc(1, size);
	if (size > SIZE_MAX / 2)
		return NULL;
	p = map_aligned(whole(size));
	/* Failure is harmless: the memory is only slower. */
	if (p)
		(void)madvise(p, whole(size), MADV_HUGEPAGE);
	return p;
}

void big_free(void *p, size_t size)
{
	if (size < BIG_MIN)
		free(p);
	else if (p)
		munmap(p, whole(size));
}
