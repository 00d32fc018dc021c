// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/memory.h"

#include <stdatomic.h>
#include <stddef.h>

static atomic_bool counting;
static atomic_ullong allocations;
static unsigned long long fail_at;
static bool fail_on;

void memory_count(uint64_t at, bool on)
{
	fail_at = at;
	fail_on = on;
	allocations = 0;
	counting = true;
}

uint64_t memory_end(void)
{
	counting = false;
	return allocations;
}

bool memory_pause(void)
{
	return atomic_exchange(&counting, false);
}

void memory_resume(bool counted)
{
	counting = counted;
}

static bool fails(void)
{
	unsigned long long at;

	if (!counting)
		return false;
	at = allocations++;
	return at == fail_at || (fail_on && at > fail_at);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(align, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? NULL : __real_strndup(s, n);
}
