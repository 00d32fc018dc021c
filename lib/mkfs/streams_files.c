// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items of file trees: inodes, names, xattrs and extents. */
#include "lib/mkfs/streams.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/mkfs/filled/fill.h"

#define AHEAD 8u /* entries to prefetch */

/* State of the generation of one subvolume. */
struct filler {
	const struct mkfs_plan *plan;
	const struct mkfs_fill *fill;
	const struct source *source;
	struct bulk *to;
	uint8_t *buf; /* buffer for an item, nodesize bytes */
	uint32_t room; /* maximum size of an item */
};

static struct disk_time put_time(const struct source_time *t)
{
	return (struct disk_time){ le64_put((uint64_t)t->sec), le32_put(t->nsec) };
}

static void put_times(const struct mkfs_fill *f, const struct source_inode *n, struct disk_inode_item *d)
{
	const struct mkfs_times t = mkfs_fill_times(f, n);

	d->atime = put_time(&t.atime);
	d->mtime = put_time(&t.mtime);
	d->ctime = put_time(&t.ctime);
	d->otime = put_time(&t.otime);
}

/* Returns the inode whose contents this one shares. */
static const struct source_inode *contents_of(const struct source *s, const struct source_inode *n)
{
	return &s->inodes[n->contents];
}

static uint64_t file_bytes(const struct filler *e, const struct source_inode *n)
{
	const struct source_inode *c = contents_of(e->source, n);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->count; i++)
		bytes += e->fill->contents->extents[c->first + i].ram_bytes;
	return bytes;
}

static int add_inode(struct filler *e, const struct source_inode *n, struct btrkit_error *err)
{
	const uint64_t generation = e->plan->generation;
	struct disk_inode_item d = {
		.generation = le64_put(generation),
		.transid = le64_put(generation),
		.nlink = le32_put(n->nlink),
		.uid = le32_put(n->uid),
		.gid = le32_put(n->gid),
		.mode = le32_put(n->mode),
		.rdev = le64_put(n->rdev),
	};

	if (bulk_only_counts(e->to))
		return bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_INODE_ITEM, 0), &d, sizeof(d), err);
	d.size = le64_put(mkfs_fill_size(e->source, n));
	if (S_ISREG(n->mode))
		d.nbytes = le64_put(file_bytes(e, n));
	else if (S_ISLNK(n->mode))
		d.nbytes = d.size;
	d.flags = le64_put(mkfs_fill_inode_flags(e->source, n));
	put_times(e->fill, n, &d);
	return bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_INODE_ITEM, 0), &d, sizeof(d), err);
}

static uint32_t put_ref(uint8_t *to, uint64_t index, const char *name, uint16_t len)
{
	const struct disk_inode_ref d = { le64_put(index), le16_put(len) };

	memcpy(to, &d, sizeof(d));
	memcpy(to + sizeof(d), name, len);
	return (uint32_t)sizeof(d) + len;
}

/* Reports an error with the path of an inode. */
static int refuse(const struct filler *e, const struct source_inode *n, const char *why, struct btrkit_error *err)
{
	char path[512];

	source_path(e->source, (uint32_t)(n - e->source->inodes), path, sizeof(path));
	return err_set(err, BTRKIT_INVALID, "%s: %s", path, why);
}

/* A name that does not fit into the INODE_REF item of its directory. */
struct extref {
	uint64_t hash;
	const struct source_entry *entry;
};

static uint64_t extref_hash(const struct filler *e, const struct source_entry *n)
{
	return crc32c((uint32_t)mkfs_fill_objectid(&e->source->inodes[n->parent]), n->name, n->len);
}

