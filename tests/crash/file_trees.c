// SPDX-License-Identifier: LGPL-2.1-or-later
#include "file_trees.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <btrkit/file.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/tree/cursor.h"

/* What a tree's items say about one inode. */
struct seen {
	uint64_t inode;
	struct inode_item item;
	bool has_item, orphan;
	uint64_t refs;	   /* back references (INODE_REF, INODE_EXTREF) */
	uint64_t entries;  /* directory entries that point to it */
	uint64_t expected; /* file type in those entries */
	uint64_t names;	   /* bytes of its entries' names, counted by index and by hash */
	uint64_t bytes, end;
	uint64_t data; /* start of the last extent that holds data */
	UT_hash_handle hh;
};

/* State of a walk over one tree. Sums over all names are independent of their order. */
struct walk {
	struct btrkit_fs *fs;
	uint64_t root;
	struct seen *inodes;
	uint64_t by_index, by_name, by_ref;
	uint64_t index_of_names, names_of_names;
};

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash_name(uint64_t h, const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = mix(h, name[i]);
	return mix(h, len);
}

static struct seen *seen_get(struct walk *w, uint64_t inode)
{
	struct seen *s;

	HASH_FIND(hh, w->inodes, &inode, sizeof(inode), s);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		exit(99);
	s->inode = inode;
	HASH_ADD(hh, w->inodes, inode, sizeof(s->inode), s);
	return s;
}

static void walk_release(struct walk *w)
{
	struct seen *s, *next;

	HASH_ITER(hh, w->inodes, s, next)
	{
		HASH_DEL(w->inodes, s);
		free(s);
	}
}

static int take_entries(struct walk *w, const struct item *item, struct btrkit_error *err)
{
	const uint64_t dir = item->key.objectid;
	const bool index = item->key.type == KEY_DIR_INDEX;
	struct dir_iter it = dir_first(item);
	struct dir_entry e;
	int ret;

	while (!(ret = dir_next(&it, &e, err))) {
		const bool inode = e.location.type == KEY_INODE_ITEM;
		uint64_t h = hash_name(mix(mix(dir, e.location.objectid), e.location.type), e.name, e.name_len);

		seen_get(w, dir)->names += e.name_len;
		if (!index) {
			w->by_name += mix(h, e.type);
			continue;
		}
		w->by_index += mix(h, e.type);
		if (!inode)
			continue;
		h = mix(mix(dir, item->key.offset), e.location.objectid);
		w->index_of_names += hash_name(h, e.name, e.name_len);
		seen_get(w, e.location.objectid)->entries++;
		seen_get(w, e.location.objectid)->expected = e.type;
	}
	return ret < 0 ? ret : 0;
}

static int take_refs(struct walk *w, const struct item *item, struct btrkit_error *err)
{
	struct inode_ref_iter it = inode_ref_first(item);
	struct seen *s = seen_get(w, item->key.objectid);
	struct inode_ref r;
	int ret;

	while (!(ret = inode_ref_next(&it, &r, err))) {
		s->refs++;
		/* The root directory is its own parent and has no directory entry. */
		if (r.parent != s->inode)
			w->names_of_names += hash_name(mix(mix(r.parent, r.index), s->inode), r.name, r.name_len);
	}
	return ret < 0 ? ret : 0;
}

static int take_extent(struct walk *w, const struct item *item, struct btrkit_error *err)
{
	struct seen *s = seen_get(w, item->key.objectid);
	struct file_extent fe;
	uint64_t bytes;
	int ret = file_extent_decode(&w->fs->items, item, &fe, err);

	if (ret)
		return ret;
	if (item->key.offset < s->end)
		return err_corrupt(err, NULL, "file extents of inode %" PRIu64 " overlap", s->inode);
	bytes = fe.type == FILE_EXTENT_INLINE ? fe.ram_bytes : fe.num_bytes;
	s->end = item->key.offset + bytes;
	if (fe.type == FILE_EXTENT_REG && fe.disk_bytenr)
		s->data = item->key.offset;
	s->bytes += fe.type == FILE_EXTENT_INLINE || fe.disk_bytenr ? bytes : 0;
	return 0;
}

