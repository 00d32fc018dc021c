// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "lib/format/super.h"

#define PAGE SPARSE_PAGE

struct page {
	uint64_t number;
	uint8_t bytes[PAGE];
	UT_hash_handle hh;
};

struct sparse {
	struct btrkit_io io;
	struct sparse *below;
	struct page *pages;
	uint8_t *trace;
};

static const uint8_t zeros[PAGE];

static const uint8_t *look(const struct sparse *s, uint64_t number)
{
	const struct page *page = NULL;

	for (; s && !page; s = s->below)
		HASH_FIND(hh, s->pages, &number, sizeof(number), page);
	return page ? page->bytes : zeros;
}

static uint8_t *own(struct sparse *s, uint64_t number)
{
	struct page *page;

	HASH_FIND(hh, s->pages, &number, sizeof(number), page);
	if (!page) {
		page = malloc(sizeof(*page));
		if (!page)
			exit(99);
		page->number = number;
		memcpy(page->bytes, look(s->below, number), PAGE);
		HASH_ADD(hh, s->pages, number, sizeof(page->number), page);
	}
	return page->bytes;
}

/* Bytes from @offset on that lie in the same page. */
static size_t part(uint64_t offset, size_t len)
{
	size_t room = PAGE - offset % PAGE;

	return len < room ? len : room;
}

void sparse_read(struct sparse *s, uint64_t offset, void *buf, size_t len)
{
	for (uint8_t *to = buf; len;) {
		size_t n = part(offset, len);

		memcpy(to, look(s, offset / PAGE) + offset % PAGE, n);
		to += n;
		offset += n;
		len -= n;
	}
}

void sparse_write(struct sparse *s, uint64_t offset, const void *buf, size_t len)
{
	for (const uint8_t *from = buf; len;) {
		size_t n = part(offset, len);

		/* Writing zeros over zeros allocates no page. */
		if (look(s, offset / PAGE) != zeros || memcmp(from, zeros, n))
			memcpy(own(s, offset / PAGE) + offset % PAGE, from, n);
		from += n;
		offset += n;
		len -= n;
	}
}

void sparse_discard(struct sparse *s, uint64_t offset, uint64_t len)
{
	uint64_t first = (offset + PAGE - 1) / PAGE, end = (offset + len) / PAGE;
	struct page *page, *next;

	for (struct sparse *level = s; level; level = level->below) {
		HASH_ITER(hh, level->pages, page, next) {
			if (page->number >= first && page->number < end)
				memset(own(s, page->number), 0, PAGE);
		}
	}
}

/* Several threads may read and write at once. */
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;

static int io_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct sparse *s = (struct sparse *)io;

	pthread_mutex_lock(&using);
	for (uint64_t n = offset / PAGE; s->trace && n * PAGE < offset + len; n++)
		s->trace[n / 8] |= (uint8_t)(1u << n % 8);
	sparse_read((struct sparse *)io, offset, buf, len);
	pthread_mutex_unlock(&using);
	return 0;
}

static int io_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	pthread_mutex_lock(&using);
	sparse_write((struct sparse *)io, offset, buf, len);
	pthread_mutex_unlock(&using);
	return 0;
}

static int io_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static int io_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	pthread_mutex_lock(&using);
	sparse_discard((struct sparse *)io, offset, len);
	pthread_mutex_unlock(&using);
	return 0;
}

static int io_resize(struct btrkit_io *io, uint64_t size)
{
	struct sparse *s = (struct sparse *)io;
	struct page *page, *next;
	uint64_t keep = (size + PAGE - 1) / PAGE;

	HASH_ITER(hh, s->pages, page, next) {
		if (page->number < keep)
			continue;
		HASH_DEL(s->pages, page);
		free(page);
	}
	return 0;
}

static void io_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops sparse_ops = {
	.read = io_read,
	.write = io_write,
	.flush = io_flush,
	.discard = io_discard,
	.close = io_close,
};

static const struct btrkit_io_ops file_ops = {
	.read = io_read,
	.write = io_write,
	.flush = io_flush,
	.discard = io_discard,
	.resize = io_resize,
	.close = io_close,
};

struct sparse *sparse_create(uint64_t size, struct sparse *below)
{
	struct sparse *s = calloc(1, sizeof(*s));

	if (!s)
		exit(99);
	s->io.ops = &sparse_ops;
	s->io.size = size;
	snprintf(s->io.name, sizeof(s->io.name), "sparse");
	s->below = below;
	return s;
}

