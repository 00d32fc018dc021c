// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists the extents of files like the FIEMAP ioctl of Linux. Each leaf of the tree is visited once, rows are in the
 * order of keys, and sharing is determined for a whole leaf at a time, or for several.
 */
#include <btrkit/fiemap.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/fs/inode.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"
#include "lib/backref/references.h"
#include "lib/backref/share.h"

#define ROWS_MAX 1024
#define STOPPED "stopped by the caller"

/* The file whose items are being read. */
struct current_file {
	uint64_t inode;
	bool regular;
	bool announced; /* it was passed to the sink */
	uint64_t size;
	bool named;
	uint64_t parent; /* from its first name */
	size_t name_len;
	uint8_t name[NAME_LEN_MAX];
};

struct listing {
	struct btrkit_fs *fs;
	const struct btrkit_fiemap_sink *sink;
	struct btrkit_fiemap_stats *stats;
	struct btrkit_error err; /* of the caller or, if the listing continues, of the next problem */
	bool stopped;		 /* by the caller */
	struct cursor cursor;
	struct path_namer *namer;
	struct share_ctx share;
	bool one_inode;
	uint64_t leaf; /* the leaf that leaf_checked and leaf_shared are about */
	bool leaf_checked, leaf_shared;
	struct current_file file;
	struct btrkit_extent rows[ROWS_MAX];
	size_t num_rows;
	struct references refs; /* if the sink wants the owners of extents */
	uint64_t full_stripe_extent; /* with owners there is one row, of this extent; 0: inline data */
};

/* Converts the result of a sink's function. */
static int sink_result(struct listing *l, int ret)
{
	l->stopped |= ret != 0;
	return ret ? err_system(&l->err, ret, STOPPED) : 0;
}

static int describe(struct listing *l, struct btrkit_fiemap_file *file, struct btrkit_error *err)
{
	*file = (struct btrkit_fiemap_file){
		.root = l->cursor.root.id, .inode = l->file.inode, .size = l->file.size, .path = ""
	};
	return l->file.named ? path_namer_path(l->namer, l->file.parent, l->file.name, l->file.name_len, &file->path,
					       &file->path_len, err) : 0;
}

/* Reports why the listing of the current file ends here, and skips the rest of it. @return 0: continue; <0 */
static int give_up(struct listing *l, int ret, const struct btrkit_error *what)
{
	struct btrkit_fiemap_file file;

	if (l->one_inode || !l->sink->problem || l->stopped || ret == -ENOMEM)
		return err_pass(&l->err, what, ret);
	/* Without a path if that is what cannot be read. */
	(void)describe(l, &file, NULL);
	ret = sink_result(l, l->sink->problem(l->sink->ctx, &file, what));
	if (!ret)
		l->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	l->num_rows = 0;
	l->file.regular = false;
	return ret;
}

static int announce(struct listing *l)
{
	struct btrkit_fiemap_file file;
	int ret = describe(l, &file, &l->err);

	if (!ret)
		ret = sink_result(l, l->sink->file(l->sink->ctx, &file));
	l->file.announced = true;
	l->stats->files++;
	return ret;
}

static int tell_owners(struct listing *l)
{
	int ret = 0;

	l->refs.n = 0;
	if (l->full_stripe_extent)
		ret = references_load(&l->refs, l->full_stripe_extent, &l->err);
	return ret ? ret : sink_result(l, l->sink->owners(l->sink->ctx, l->refs.at, l->refs.n));
}

/* Passes all rows except the last @keep to the sink. */
static int hand_out(struct listing *l, size_t keep)
{
	size_t n = l->num_rows - keep;
	int ret = 0;

	if (!l->file.announced)
		ret = announce(l);
	if (!ret && n)
		ret = sink_result(l, l->sink->extents(l->sink->ctx, l->rows, n));
	if (!ret && n && l->sink->owners)
		ret = tell_owners(l);
	l->stats->extents += n;
	memmove(l->rows, l->rows + n, keep * sizeof(l->rows[0]));
	l->num_rows = keep;
	return ret;
}

static bool merges(const struct btrkit_extent *last, const struct btrkit_extent *row)
{
	return last->logical + last->length == row->logical && last->physical + last->length == row->physical &&
	       last->flags == row->flags;
}

/* Adds a row for the extent at @bytenr, or merges it with the previous row under the same conditions as in Linux. */
static int add_row(struct listing *l, const struct btrkit_extent *row, uint64_t bytenr)
{
	struct btrkit_extent *last = l->num_rows ? &l->rows[l->num_rows - 1] : NULL;
	int ret = 0;

	if (l->sink->owners) {
		ret = last ? hand_out(l, 0) : 0;
		l->full_stripe_extent = bytenr;
	} else if (last && merges(last, row)) {
		last->length += row->length;
		return 0;
	} else if (l->num_rows == ROWS_MAX) {
		/* Keep the last row: it may be extended, or be the last one of the file. */
		ret = hand_out(l, 1);
	}
	if (!ret)
		l->rows[l->num_rows++] = *row;
	return ret;
}