static int take(struct walk *w, const struct item *item, struct btrkit_error *err)
{
	struct seen *s;

	switch (item->key.type) {
	case KEY_INODE_ITEM:
		s = seen_get(w, item->key.objectid);
		s->has_item = true;
		return inode_item_decode(&w->fs->items, item, &s->item, err);
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		return take_refs(w, item, err);
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
		return take_entries(w, item, err);
	case KEY_EXTENT_DATA:
		return take_extent(w, item, err);
	case KEY_ORPHAN_ITEM:
		seen_get(w, item->key.offset)->orphan = true;
		return 0;
	default:
		return 0;
	}
}

static uint8_t type_of(uint32_t mode)
{
	return S_ISREG(mode) ? FT_REG : S_ISDIR(mode) ? FT_DIR : S_ISCHR(mode) ? FT_CHR : S_ISBLK(mode) ? FT_BLK :
	       S_ISFIFO(mode) ? FT_FIFO : S_ISSOCK(mode) ? FT_SOCK : S_ISLNK(mode) ? FT_SYMLINK : FT_UNKNOWN;
}

static int check_inode(const struct walk *w, const struct seen *s, struct btrkit_error *err)
{
	const struct inode_item *i = &s->item;

	if (!s->has_item)
		return err_corrupt(err, NULL, "inode %" PRIu64 " has items and no INODE_ITEM", s->inode);
	if (i->nlink != s->refs && !S_ISDIR(i->mode))
		return err_corrupt(err, NULL, "inode %" PRIu64 " has %u links and %" PRIu64 " names", s->inode,
				   i->nlink, s->refs);
	if (i->nlink && s->refs != s->entries && s->inode != 256)
		return err_corrupt(err, NULL, "inode %" PRIu64 " has %" PRIu64 " names and %" PRIu64 " entries",
				   s->inode, s->refs, s->entries);
	if (!i->nlink && !s->orphan)
		return err_corrupt(err, NULL, "inode %" PRIu64 " has no name and no ORPHAN_ITEM", s->inode);
	if (s->entries && s->expected != type_of(i->mode))
		return err_corrupt(err, NULL, "inode %" PRIu64 " is of another type than its entry", s->inode);
	if (S_ISDIR(i->mode) && i->size != s->names)
		return err_corrupt(err, NULL, "directory %" PRIu64 " has size %" PRIu64 " and %" PRIu64
					      " bytes of names", s->inode, i->size, s->names);
	if (i->nlink && !S_ISDIR(i->mode) && i->nbytes != s->bytes)
		return err_corrupt(err, NULL, "inode %" PRIu64 " counts %" PRIu64 " bytes and has %" PRIu64, s->inode,
				   i->nbytes, s->bytes);
	/* Data past the end would show up when the file grows. */
	if (i->nlink && s->data && s->data >= i->size)
		return err_corrupt(err, NULL, "inode %" PRIu64 " has data at %" PRIu64 ", behind its end", s->inode,
				   s->data);
	/* Without NO_HOLES, extent items must cover the file up to its end. Gaps in between are checked elsewhere. */
	if (S_ISREG(i->mode) && i->size && i->nlink && !(w->fs->super.incompat & INCOMPAT_NO_HOLES) &&
	    s->end < i->size)
		return err_corrupt(err, NULL, "inode %" PRIu64 " lacks a hole at its end", s->inode);
	return 0;
}

static int read_file(const struct walk *w, const struct seen *s, struct btrkit_error *err)
{
	static uint8_t bytes[1 << 18];
	struct btrkit_file *f;
	uint64_t at = 0, length;
	size_t got;
	int ret = btrkit_file_open(w->fs, w->root, s->inode, &f, err);

	if (ret)
		return ret;
	while (!(ret = btrkit_file_next_data(f, at, &at, &length, err)) && length) {
		for (uint64_t end = at + length; !ret && at < end; at += got) {
			const size_t n = end - at < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);

			ret = btrkit_file_read(f, at, bytes, n, &got, err);
			if (!ret && got != n)
				ret = err_corrupt(err, NULL, "inode %" PRIu64 " cannot be read to its end", s->inode);
		}
		if (ret)
			break;
	}
	btrkit_file_close(f);
	return ret;
}

static int verify_walk(const struct walk *w, struct btrkit_error *err)
{
	int ret = 0;

	if (w->by_index != w->by_name)
		return err_corrupt(err, NULL, "DIR_INDEX and DIR_ITEM disagree in tree %" PRIu64, w->root);
	if (w->index_of_names != w->names_of_names)
		return err_corrupt(err, NULL, "DIR_INDEX and INODE_REF disagree in tree %" PRIu64, w->root);
	for (const struct seen *s = w->inodes; !ret && s; s = s->hh.next) {
		/* Skip the inodes of the v1 space cache and of the free inode cache. */
		if (s->inode < 256 || s->inode > UINT64_MAX - 256)
			continue;
		ret = check_inode(w, s, err);
		if (!ret && S_ISREG(s->item.mode))
			ret = read_file(w, s, err);
	}
	return ret;
}

