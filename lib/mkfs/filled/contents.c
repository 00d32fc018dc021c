// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/contents.h"

#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/mkfs/filled/digest.h"

/* Limits for data kept in memory. The rest goes to a temporary file. */
#define SUMS_MEMORY (48u << 20)
#define INLINE_MEMORY (80u << 20)

/* Data that is written with one call. */
struct run {
	uint64_t logical;
	const uint8_t *data;
	size_t len;
};

struct adding {
	struct mkfs_contents *contents;
	struct mkfs_compact *to;
	uint32_t csum_size, sectorsize;
	struct run run;
	int fd; /* file whose blocks are shared; -1: none open */
	uint32_t inode;
};

int mkfs_contents_create(struct mkfs_contents **ret, struct btrkit_error *err)
{
	struct mkfs_contents *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_nomem(err);
	r = spool_create(SUMS_MEMORY, &c->sums, err);
	if (!r)
		r = spool_create(INLINE_MEMORY, &c->inline_bytes, err);
	if (r)
		mkfs_contents_destroy(c);
	else
		*ret = c;
	return r;
}

struct mkfs_contents *mkfs_contents_destroy(struct mkfs_contents *c)
{
	if (!c)
		return NULL;
	spool_destroy(c->sums);
	spool_destroy(c->inline_bytes);
	free(c->extents);
	free(c->runs);
	free(c->marked);
	free(c->file_digests);
	free(c);
	return NULL;
}

static int write_run(struct adding *a, struct btrkit_error *err)
{
	const struct run r = a->run;

	a->run.len = 0;
	return r.len ? mkfs_compact_write(a->to, r.logical, r.data, r.len, err) : 0;
}

static int queue(struct adding *a, uint64_t logical, const uint8_t *data, size_t len, struct btrkit_error *err)
{
	struct run *r = &a->run;
	int ret = 0;

	if (r->len && r->logical + r->len == logical && r->data + r->len == data) {
		r->len += len;
		return 0;
	}
	ret = write_run(a, err);
	*r = (struct run){ logical, data, len };
	return ret;
}

/* If the file changed after it was read, its shared blocks do not match their checksums. */
static int close_shared(struct adding *a, struct btrkit_error *err)
{
	int ret;

	if (a->fd < 0)
		return 0;
	ret = source_file_unchanged(a->contents->shares, a->inode, a->fd, err);
	close(a->fd);
	a->fd = -1;
	return ret;
}

/*
 * Returns whether the file has no checksums on its filesystem, btrfs, which lets only files that have none either share
 * its blocks; the image usually has some.
 */
static bool is_nodatacow(int fd)
{
	unsigned flags;

	return !ioctl(fd, FS_IOC_GETFLAGS, &flags) && flags & FS_NOCOW_FL;
}

/* @return 0; 1: the blocks of this file must be copied; <0 */
static int share(struct adding *a, uint64_t logical, uint32_t inode, uint64_t offset, size_t len,
		 struct btrkit_error *err)
{
	char path[120];
	int ret;

	if (a->fd < 0 || a->inode != inode) {
		ret = close_shared(a, err);
		if (ret)
			return ret;
		a->fd = source_file_open(a->contents->shares, inode, err);
		if (a->fd < 0)
			return a->fd;
		a->inode = inode;
	}
	ret = mkfs_compact_share(a->to, logical, a->fd, offset, len, err);
	if (!ret || ret == -ENOSPC)
		return ret;
	if (ret == -EINVAL && is_nodatacow(a->fd))
		return 1;
	source_path(a->contents->shares, inode, path, sizeof(path));
	return err_system(err, ret, "%s: cannot share its blocks with the image", path);
}

/* Shares the part of an extent that can be shared, and queues the rest. */
static int put(struct adding *a, const struct mkfs_extent *e, const struct mkfs_piece *p, uint32_t done,
	       struct btrkit_error *err)
{
	const uint32_t left = p->shared > done ? p->shared - done : 0;
	uint32_t shared = left < e->disk_bytes ? left : e->disk_bytes;
	int ret = shared ? share(a, e->at, p->inode, e->file_offset, shared, err) : 0;

	if (ret == 1)
		ret = shared = 0;
	if (ret || shared == e->disk_bytes)
		return ret;
	return queue(a, e->at + shared, p->data + done + shared, e->disk_bytes - shared, err);
}

static int add_sums(struct adding *a, uint64_t logical, const uint8_t *sums, uint64_t sectors,
		    struct btrkit_error *err)
{
	struct mkfs_contents *c = a->contents;
	const uint64_t first = spool_size(c->sums) / a->csum_size;
	struct mkfs_csum_run *last = c->num_runs ? &c->runs[c->num_runs - 1] : NULL;

	if (last && last->logical + last->count * a->sectorsize == logical) {
		last->count += sectors;
	} else {
		if (c->num_runs == c->runs_size) {
			const size_t size = c->runs_size ? 2 * c->runs_size : 64;
			struct mkfs_csum_run *more = reallocarray(c->runs, size, sizeof(*more));

			if (!more)
				return err_nomem(err);
			c->runs = more;
			c->runs_size = size;
		}
		c->runs[c->num_runs++] = (struct mkfs_csum_run){ logical, first, sectors };
	}
	return spool_append(c->sums, sums, sectors * a->csum_size, err);
}