static int finish_file(struct listing *l)
{
	int ret = 0;

	if (l->num_rows)
		l->rows[l->num_rows - 1].flags |= BTRKIT_EXTENT_LAST;
	/* Only a listing of a single file includes a file without rows. */
	if (l->num_rows || (l->one_inode && l->file.inode))
		ret = hand_out(l, 0);
	return ret ? give_up(l, ret, &l->err) : 0;
}

static int is_shared(struct listing *l, const struct file_extent *fe, uint32_t *flags)
{
	bool shared = false;
	int ret = 0;

	if (!l->leaf_checked) {
		ret = share_enter_leaf(&l->share, &l->cursor, l->one_inode, &l->leaf_shared, &l->err);
		l->leaf_checked = !ret;
	}
	if (!ret)
		ret = share_extent_shared(&l->share, &l->cursor, fe, l->leaf_shared, &shared, &l->err);
	if (shared)
		*flags |= BTRKIT_EXTENT_SHARED;
	return ret;
}

static int add_extent(struct listing *l)
{
	struct btrkit_extent row = { .logical = l->cursor.item.key.offset };
	struct file_extent fe;
	int ret;

	ret = cursor_blame(&l->cursor, file_extent_decode(&l->fs->items, &l->cursor.item, &fe, &l->err), &l->err);
	if (ret)
		return ret;
	if (fe.type == FILE_EXTENT_INLINE) {
		row.length = l->fs->items.sectorsize;
		row.flags = BTRKIT_EXTENT_INLINE | BTRKIT_EXTENT_NOT_ALIGNED;
	} else if (!fe.disk_bytenr) {
		return 0;
	} else {
		row.length = fe.num_bytes;
		row.physical = fe.disk_bytenr + (fe.compression ? 0 : fe.offset);
		if (fe.type == FILE_EXTENT_PREALLOC)
			row.flags = BTRKIT_EXTENT_UNWRITTEN;
		ret = is_shared(l, &fe, &row.flags);
		if (ret)
			return ret;
	}
	if (fe.compression && fe.type != FILE_EXTENT_PREALLOC)
		row.flags |= BTRKIT_EXTENT_ENCODED;
	return add_row(l, &row, fe.disk_bytenr);
}

static int begin_file(struct listing *l)
{
	struct inode_item inode;
	int ret;

	l->file = (struct current_file){ .inode = l->cursor.item.key.objectid };
	share_new_file(&l->share);
	if (l->cursor.item.key.type != KEY_INODE_ITEM)
		return 0;
	ret = cursor_blame(&l->cursor, inode_item_decode(&l->fs->items, &l->cursor.item, &inode, &l->err), &l->err);
	if (ret)
		return ret;
	l->file.regular = S_ISREG(inode.mode);
	l->file.size = inode.size;
	return 0;
}

/* Uses the first name in the order of keys. */
static int take_name(struct listing *l)
{
	struct inode_ref_iter it = inode_ref_first(&l->cursor.item);
	struct inode_ref ref;
	int ret;

	ret = inode_ref_next(&it, &ref, &l->err);
	if (ret)
		return ret < 0 ? cursor_blame(&l->cursor, ret, &l->err) : 0;
	l->file.named = true;
	l->file.parent = ref.parent;
	l->file.name_len = ref.name_len;
	memcpy(l->file.name, ref.name, ref.name_len);
	return 0;
}

static int take_fact(struct listing *l)
{
	switch (l->cursor.item.key.type) {
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		return l->file.named ? 0 : take_name(l);
	case KEY_EXTENT_DATA:
		return add_extent(l);
	}
	return 0;
}

static int take_item(struct listing *l)
{
	int ret = 0;

	if (cursor_leaf(&l->cursor)->bytenr != l->leaf) {
		l->leaf = cursor_leaf(&l->cursor)->bytenr;
		l->leaf_checked = false;
		l->leaf_shared = false;
		l->stats->leaves++;
	}
	if (l->cursor.item.key.objectid != l->file.inode) {
		ret = finish_file(l);
		if (ret)
			return ret;
		ret = begin_file(l);
	}
	if (!ret && l->file.regular)
		ret = take_fact(l);
	return ret ? give_up(l, ret, &l->err) : 0;
}

/* A cursor_lost_fn. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	struct listing *l = ctx;
	struct btrkit_key first, end;
	int r = 0;

	/* A file whose items end before the block is complete. */
	if (!l->one_inode && l->sink->problem &&
	    (cursor_lost_keys(&l->cursor, &first, &end) || first.objectid != l->file.inode)) {
		r = finish_file(l);
		l->file = (struct current_file){ 0 };
	}
	return r ? r : give_up(l, ret, what);
}