static int by_hash(const void *a, const void *b)
{
	const struct extref *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int add_extrefs(struct filler *e, const struct source_inode *inode, struct extref *refs, size_t n,
		       struct btrkit_error *err)
{
	int ret = 0;

	if (n && !(e->plan->opts.incompat & INCOMPAT_EXTENDED_IREF))
		return refuse(e, inode, "so many names in a directory require the feature extref", err);
	qsort(refs, n, sizeof(*refs), by_hash);
	for (size_t i = 0; !ret && i < n;) {
		const uint64_t hash = refs[i].hash;
		uint32_t size = 0;

		for (; i < n && refs[i].hash == hash; i++) {
			const struct source_entry *entry = refs[i].entry;
			const struct disk_inode_extref d = {
				.parent = le64_put(mkfs_fill_objectid(&e->source->inodes[entry->parent])),
				.index = le64_put(entry->index),
				.name_len = le16_put(entry->len),
			};

			if (size + sizeof(d) + entry->len > e->room)
				return refuse(e, inode, "too many names with the same hash", err);
			memcpy(e->buf + size, &d, sizeof(d));
			memcpy(e->buf + size + sizeof(d), entry->name, entry->len);
			size += (uint32_t)sizeof(d) + entry->len;
		}
		ret = bulk_add(e->to, &KEY(mkfs_fill_objectid(inode), KEY_INODE_EXTREF, hash), e->buf, size, err);
	}
	return ret;
}

/*
 * Adds the references of an inode with several names: an INODE_REF item per directory, and INODE_EXTREF items for names
 * that do not fit.
 */
static int add_links(struct filler *e, const struct source_inode *n, const struct mkfs_link *links,
		     struct btrkit_error *err)
{
	struct extref *refs = calloc(n->nlink, sizeof(*refs));
	size_t num_refs = 0;
	int ret = 0;

	if (!refs)
		return err_nomem(err);
	for (uint32_t i = 0; !ret && i < n->nlink;) {
		const uint32_t parent = e->source->entries[links[i].entry].parent;
		uint32_t size = 0;

		for (; i < n->nlink && e->source->entries[links[i].entry].parent == parent; i++) {
			const struct source_entry *entry = &e->source->entries[links[i].entry];

			if (size + sizeof(struct disk_inode_ref) + entry->len <= e->room)
				size += put_ref(e->buf + size, entry->index, entry->name, entry->len);
			else
				refs[num_refs++] = (struct extref){ extref_hash(e, entry), entry };
		}
		ret = bulk_add(e->to,
			       &KEY(mkfs_fill_objectid(n), KEY_INODE_REF,
				    mkfs_fill_objectid(&e->source->inodes[parent])),
			       e->buf, size, err);
	}
	if (!ret)
		ret = add_extrefs(e, n, refs, num_refs, err);
	free(refs);
	return ret;
}

static int add_names(struct filler *e, uint32_t number, struct btrkit_error *err)
{
	const struct source_inode *n = &e->source->inodes[number];
	const struct source_entry *entry;
	uint32_t size;

	/* The root directory of a subvolume is named by root references instead. */
	if (!n->number) {
		size = put_ref(e->buf, 0, "..", 2);
		return bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_INODE_REF, mkfs_fill_objectid(n)), e->buf, size,
				err);
	}
	if (n->nlink > 1)
		return add_links(e, n, mkfs_fill_links(e->fill, number), err);
	entry = &e->source->entries[n->name];
	size = put_ref(e->buf, entry->index, entry->name, entry->len);
	return bulk_add(e->to,
			&KEY(mkfs_fill_objectid(n), KEY_INODE_REF,
			     mkfs_fill_objectid(&e->source->inodes[entry->parent])),
			e->buf, size, err);
}

static uint32_t put_dir_item(uint8_t *to, const struct disk_dir_item *d, const void *name, uint16_t name_len,
			     const void *data, uint16_t data_len)
{
	struct disk_dir_item with_lengths = *d;

	with_lengths.name_len = le16_put(name_len);
	with_lengths.data_len = le16_put(data_len);
	memcpy(to, &with_lengths, sizeof(with_lengths));
	memcpy(to + sizeof(*d), name, name_len);
	if (data_len)
		memcpy(to + sizeof(*d) + name_len, data, data_len);
	return (uint32_t)sizeof(*d) + name_len + data_len;
}

struct hashed_xattr {
	uint64_t hash;
	const struct source_xattr *x;
};

static int xattr_by_hash(const void *a, const void *b)
{
	const struct hashed_xattr *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->x < y->x ? -1 : x->x > y->x;
}