static int new_extent(struct adding *a, const struct mkfs_extent *e, struct btrkit_error *err)
{
	struct mkfs_contents *c = a->contents;

	if (c->num_extents == UINT32_MAX)
		return err_set(err, BTRKIT_INVALID, "too many extents");
	if (c->num_extents == c->extents_size) {
		const size_t size = c->extents_size ? 2 * c->extents_size : 1024;
		struct mkfs_extent *more = reallocarray(c->extents, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		c->extents = more;
		c->extents_size = size;
	}
	c->extents[c->num_extents++] = *e;
	return 0;
}

/* Extends the last extent by @e if @e continues it in the same group. @return whether it did */
static bool extend_last(struct adding *a, const struct mkfs_extent *e)
{
	struct mkfs_contents *c = a->contents;
	struct mkfs_extent *last = c->num_extents ? &c->extents[c->num_extents - 1] : NULL;

	if (!last || last->inode != e->inode || last->compression || e->compression || last->in_item ||
	    last->at + last->disk_bytes != e->at || last->file_offset + last->ram_bytes != e->file_offset ||
	    last->disk_bytes > CONTENTS_EXTENT_MAX - e->disk_bytes)
		return false;
	last->disk_bytes += e->disk_bytes;
	last->ram_bytes += e->ram_bytes;
	return true;
}

static int add_inline(struct adding *a, const struct mkfs_piece *p, struct btrkit_error *err)
{
	const struct mkfs_extent e = { .at = spool_size(a->contents->inline_bytes),
				       .disk_bytes = p->disk_bytes,
				       .ram_bytes = p->ram_bytes,
				       .inode = p->inode,
				       .compression = p->compression,
				       .in_item = true };
	int ret = spool_append(a->contents->inline_bytes, p->data, p->disk_bytes, err);

	return ret ? ret : new_extent(a, &e, err);
}

/* Places a piece. Uncompressed data may be split at the end of a group or at a superblock. */
static int add_on_disk(struct adding *a, const struct mkfs_piece *p, struct btrkit_error *err)
{
	for (uint32_t done = 0; done < p->disk_bytes;) {
		const uint32_t left = p->disk_bytes - done, min = p->compression ? left : a->sectorsize;
		const bool goes_on = mkfs_compact_goes_on(a->to, min);
		struct mkfs_range place;
		struct mkfs_extent e;
		/* The next group begins only after all data of the current one is written. */
		int ret = goes_on ? 0 : write_run(a, err);

		if (!ret)
			ret = mkfs_compact_take(a->to, min, left, &place, err);
		if (ret)
			return ret;
		e = (struct mkfs_extent){ .at = place.start,
					  .file_offset = p->file_offset + done,
					  .disk_bytes = (uint32_t)place.length,
					  .ram_bytes = (uint32_t)(p->compression ? p->ram_bytes : place.length),
					  .inode = p->inode,
					  .compression = p->compression };
		if (!goes_on || !extend_last(a, &e))
			ret = new_extent(a, &e, err);
		if (!ret)
			ret = put(a, &e, p, done, err);
		if (!ret && p->sums)
			ret = add_sums(a, e.at, p->sums + (size_t)(done / a->sectorsize) * a->csum_size,
				       e.disk_bytes / a->sectorsize, err);
		if (ret)
			return ret;
		done += e.disk_bytes;
	}
	return 0;
}

int mkfs_contents_add(struct mkfs_contents *c, struct mkfs_compact *to, uint32_t csum_size, uint32_t sectorsize,
		      const struct mkfs_piece *pieces, size_t n, struct btrkit_error *err)
{
	struct adding a = { c, to, csum_size, sectorsize, { 0 }, -1, SOURCE_NONE };
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = pieces[i].in_item ? add_inline(&a, &pieces[i], err) : add_on_disk(&a, &pieces[i], err);
	if (!ret)
		ret = write_run(&a, err);
	if (!ret)
		ret = close_shared(&a, err);
	if (a.fd >= 0)
		close(a.fd);
	return ret;
}

int mkfs_contents_mark(struct mkfs_contents *c, uint32_t inode, struct btrkit_error *err)
{
	if (c->num_marked == c->marked_size) {
		const size_t size = c->marked_size ? 2 * c->marked_size : 64;
		uint32_t *more = reallocarray(c->marked, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		c->marked = more;
		c->marked_size = size;
	}
	c->marked[c->num_marked++] = inode;
	return 0;
}

int mkfs_contents_digest(struct mkfs_contents *c, uint32_t inode, uint64_t offset, uint64_t unit,
			 struct btrkit_error *err)
{
	if (inode >= c->num_file_digests) {
		const size_t size = 2 * (size_t)inode + 1024;
		uint64_t *more = reallocarray(c->file_digests, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		memset(more + c->num_file_digests, 0, (size - c->num_file_digests) * sizeof(*more));
		c->file_digests = more;
		c->num_file_digests = size;
	}
	c->file_digests[inode] = digest_fold(c->file_digests[inode], offset, unit);
	return 0;
}

void mkfs_contents_settle(const struct mkfs_contents *c, struct source *source)
{
	for (size_t i = 0; i < c->num_extents; i++) {
		struct source_inode *n = &source->inodes[c->extents[i].inode];

		if (!n->count)
			n->first = (uint32_t)i;
		n->count++;
	}
	for (size_t i = 0; i < c->num_marked; i++)
		source->inodes[c->marked[i]].flags |= SOURCE_NOCOMPRESS;
}