/* Lists the items of one inode, or of the whole tree if @inode is 0. */
static int list_items(struct listing *l, uint64_t inode)
{
	struct btrkit_key key = KEY(inode, inode ? KEY_INODE_ITEM : 0, 0);
	bool first = true;
	int ret;

	if (inode)
		l->cursor.until = KEY(inode, KEY_EXTENT_DATA, UINT64_MAX);

	while (!(ret = cursor_next_around(&l->cursor, &key, first, lose_block, l, &l->err))) {
		first = false;
		if (inode && l->cursor.item.key.objectid != inode)
			break;
		ret = take_item(l);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : finish_file(l);
}

static void add_counts(struct btrkit_fiemap_stats *stats, const struct share_ctx *s)
{
	stats->extent_leaves += s->extents.leaves + s->blocks.leaves;
	stats->checked += s->counts.checked;
	stats->saved_by_leaf += s->counts.saved_by_leaf;
	stats->saved_by_batch += s->counts.saved_by_batch;
	stats->blocks_checked += s->counts.blocks_checked;
	stats->saved_by_path += s->counts.saved_by_path;
	stats->spread_checked += s->counts.spread_checked;
	stats->saved_by_repeat += s->counts.saved_by_repeat;
}

static int list_subvolume(struct btrkit_fs *fs, const struct subvolume *s, uint64_t inode,
			  const struct btrkit_fiemap_sink *sink, struct btrkit_fiemap_stats *stats,
			  struct btrkit_error *err)
{
	struct btrkit_fiemap_stats unread = { 0 };
	struct listing *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return err_nomem(err);
	l->fs = fs;
	l->sink = sink;
	l->stats = stats ? stats : &unread;
	l->one_inode = inode != 0;
	cursor_init(&l->cursor, fs, &s->root);
	l->cursor.scan = true;
	ret = share_init(&l->share, fs, &s->root, s->item.last_snapshot, &l->err);
	/* A listing of all files reads one subvolume after the other, which share leaves. */
	l->cursor.once = l->one_inode;
	if (!ret && sink->owners)
		ret = references_init(&l->refs, fs, &l->err);
	if (!ret)
		ret = path_namer_create(fs, &s->root, &l->namer, &l->err);
	if (!ret)
		ret = list_items(l, inode);
	add_counts(l->stats, &l->share);
	path_namer_destroy(l->namer);
	share_release(&l->share);
	if (l->refs.fs)
		references_release(&l->refs);
	cursor_release(&l->cursor);
	err_pass(err, &l->err, ret);
	free(l);
	return ret;
}

static int must_be_regular(struct btrkit_fs *fs, const struct inode_place *place, const char *path,
			   struct btrkit_error *err)
{
	struct inode_item inode;
	struct cursor c;
	int ret;

	cursor_init(&c, fs, &place->root);
	ret = inode_read(&c, place->inode, &inode, err);
	cursor_release(&c);
	if (!ret && !S_ISREG(inode.mode))
		return err_set(err, BTRKIT_INVALID, "not a regular file: %s", path);
	return ret;
}

int btrkit_fiemap_path(struct btrkit_fs *fs, uint64_t root, const char *path, const struct btrkit_fiemap_sink *sink,
		       struct btrkit_fiemap_stats *stats, struct btrkit_error *err)
{
	struct inode_place place;
	struct subvolume s;
	int ret;

	ret = fs_check_committed(fs, err);
	if (!ret)
		ret = subvolume_get(fs, root, &s, err);
	if (!ret)
		ret = path_resolve(fs, &s.root, path, true, &place, err);
	if (!ret)
		ret = must_be_regular(fs, &place, path, err);
	if (!ret && place.root.id != root)
		ret = subvolume_get(fs, place.root.id, &s, err);
	return ret ? ret : list_subvolume(fs, &s, place.inode, sink, stats, err);
}

struct all {
	const struct btrkit_fiemap_sink *sink;
	struct btrkit_error *err;
};

/* A cursor_lost_fn, for subvolumes. */
static int lose_subvolumes(void *ctx, int ret, const struct btrkit_error *what)
{
	const struct btrkit_fiemap_file none = { .path = "" };
	const struct all *a = ctx;

	if (!a->sink->problem)
		return err_pass(a->err, what, ret);
	ret = a->sink->problem(a->sink->ctx, &none, what);
	return ret ? err_system(a->err, ret, STOPPED) : 0;
}

int btrkit_fiemap_all(struct btrkit_fs *fs, const struct btrkit_fiemap_sink *sink, struct btrkit_fiemap_stats *stats,
		      struct btrkit_error *err)
{
	struct all a = { sink, err };
	struct subvolume s;
	uint64_t last = 0;
	int ret;

	ret = fs_check_committed(fs, err);
	if (ret)
		return ret;
	while (!(ret = subvolume_next_around(fs, last, &s, lose_subvolumes, &a, err))) {
		ret = list_subvolume(fs, &s, 0, sink, stats, err);
		if (ret)
			return ret;
		last = s.root.id;
	}
	return ret < 0 ? ret : 0;
}