static int add_xattrs(struct filler *e, const struct source_inode *n, struct btrkit_error *err)
{
	const struct disk_dir_item d = { .transid = le64_put(e->plan->generation), .type = FT_XATTR };
	struct hashed_xattr *all;
	int ret = 0;

	if (!n->xattrs)
		return 0;
	all = calloc(n->xattrs->n, sizeof(*all));
	if (!all)
		return err_nomem(err);
	for (uint32_t i = 0; i < n->xattrs->n; i++) {
		const struct source_xattr *x = &n->xattrs->at[i];

		all[i] = (struct hashed_xattr){ dir_name_hash(x->name, x->name_len), x };
	}
	qsort(all, n->xattrs->n, sizeof(*all), xattr_by_hash);
	for (uint32_t i = 0; !ret && i < n->xattrs->n;) {
		const uint64_t hash = all[i].hash;
		uint32_t size = 0;

		for (; !ret && i < n->xattrs->n && all[i].hash == hash; i++) {
			const struct source_xattr *x = all[i].x;

			if (size + sizeof(d) + x->name_len + x->value_len > e->room)
				ret = refuse(e, n, "attributes with the same hash are too large", err);
			else
				size += put_dir_item(e->buf + size, &d, x->name, (uint16_t)x->name_len, x->value,
						     (uint16_t)x->value_len);
		}
		if (!ret)
			ret = bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_XATTR_ITEM, hash), e->buf, size, err);
	}
	free(all);
	return ret;
}

static uint32_t put_entry(const struct filler *e, uint32_t subvolume, const struct source_entry *entry, uint8_t *to)
{
	const struct source_inode *n = &e->source->inodes[entry->inode];
	struct btrkit_key location;
	struct disk_dir_item d;

	if (bulk_only_counts(e->to))
		return (uint32_t)sizeof(d) + entry->len;
	location = KEY(mkfs_fill_objectid(n), KEY_INODE_ITEM, 0);
	if (n->subvolume != subvolume)
		location = KEY(mkfs_fill_root(n), KEY_ROOT_ITEM, UINT64_MAX);
	d = (struct disk_dir_item){ .location = key_put(&location),
				    .transid = le64_put(e->plan->generation),
				    .type = dir_type_of_mode(n->mode) };
	return put_dir_item(to, &d, entry->name, entry->len, NULL, 0);
}

/* In hash order the entries are scattered in memory, so prefetch the next ones. */
static void fetch_ahead(const struct filler *e, const struct source_entry *entries, uint32_t i, uint32_t n)
{
	const struct source_entry *all = e->source->entries;

	if (n - i > 2 * AHEAD)
		__builtin_prefetch(&all[entries[i + 2 * AHEAD].by_hash]);
	if (n - i > AHEAD) {
		const struct source_entry *soon = &all[entries[i + AHEAD].by_hash];

		__builtin_prefetch(soon->name);
		__builtin_prefetch(&e->source->inodes[soon->inode].mode);
		__builtin_prefetch(&e->source->inodes[soon->inode].number);
	}
}

static int add_entries(struct filler *e, const struct source_inode *n, struct btrkit_error *err)
{
	const struct source_entry *entries = e->source->entries + n->first;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < n->count;) {
		const uint32_t hash = e->source->entries[entries[i].by_hash].hash;
		uint32_t size = 0;

		for (; !ret && i < n->count && e->source->entries[entries[i].by_hash].hash == hash; i++) {
			const struct source_entry *entry = &e->source->entries[entries[i].by_hash];

			fetch_ahead(e, entries, i, n->count);
			if (size + sizeof(struct disk_dir_item) + entry->len > e->room)
				ret = refuse(e, n, "too many entries with the same hash", err);
			else
				size += put_entry(e, n->subvolume, entry, e->buf + size);
		}
		if (!ret)
			ret = bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_DIR_ITEM, hash), e->buf, size, err);
	}
	for (uint32_t i = 0; !ret && i < n->count; i++) {
		const uint32_t size = put_entry(e, n->subvolume, &entries[i], e->buf);

		ret = bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_DIR_INDEX, entries[i].index), e->buf, size, err);
	}
	return ret;
}

