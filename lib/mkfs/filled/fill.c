// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/fill.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/ids.h"
#include "lib/format/items/files/inode.h"
#include "lib/mkfs/make.h"

uint32_t mkfs_fill_subvolumes(const struct mkfs_fill *f)
{
	return f ? f->source->num_subvolumes : 1;
}

uint64_t mkfs_fill_subvolume_id(uint32_t number)
{
	return number ? OID_FIRST_FREE + number - 1 : OID_FS_TREE;
}

uint32_t mkfs_fill_subvolume_number(uint64_t id)
{
	return id == OID_FS_TREE ? 0 : (uint32_t)(id - OID_FIRST_FREE + 1);
}

uint64_t mkfs_fill_default(const struct mkfs_fill *f)
{
	for (uint32_t i = 0; f && i < f->source->num_subvolumes; i++)
		if (f->source->subvolumes[i].is_default)
			return mkfs_fill_subvolume_id(i);
	return OID_FS_TREE;
}

struct mkfs_times mkfs_fill_times(const struct mkfs_fill *f, const struct source_inode *n)
{
	const struct source_time limit = { f->time, 0 };
	const bool later = n->mtime.sec > limit.sec || (n->mtime.sec == limit.sec && n->mtime.nsec);
	const struct source_time mtime = later ? limit : n->mtime;

	if (!f->clamp)
		return (struct mkfs_times){ n->atime, n->mtime, n->ctime, n->ctime };
	return (struct mkfs_times){ mtime, mtime, limit, limit };
}

uint64_t mkfs_fill_size(const struct source *s, const struct source_inode *n)
{
	uint64_t size = 0;

	if (!S_ISDIR(n->mode))
		return n->size;
	/* Each name counts twice because it is in two items. */
	for (uint32_t i = 0; i < n->count; i++)
		size += 2u * s->entries[n->first + i].len;
	return size;
}

uint64_t mkfs_fill_inode_flags(const struct source *s, const struct source_inode *n)
{
	static const struct {
		enum source_flags flag;
		uint64_t on_disk;
	} known[] = { { SOURCE_NODATACOW, INODE_NODATACOW }, { SOURCE_NODATASUM, INODE_NODATASUM },
		      { SOURCE_SYNC, INODE_SYNC },	     { SOURCE_IMMUTABLE, INODE_IMMUTABLE },
		      { SOURCE_APPEND, INODE_APPEND },	     { SOURCE_NODUMP, INODE_NODUMP },
		      { SOURCE_NOATIME, INODE_NOATIME },     { SOURCE_DIRSYNC, INODE_DIRSYNC } };
	uint64_t flags = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (n->flags & known[i].flag)
			flags |= known[i].on_disk;
	if (s->inodes[n->contents].flags & SOURCE_NOCOMPRESS)
		flags |= INODE_NOCOMPRESS;
	return flags;
}

/* Sorts by inode and directory, then by index, like the items on disk. */
static int by_item(const void *a, const void *b, void *ctx)
{
	const struct source *s = ctx;
	const struct mkfs_link *x = a, *y = b;
	const struct source_entry *ex = &s->entries[x->entry], *ey = &s->entries[y->entry];

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (ex->parent != ey->parent)
		return s->inodes[ex->parent].number < s->inodes[ey->parent].number ? -1 : 1;
	return ex->index < ey->index ? -1 : ex->index > ey->index;
}

static int collect_links(struct mkfs_fill *f, struct btrkit_error *err)
{
	const struct source *s = f->source;
	size_t n = 0;

	for (uint32_t i = 0; i < s->num_inodes; i++)
		if (s->inodes[i].nlink > 1)
			n += s->inodes[i].nlink;
	if (!n)
		return 0;
	f->links = calloc(n, sizeof(*f->links));
	if (!f->links)
		return err_nomem(err);
	for (uint32_t i = 0; i < s->num_entries && f->num_links < n; i++)
		if (s->inodes[s->entries[i].inode].nlink > 1)
			f->links[f->num_links++] = (struct mkfs_link){ s->entries[i].inode, i };
	qsort_r(f->links, f->num_links, sizeof(*f->links), by_item, f->source);
	return 0;
}

const struct mkfs_link *mkfs_fill_links(const struct mkfs_fill *f, uint32_t inode)
{
	size_t low = 0, high = f->num_links;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (f->links[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return &f->links[low];
}

static int make_uuids(struct mkfs_fill *f, const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret = 0;

	f->uuids = calloc(f->source->num_subvolumes, sizeof(*f->uuids));
	if (!f->uuids)
		return err_nomem(err);
	for (uint32_t i = 1; !ret && i < f->source->num_subvolumes; i++)
		ret = mkfs_make_uuid(p, MKFS_UUID_SUBVOLUME, mkfs_fill_subvolume_id(i), f->uuids[i], err);
	return ret;
}

int mkfs_fill_prepare(struct mkfs_fill *f, const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret = collect_links(f, err);

	return ret ? ret : make_uuids(f, p, err);
}

void mkfs_fill_release(struct mkfs_fill *f)
{
	free(f->links);
	free(f->uuids);
	f->links = NULL;
	f->uuids = NULL;
}