void sparse_like_file(struct sparse *s)
{
	s->io.ops = &file_ops;
}

void sparse_free(struct sparse *s)
{
	struct page *page, *next;

	HASH_ITER(hh, s->pages, page, next) {
		HASH_DEL(s->pages, page);
		free(page);
	}
	free(s);
}

struct btrkit_io *sparse_io(struct sparse *s)
{
	return &s->io;
}

const uint8_t *sparse_page(const struct sparse *s, uint64_t number)
{
	return look(s, number);
}

void sparse_trace(struct sparse *s, uint8_t *pages)
{
	s->trace = pages;
}

static bool is_super(uint64_t number)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		if (super_offset(mirror) / PAGE == number)
			return true;
	return false;
}

/* Compares every page that any of the layers of @s has. */
static bool pages_differ(const struct sparse *s, const struct sparse *a, const struct sparse *b, bool supers)
{
	for (; s; s = s->below)
		for (const struct page *page = s->pages; page; page = page->hh.next)
			if ((supers || !is_super(page->number)) &&
			    memcmp(look(a, page->number), look(b, page->number), PAGE))
				return true;
	return false;
}

bool sparse_differs(struct sparse *a, struct sparse *b)
{
	return pages_differ(a, a, b, false) || pages_differ(b, a, b, false);
}

bool sparse_equal(struct sparse *a, struct sparse *b)
{
	return !pages_differ(a, a, b, true) && !pages_differ(b, a, b, true);
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 31) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash_page(uint64_t number, const uint8_t *bytes)
{
	uint64_t h = mix(number + 1), word;

	for (size_t i = 0; i < PAGE; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		h = mix(h + word);
	}
	return h;
}

uint64_t sparse_hash(struct sparse *s, const struct sparse *base)
{
	uint64_t sum = 0;

	for (const struct sparse *level = s; level && level != base; level = level->below)
		for (const struct page *page = level->pages; page; page = page->hh.next) {
			const uint8_t *bytes = look(s, page->number);

			/* If several layers have the page, count only the topmost one, which is visible. */
			if (bytes == page->bytes && memcmp(bytes, look(base, page->number), PAGE))
				sum += hash_page(page->number, bytes);
		}
	return sum;
}

void sparse_export(struct sparse *s, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool bad = fd < 0 || ftruncate(fd, (off_t)s->io.size);

	for (const struct sparse *level = s; level; level = level->below)
		for (const struct page *page = level->pages; page && !bad; page = page->hh.next) {
			const uint8_t *bytes = look(s, page->number);

			if (memcmp(bytes, zeros, PAGE))
				bad = pwrite(fd, bytes, PAGE, (off_t)(page->number * PAGE)) != PAGE;
		}
	if (bad || close(fd)) {
		perror(path);
		exit(99);
	}
}

void sparse_print(struct sparse *s, FILE *to)
{
	const char *between = "";

	for (const struct page *page = s->pages; page; page = page->hh.next) {
		const uint8_t *old = look(s->below, page->number);

		for (size_t i = 0; i < PAGE; i++) {
			if (page->bytes[i] == old[i])
				continue;
			fprintf(to, "%s%llu:", between, (unsigned long long)(page->number * PAGE + i));
			for (; i < PAGE && page->bytes[i] != old[i]; i++)
				fprintf(to, "%02x", page->bytes[i]);
			between = " ";
		}
	}
}

struct sparse *sparse_clone(const struct sparse *s)
{
	struct sparse *copy = sparse_create(s->io.size, s->below);

	for (const struct page *page = s->pages; page; page = page->hh.next)
		sparse_write(copy, page->number * PAGE, page->bytes, PAGE);
	return copy;
}

struct sparse *sparse_import(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t at = 0, size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	struct sparse *s = sparse_create((uint64_t)size, NULL);
	uint8_t page[PAGE];

	while (size >= 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
		at -= at % PAGE;
		if (pread(fd, page, PAGE, at) != PAGE)
			break;
		sparse_write(s, (uint64_t)at, page, PAGE);
		at += PAGE;
	}
	/* ENXIO from SEEK_DATA: no more data up to the end. */
	if (size < 0 || at >= 0 || errno != ENXIO) {
		perror(path);
		exit(99);
	}
	close(fd);
	return s;
}