static int each_tree(struct btrkit_fs *fs, int (*fn)(void *ctx, uint64_t id, const struct item *item,
						     struct btrkit_error *err),
		     int (*end)(void *ctx, struct btrkit_error *err), void *ctx, struct btrkit_error *err)
{
	struct cursor roots;
	int ret;

	cursor_init(&roots, fs, &fs->root_tree);
	for (ret = cursor_seek(&roots, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&roots, err)) {
		const uint64_t id = roots.item.key.objectid;
		struct tree_root root;
		struct root_item item;
		struct cursor c;

		if (roots.item.key.type != KEY_ROOT_ITEM || !oid_is_file_tree(id))
			continue;
		ret = fs_find_root(fs, id, &root, &item, err);
		if (ret)
			break;
		/* Skip subvolumes whose deletion is under way. */
		if (!item.refs)
			continue;
		cursor_init(&c, fs, &root);
		for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
			ret = fn(ctx, id, &c.item, err);
			if (ret)
				break;
		}
		cursor_release(&c);
		ret = ret < 0 ? ret : end ? end(ctx, err) : 0;
		if (ret)
			break;
	}
	cursor_release(&roots);
	return ret < 0 ? ret : 0;
}

static int walk_item(void *ctx, uint64_t id, const struct item *item, struct btrkit_error *err)
{
	struct walk *w = ctx;

	w->root = id;
	return take(w, item, err);
}

static int walk_end(void *ctx, struct btrkit_error *err)
{
	struct walk *w = ctx;
	const int ret = verify_walk(w, err);

	walk_release(w);
	*w = (struct walk){ .fs = w->fs };
	return ret;
}

int file_trees_check(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct walk w = { .fs = fs };
	const int ret = each_tree(fs, walk_item, walk_end, &w, err);

	walk_release(&w);
	return ret;
}

static void add_range(struct range **list, size_t *n, uint64_t start, uint64_t length)
{
	if (!(*n & (*n - 1)))
		*list = reallocarray(*list, *n ? 2 * *n : 1, sizeof(**list));
	if (!*list)
		exit(99);
	(*list)[(*n)++] = (struct range){ start, length };
}

struct keeping {
	struct btrkit_fs *fs;
	struct kept_space *ret;
};

static int keep_item(void *ctx, uint64_t id, const struct item *item, struct btrkit_error *err)
{
	const struct keeping *keeping = ctx;
	struct kept_space *k = keeping->ret;
	struct file_extent fe;
	int ret;

	(void)id;
	if (item->key.type != KEY_EXTENT_DATA)
		return 0;
	ret = file_extent_decode(&keeping->fs->items, item, &fe, err);
	if (ret || !fe.disk_bytenr)
		return ret;
	if (fe.type == FILE_EXTENT_PREALLOC)
		add_range(&k->kept, &k->num_kept, fe.disk_bytenr + fe.offset, fe.num_bytes);
	else if (fe.compression)
		add_range(&k->used, &k->num_used, fe.disk_bytenr, fe.disk_num_bytes);
	else
		add_range(&k->used, &k->num_used, fe.disk_bytenr + fe.offset, fe.num_bytes);
	return 0;
}

int kept_space_find(struct btrkit_fs *fs, struct kept_space *ret, struct btrkit_error *err)
{
	struct keeping keeping = { fs, ret };

	*ret = (struct kept_space){ 0 };
	return each_tree(fs, keep_item, NULL, &keeping, err);
}

static bool touches(const struct range *list, size_t n, uint64_t logical, uint64_t len)
{
	for (size_t i = 0; i < n; i++)
		if (logical < list[i].start + list[i].length && list[i].start < logical + len)
			return true;
	return false;
}

bool kept_space_touches(const struct kept_space *k, uint64_t logical, uint64_t len)
{
	return touches(k->kept, k->num_kept, logical, len);
}

bool kept_space_has(const struct kept_space *k, uint64_t logical, uint64_t len)
{
	return kept_space_touches(k, logical, len) && !touches(k->used, k->num_used, logical, len);
}

void kept_space_release(struct kept_space *k)
{
	free(k->kept);
	free(k->used);
}