/* Adds an inline extent. */
static int add_inline(struct filler *e, const struct source_inode *n, uint64_t ram_bytes, uint8_t compression,
		      const struct mkfs_extent *x, struct btrkit_error *err)
{
	struct disk_file_extent d = { .generation = le64_put(e->plan->generation),
				      .ram_bytes = le64_put(ram_bytes),
				      .compression = compression,
				      .type = FILE_EXTENT_INLINE };
	const uint32_t len = x ? x->disk_bytes : (uint32_t)n->size;
	int ret = 0;

	memcpy(e->buf, &d, FILE_EXTENT_INLINE_START);
	if (!x)
		memcpy(e->buf + FILE_EXTENT_INLINE_START, n->text, len);
	else if (!bulk_only_counts(e->to))
		ret = spool_read(e->fill->contents->inline_bytes, x->at, e->buf + FILE_EXTENT_INLINE_START, len, err);
	return ret ? ret :
		     bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_EXTENT_DATA, 0), e->buf,
			      FILE_EXTENT_INLINE_START + len, err);
}

static int add_extent(struct filler *e, const struct source_inode *n, const struct mkfs_extent *x,
		      struct btrkit_error *err)
{
	const struct disk_file_extent d = { .generation = le64_put(e->plan->generation),
					    .ram_bytes = le64_put(x->ram_bytes),
					    .compression = x->compression,
					    .type = FILE_EXTENT_REG,
					    .disk_bytenr = le64_put(x->at),
					    .disk_num_bytes = le64_put(x->disk_bytes),
					    .num_bytes = le64_put(x->ram_bytes) };

	return bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_EXTENT_DATA, x->file_offset), &d, sizeof(d), err);
}

/* Adds a hole. It has an item only without the feature no-holes. */
static int add_hole(struct filler *e, const struct source_inode *n, uint64_t from, uint64_t to,
		    struct btrkit_error *err)
{
	const struct disk_file_extent d = { .generation = le64_put(e->plan->generation),
					    .ram_bytes = le64_put(to - from),
					    .type = FILE_EXTENT_REG,
					    .num_bytes = le64_put(to - from) };

	if (from >= to || e->plan->opts.incompat & INCOMPAT_NO_HOLES)
		return 0;
	return bulk_add(e->to, &KEY(mkfs_fill_objectid(n), KEY_EXTENT_DATA, from), &d, sizeof(d), err);
}

static int add_extents(struct filler *e, const struct source_inode *n, struct btrkit_error *err)
{
	const uint64_t sector = e->plan->opts.sectorsize, end = (n->size + sector - 1) / sector * sector;
	const struct source_inode *c = contents_of(e->source, n);
	const struct mkfs_extent *x = e->fill->contents->extents + c->first;
	uint64_t at = 0;
	int ret = 0;

	if (c->count && x->in_item)
		return add_inline(e, n, x->ram_bytes, x->compression, x, err);
	for (uint32_t i = 0; !ret && i < c->count; i++) {
		ret = add_hole(e, n, at, x[i].file_offset, err);
		if (!ret)
			ret = add_extent(e, n, &x[i], err);
		at = x[i].file_offset + x[i].ram_bytes;
	}
	return ret ? ret : add_hole(e, n, at, end, err);
}

static int add_file(struct filler *e, uint32_t number, struct btrkit_error *err)
{
	const struct source_inode *n = &e->source->inodes[number];
	int ret;

	ret = add_inode(e, n, err);
	if (!ret)
		ret = add_names(e, number, err);
	if (!ret)
		ret = add_xattrs(e, n, err);
	if (ret)
		return ret;
	if (S_ISDIR(n->mode))
		return add_entries(e, n, err);
	if (S_ISLNK(n->mode))
		return add_inline(e, n, n->size, 0, NULL, err);
	return S_ISREG(n->mode) ? add_extents(e, n, err) : 0;
}

int mkfs_stream_files(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err)
{
	const struct source *s = p->fill->source;
	const uint32_t number = mkfs_fill_subvolume_number(t->owner);
	struct filler e = { .plan = p, .fill = p->fill, .source = s, .to = b };
	uint32_t first = 0;
	int ret = 0;

	e.room = mkfs_item_room(&p->opts);
	e.buf = malloc(p->opts.nodesize);
	if (!e.buf)
		return err_nomem(err);
	for (uint32_t i = 0; i < number; i++)
		first += s->subvolumes[i].num_inodes;
	for (uint32_t i = 0; !ret && i < s->subvolumes[number].num_inodes; i++)
		ret = add_file(&e, s->in_order[first + i], err);
	free(e.buf);
	return ret;
}
