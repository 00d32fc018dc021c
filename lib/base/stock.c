// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/stock.h"

#include <stdint.h>

#include "lib/base/big.h"
#include "lib/base/hash.h"

/* Maximum number of unused pages that are kept. */
#define SPARE_MAX 8u
/* Maximum number of pages prepared in advance. So many may be needed at once by pools that fill at the same pace. */
#define AHEAD_MAX 16u
#define SLICES (BIG_MIN / SLICE_ALIGN)

struct free_chunk {
	struct free_chunk *next;
};

/* Header at the start of a page, before its first slice. */
struct stock_page {
	struct stock_page *prev, *next; /* list of pages with free slices */
	struct free_chunk *free;
	uint32_t used;
	uint32_t touched; /* number of slices that were ever used */
};

_Static_assert(sizeof(struct stock_page) <= SLICE_ALIGN - SLICE_SIZE, "no room for it");

static struct stock_page *page_of(void *slice)
{
	return (struct stock_page *)((uintptr_t)slice & ~(uintptr_t)(BIG_MIN - 1));
}

void *stock_slice_of(void *p)
{
	return (char *)((uintptr_t)p & ~(uintptr_t)(SLICE_ALIGN - 1)) + (SLICE_ALIGN - SLICE_SIZE);
}

void stock_init(struct stock *s)
{
	*s = (struct stock){ 0 };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wanted, NULL);
}

static struct stock_page *new_page(void)
{
	char *page = big_take(BIG_MIN);

	/*
	 * Touch all of it now, because the kernel clears memory on first use, and clears it at once only for a huge
	 * page.
	 */
	for (size_t at = 0; page && at < BIG_MIN; at += 4096)
		*(volatile char *)(page + at) = 0;
	return (struct stock_page *)page;
}

/* Number of pages to keep prepared. Called with the lock held. */
static size_t ahead(const struct stock *s)
{
	return s->taken / 4 < AHEAD_MAX ? s->taken / 4 : AHEAD_MAX;
}

static void *make_ready(void *ctx)
{
	struct stock *s = ctx;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		struct stock_page *page = NULL;

		if (s->num_ready < ahead(s)) {
			pthread_mutex_unlock(&s->lock);
			page = new_page();
			pthread_mutex_lock(&s->lock);
		}
		if (page) {
			DL_APPEND(s->ready, page);
			s->num_ready++;
		} else if (!s->stop) {
			pthread_cond_wait(&s->wanted, &s->lock);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Called with the lock held, which is dropped temporarily. @return NULL: out of memory */
static struct stock_page *next_page(struct stock *s)
{
	struct stock_page *page = s->ready;

	s->taken++;
	if (page) {
		DL_DELETE(s->ready, page);
		s->num_ready--;
		pthread_cond_signal(&s->wanted);
		return page;
	}
	if (!s->has_thread && !s->no_thread && ahead(s)) {
		s->has_thread = !pthread_create(&s->thread, NULL, make_ready, s);
		s->no_thread = !s->has_thread;
	}
	pthread_mutex_unlock(&s->lock);
	page = new_page();
	pthread_mutex_lock(&s->lock);
	return page;
}

static void stop_thread(struct stock *s)
{
	if (!s->has_thread)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wanted);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->has_thread = s->stop = false;
}

static void free_pages(struct stock_page **list)
{
	struct stock_page *page, *next;

	DL_FOREACH_SAFE(*list, page, next)
	{
		if (page->used)
			continue;
		DL_DELETE(*list, page);
		big_free(page, BIG_MIN);
	}
}

void stock_trim(struct stock *s)
{
	stop_thread(s);
	pthread_mutex_lock(&s->lock);
	free_pages(&s->ready);
	free_pages(&s->with_room);
	s->num_ready = s->spare = s->taken = 0;
	pthread_mutex_unlock(&s->lock);
}

void stock_destroy(struct stock *s)
{
	stock_trim(s);
	pthread_cond_destroy(&s->wanted);
	pthread_mutex_destroy(&s->lock);
}

void *stock_take(struct stock *s)
{
	struct stock_page *page;
	void *slice = NULL;

	pthread_mutex_lock(&s->lock);
	page = s->with_room;
	if (!page) {
		page = next_page(s);
		if (!page)
			goto out;
		DL_APPEND(s->with_room, page);
		s->spare++;
	}
	if (page->free) {
		slice = page->free;
		page->free = page->free->next;
	} else {
		slice = stock_slice_of((char *)page + page->touched++ * SLICE_ALIGN);
	}
	s->spare -= !page->used;
	if (++page->used == SLICES)
		DL_DELETE(s->with_room, page);
out:
	pthread_mutex_unlock(&s->lock);
	return slice;
}

/* Puts a slice back. Called with the lock held. @return a page to free, or NULL */
static void *give(struct stock *s, void *slice)
{
	struct stock_page *page = page_of(slice);
	struct free_chunk *f = slice;

	f->next = page->free;
	page->free = f;
	if (page->used-- == SLICES)
		DL_PREPEND(s->with_room, page);
	if (page->used)
		return NULL;
	DL_DELETE(s->with_room, page);
	if (s->spare == SPARE_MAX)
		return page;
	/* Append it, so that partly used pages are used first. */
	DL_APPEND(s->with_room, page);
	s->spare++;
	return NULL;
}

void stock_give(struct stock *s, void *slice)
{
	void *page;

	pthread_mutex_lock(&s->lock);
	page = give(s, slice);
	pthread_mutex_unlock(&s->lock);
	big_free(page, BIG_MIN);
}
