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
#include "lib/base/text.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/fs/inode.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"
#include "lib/backref/share.h"
#include "lib/report/extent_owners.h"
#include "lib/report/unknown_refs.h"

#define ROWS_MAX 1024
#define STOPPED "stopped by the caller"

/* The file whose items are being read. */
struct current_file {
	uint64_t inode;
	bool regular;
	bool announced; /* it was passed to the sink */
	uint64_t size;
	uint64_t unknown[UNKNOWN_FACTS]; /* extents of which it is not known */
	bool named;
	uint64_t parent; /* from its first name */
	size_t name_len;
	uint8_t name[NAME_LEN_MAX];
};

struct listing {
	struct btrkit_fs *fs;
	const struct btrkit_fiemap_sink *sink;
	struct btrkit_fiemap_stats *stats;
	struct unknown_refs *unknown;
	struct btrkit_error err; /* of the caller or, if the listing continues, of the next problem */
	bool stopped;		 /* by the caller */
	struct cursor cursor;
	struct path_namer *namer;
	struct share_ctx share;
	bool one_inode;
	uint64_t leaf; /* the leaf that leaf_checked and leaf_shared are about */
	bool leaf_checked, leaf_shared;
	int leaf_ret;			 /* why that is not known of the leaf; 0: it is */
	int share_ret;			 /* why it is known of nothing in the subvolume; 0: it is */
	struct btrkit_error leaf_why, share_why;
	struct current_file file;
	struct btrkit_error why[UNKNOWN_FACTS]; /* of the first extent that file.unknown counts */
	struct btrkit_extent rows[ROWS_MAX];
	size_t num_rows;
	struct extent_owners owners; /* if the sink wants them */
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

/* Whether the listing goes on after a failure. */
static bool may_go_on(const struct listing *l, int ret)
{
	return l->sink->problem && !l->stopped && ret != -ENOMEM;
}

/* Reports a problem of the current file. @return 0: continue; <0 */
static int tell(struct listing *l, const struct btrkit_error *what)
{
	struct btrkit_fiemap_file file;
	int ret;

	/* Without a path if that is what cannot be read. */
	(void)describe(l, &file, NULL);
	ret = sink_result(l, l->sink->problem(l->sink->ctx, &file, what));
	if (!ret)
		l->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret;
}

/* Reports why the listing of the current file ends here, and skips the rest of it. @return 0: continue; <0 */
static int give_up(struct listing *l, int ret, const struct btrkit_error *what)
{
	if (l->one_inode || !may_go_on(l, ret))
		return err_pass(&l->err, what, ret);
	ret = tell(l, what);
	l->num_rows = 0;
	l->file.regular = false;
	return ret;
}

static int announce(struct listing *l)
{
	struct btrkit_fiemap_file file;
	int ret = describe(l, &file, &l->err);

	/* The rows are known without the path. */
	if (ret && may_go_on(l, ret)) {
		text_add(l->err.message, sizeof(l->err.message), "; the path of inode %" PRIu64 " is not known",
			 l->file.inode);
		ret = tell(l, &l->err);
	}
	if (!ret)
		ret = sink_result(l, l->sink->file(l->sink->ctx, &file));
	l->file.announced = true;
	l->stats->files++;
	return ret;
}

static void count_unknown(struct listing *l, enum unknown_fact fact, const struct btrkit_error *why)
{
	if (!l->file.unknown[fact]++)
		l->why[fact] = *why;
}

static int tell_owners(struct listing *l)
{
	struct extent_owners *o = &l->owners;
	int ret = 0;

	o->refs.n = 0;
	if (l->full_stripe_extent)
		ret = extent_owners_load(o, l->full_stripe_extent, &l->err);
	if (ret > 0)
		count_unknown(l, UNKNOWN_OWNERS, &o->what);
	return ret < 0 ? ret : sink_result(l, l->sink->owners(l->sink->ctx, o->refs.at, o->refs.n));
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

/* Reports what is not known of some extents of the file. */
static int add_unknown(struct listing *l)
{
	int ret = 0;

	for (unsigned fact = 0; !ret && fact < UNKNOWN_FACTS; fact++) {
		const uint64_t n = l->file.unknown[fact];
		struct btrkit_fiemap_file file;

		if (!n)
			continue;
		l->file.unknown[fact] = 0;
		/* Without a path if that is what cannot be read. */
		(void)describe(l, &file, NULL);
		ret = unknown_refs_add(l->unknown, (enum unknown_fact)fact, &file, n, &l->why[fact], &l->err);
		l->stopped |= l->unknown->stopped;
	}
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
	if (!ret)
		ret = add_unknown(l);
	return ret ? give_up(l, ret, &l->err) : 0;
}

/* It is not known whether an extent is shared: the row says so. @return 0; @ret */
static int maybe_shared(struct listing *l, int ret, const struct btrkit_error *why, uint32_t *flags)
{
	if (!may_go_on(l, ret))
		return err_pass(&l->err, why, ret);
	count_unknown(l, UNKNOWN_SHARED, why);
	*flags |= BTRKIT_EXTENT_MAYBE_SHARED;
	return 0;
}

static int is_shared(struct listing *l, const struct file_extent *fe, uint32_t *flags)
{
	bool shared = false;
	int ret;

	if (l->share_ret)
		return maybe_shared(l, l->share_ret, &l->share_why, flags);
	if (!l->leaf_checked) {
		l->leaf_ret = share_enter_leaf(&l->share, &l->cursor, l->one_inode, &l->leaf_shared, &l->err);
		l->leaf_checked = true;
		if (l->leaf_ret)
			l->leaf_why = l->err;
	}
	if (l->leaf_ret)
		return maybe_shared(l, l->leaf_ret, &l->leaf_why, flags);
	ret = share_extent_shared(&l->share, &l->cursor, fe, l->leaf_shared, &shared, &l->err);
	if (ret)
		return maybe_shared(l, ret, &l->err, flags);
	if (shared)
		*flags |= BTRKIT_EXTENT_SHARED;
	return 0;
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
		row.length = l->fs->geometry.sectorsize;
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

/* Whether the items from @first to before @end may have extents of the current file. */
static bool loses_extents(const struct listing *l, const struct btrkit_key *first, const struct btrkit_key *end)
{
	return l->file.regular && first->objectid == l->file.inode && first->type <= KEY_EXTENT_DATA &&
	       key_cmp(end, &KEY(l->file.inode, KEY_EXTENT_DATA, 0)) > 0;
}

/*
 * Extents of the current file are in a lost block, whose items are from @first to before @end: passes on the rows
 * before them, and then which bytes they are about, which is added to @what.
 */
static int lose_extents(struct listing *l, const struct btrkit_key *first, const struct btrkit_key *end,
			struct btrkit_error *what)
{
	const uint64_t start = first->type == KEY_EXTENT_DATA ? first->offset : 0;
	const bool more = end->objectid == l->file.inode && end->type == KEY_EXTENT_DATA;
	uint64_t stop = more ? end->offset : l->file.size;
	struct btrkit_fiemap_file file;
	int ret = hand_out(l, 0);

	/* None of them is the last one of the file, so none gets the flag for that. */
	if (ret)
		return give_up(l, ret, &l->err);
	/* What is preallocated behind the end of the file has no end that is known. */
	if (stop <= start)
		return 0;
	text_add(what->message, sizeof(what->message), "; extents of bytes %" PRIu64 " to %" PRIu64 " are missing",
		 start, stop - 1);
	(void)describe(l, &file, NULL);
	return l->sink->lost ? sink_result(l, l->sink->lost(l->sink->ctx, &file, start, stop - start)) : 0;
}

/* Adds to @what which other inodes may have been in a lost block. */
static void add_inodes(const struct listing *l, const struct btrkit_key *first, const struct btrkit_key *end,
		       struct btrkit_error *what)
{
	const uint64_t next = first->objectid + (first->objectid == l->file.inode);
	const uint64_t from = next < OID_FIRST_FREE ? OID_FIRST_FREE : next;
	const uint64_t last = end->type > KEY_INODE_ITEM ? end->objectid : end->objectid - 1;

	if (!end->objectid || from > last || from > OID_LAST_FREE)
		return;
	if (last > OID_LAST_FREE)
		text_add(what->message, sizeof(what->message), "; inodes from %" PRIu64 " on are missing", from);
	else if (last == from)
		text_add(what->message, sizeof(what->message), "; inode %" PRIu64 " is missing", from);
	else
		text_add(what->message, sizeof(what->message), "; inodes %" PRIu64 " to %" PRIu64 " are missing",
			 from, last);
}

/* A cursor_lost_fn. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	struct btrkit_error told = *what;
	struct listing *l = ctx;
	struct btrkit_key first, end;
	bool extents;
	int r = 0;

	if (!may_go_on(l, ret) || cursor_lost_keys(&l->cursor, &first, &end))
		return give_up(l, ret, what);
	extents = loses_extents(l, &first, &end);
	if (extents) {
		r = lose_extents(l, &first, &end, &told);
	} else if (first.objectid != l->file.inode || first.type > KEY_EXTENT_DATA) {
		/* The file is complete. */
		if (l->one_inode)
			return 0;
		r = finish_file(l);
		l->file = (struct current_file){ 0 };
	}
	if (r)
		return r;
	if (!l->one_inode)
		add_inodes(l, &first, &end, &told);
	return tell(l, &told);
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
			  struct unknown_refs *unknown, struct btrkit_fiemap_stats *stats,
			  struct btrkit_error *err)
{
	const struct btrkit_fiemap_sink *sink = unknown->sink;
	struct btrkit_fiemap_stats unread = { 0 };
	struct listing *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return err_nomem(err);
	l->fs = fs;
	l->sink = sink;
	l->unknown = unknown;
	l->stats = stats ? stats : &unread;
	l->one_inode = inode != 0;
	cursor_init(&l->cursor, fs, &s->root);
	l->cursor.scan = true;
	ret = share_init(&l->share, fs, &s->root, s->item.last_snapshot, &l->err);
	/* A listing of all files reads one subvolume after the other, which share leaves. */
	l->cursor.once = l->one_inode;
	if (ret && may_go_on(l, ret)) {
		l->share_ret = ret;
		l->share_why = l->err;
		ret = 0;
	}
	if (!ret && sink->owners)
		ret = extent_owners_init(&l->owners, fs, sink->problem != NULL, &l->err);
	if (!ret)
		ret = path_namer_create(fs, &s->root, &l->namer, &l->err);
	if (!ret && sink->problem)
		path_namer_go_around(l->namer);
	if (!ret)
		ret = list_items(l, inode);
	add_counts(l->stats, &l->share);
	path_namer_destroy(l->namer);
	share_release(&l->share);
	extent_owners_release(&l->owners);
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
	struct unknown_refs unknown = { .sink = sink };
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
	if (!ret)
		ret = list_subvolume(fs, &s, place.inode, &unknown, stats, err);
	return unknown_refs_end(&unknown, ret, err);
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
	struct unknown_refs unknown = { .sink = sink };
	struct all a = { sink, err };
	struct subvolume s;
	uint64_t last = 0;
	int ret;

	ret = fs_check_committed(fs, err);
	if (ret)
		return ret;
	while (!(ret = subvolume_next_around(fs, last, &s, lose_subvolumes, &a, err))) {
		ret = list_subvolume(fs, &s, 0, &unknown, stats, err);
		if (ret)
			break;
		last = s.root.id;
	}
	return unknown_refs_end(&unknown, ret < 0 ? ret : 0, err);
}
