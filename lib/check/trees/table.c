// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/check/trees/table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/sweep/entries.h"

#define FIRST_ENTRIES 4096u

void check_tables_init(struct check_tables *t, uint64_t memory, const char *spill)
{
	*t = (struct check_tables){ .memory = memory, .spill = spill };
	t->extents = (struct check_table){ .entry = sizeof(struct check_extent), .fd = -1 };
	t->blocks = (struct check_table){ .entry = sizeof(struct check_block), .fd = -1 };
}

void check_table_release(struct check_tables *t, struct check_table *table)
{
	if (table->at)
		munmap(table->at, table->room * table->entry);
	if (table->fd < 0)
		t->bytes -= table->room * table->entry;
	else
		close(table->fd);
	table->at = NULL;
	table->fd = -1;
	table->n = table->room = 0;
}

void check_tables_release(struct check_tables *t)
{
	check_table_release(t, &t->extents);
	check_table_release(t, &t->blocks);
}

/* Allocates the blocks in advance: writing to a mapped page for which there is no space would kill the process. */
static int allocate(const struct check_tables *t, int fd, size_t bytes, struct btrkit_error *err)
{
	const int errnum = posix_fallocate(fd, 0, (off_t)bytes);

	return errnum ? err_system(err, errnum, "cannot allocate space in %s", t->spill) : 0;
}

/* Moves the table from memory to a file. */
static int spill(struct check_tables *t, struct check_table *table, size_t room, struct btrkit_error *err)
{
	const int fd = open(t->spill, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	void *at;
	int ret;

	if (fd < 0)
		return err_system(err, errno, "cannot create a temporary file in %s", t->spill);
	ret = allocate(t, fd, room * table->entry, err);
	if (ret) {
		close(fd);
		return ret;
	}
	at = mmap(NULL, room * table->entry, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		close(fd);
		return err_nomem(err);
	}
	if (table->at) {
		memcpy(at, table->at, table->n * table->entry);
		munmap(table->at, table->room * table->entry);
		t->bytes -= table->room * table->entry;
	}
	table->at = at;
	table->fd = fd;
	return 0;
}

static int grow_file(const struct check_tables *t, struct check_table *table, size_t room, struct btrkit_error *err)
{
	int ret = allocate(t, table->fd, room * table->entry, err);
	void *at;

	if (ret)
		return ret;
	at = mremap(table->at, table->room * table->entry, room * table->entry, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		return err_nomem(err);
	table->at = at;
	return 0;
}

static int grow_memory(struct check_table *table, size_t room, struct btrkit_error *err)
{
	void *at;

	if (table->at)
		at = mremap(table->at, table->room * table->entry, room * table->entry, MREMAP_MAYMOVE);
	else
		at = mmap(NULL, room * table->entry, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return err_nomem(err);
	table->at = at;
	return 0;
}

int check_table_reserve(struct check_tables *t, struct check_table *table, size_t more, struct btrkit_error *err)
{
	const size_t most = SIZE_MAX / 2 / table->entry; /* room may be half as much again */
	size_t room = table->room ? table->room : FIRST_ENTRIES;
	uint64_t grow;
	int ret;

	if (more <= table->room - table->n)
		return 0;
	if (more > most || table->n > most - more)
		return err_nomem(err);
	/* Grow by half. Pages that were never written take no memory. */
	while (room - table->n < more)
		room += room / 2;
	grow = (room - table->room) * table->entry;
	if (table->fd >= 0)
		ret = grow_file(t, table, room, err);
	else if (!t->memory || t->bytes + grow <= t->memory)
		ret = grow_memory(table, room, err);
	else if (!t->spill)
		return err_set(err, BTRKIT_NO_MEMORY,
			       "tables need more than %" PRIu64 " bytes, and no directory to spill to is given",
			       t->memory);
	else
		ret = spill(t, table, room, err);
	if (ret)
		return ret;
	if (table->fd < 0)
		t->bytes += grow;
	table->room = room;
	if (t->bytes > t->most)
		t->most = t->bytes;
	return 0;
}

static uint64_t address(const struct check_table *table, size_t i)
{
	return sweep_entry_address(table->at, table->entry, i);
}

int check_table_merge(struct check_tables *t, struct check_table *table, const void *more, size_t n,
		      struct btrkit_error *err)
{
	int ret = check_table_reserve(t, table, n, err);

	if (ret)
		return ret;
	sweep_entries_merge(table->at, table->n, table->entry, more, n);
	table->n += n;
	return 0;
}

size_t check_table_lower_bound(const struct check_table *table, uint64_t bytenr, size_t *hint)
{
	size_t low = 0, high = table->n;

	/* It is often the next entry. */
	if (hint && *hint < high && address(table, *hint) <= bytenr) {
		low = *hint;
		for (size_t step = 1; low + step < high; step *= 2) {
			if (address(table, low + step) >= bytenr) {
				high = low + step;
				break;
			}
			low += step;
		}
	}
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (address(table, mid) < bytenr)
			low = mid + 1;
		else
			high = mid;
	}
	if (hint)
		*hint = low;
	return low;
}

struct check_block *check_find_block(const struct check_tables *t, uint64_t bytenr, size_t *hint)
{
	const size_t i = check_table_lower_bound(&t->blocks, bytenr, hint);

	return i < t->blocks.n && address(&t->blocks, i) == bytenr ? check_block_at(t, i) : NULL;
}

struct check_extent *check_find_extent(const struct check_tables *t, uint64_t logical, uint32_t sectorsize,
				       size_t *hint)
{
	size_t i = check_table_lower_bound(&t->extents, logical, hint);
	struct check_extent *e;

	if (i < t->extents.n && address(&t->extents, i) == logical)
		return check_extent_at(t, i);
	if (!i)
		return NULL;
	if (hint)
		*hint = i - 1;
	e = check_extent_at(t, i - 1);
	return logical - check_extent_start(e) < (uint64_t)e->sectors * sectorsize ? e : NULL;
}
