// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks everything that was requested, directory by directory, without recursion. */
#include "lib/extract/extract.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/dir.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"
#include "lib/fs/subvolume.h"
#include "lib/io/buffer.h"

/* Appends a name to the path. */
static int push_name(struct extract *x, const char *name, size_t len)
{
	const size_t need = x->path_len + 1 + len + 1;

	if (need > x->path_room) {
		const size_t room = need + x->path_room;
		char *more = realloc(x->path, room);

		if (!more)
			return err_nomem(x->err);
		x->path = more;
		x->path_room = room;
	}
	if (x->path_len)
		x->path[x->path_len++] = '/';
	memcpy(x->path + x->path_len, name, len);
	x->path_len += len;
	x->path[x->path_len] = '\0';
	return 0;
}

static void pop_name(struct extract *x, size_t len)
{
	x->path_len = len;
	x->path[len] = '\0';
}

static int push_frame(struct extract *x, const struct extract_item *item)
{
	if (x->num_frames == x->room_frames) {
		const size_t room = x->room_frames ? 2 * x->room_frames : 32;
		struct extract_frame *more = reallocarray(x->frames, room, sizeof(*more));

		if (!more)
			return err_nomem(x->err);
		x->frames = more;
		x->room_frames = room;
	}
	x->frames[x->num_frames++] = (struct extract_frame){ .root = item->i.root,
							     .inode = item->i.inode,
							     .xattrs_lost = item->xattrs_lost,
							     .inode_lost = item->inode_lost,
							     .path_len = x->path_len,
							     .name_at = (size_t)(item->name - x->path) };
	return 0;
}

/* Loads the inode at x->path. @told: see extract_load_xattrs(). @return 0; 1: failed and reported; <0 */
static int load_item(struct extract *x, uint64_t root, uint64_t inode, size_t name_at, bool told,
		     struct extract_item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret;

	*item = (struct extract_item){ .path = x->path, .name = x->path + name_at };
	ret = btrkit_inode_get(x->fs, root, inode, &item->i, &what);
	if (ret) {
		item->inode_lost = ret != -ENOENT;
		ret = extract_problem(x, x->path, ret, &what);
		return ret ? ret : 1;
	}
	/* The value is invalid, and could be one with a special meaning for Linux. */
	if (item->i.atime.nsec > 999999999)
		item->i.atime.nsec = 0;
	if (item->i.mtime.nsec > 999999999)
		item->i.mtime.nsec = 0;
	ret = extract_load_xattrs(x, x->path, root, inode, told);
	if (ret < 0)
		return ret;
	item->xattrs_lost = ret;
	item->xattrs = x->xattrs;
	item->num_xattrs = x->num_xattrs;
	return 0;
}

/* In a snapshot, create the empty directory that Linux shows in place of a nested subvolume. */
static int make_empty(struct extract *x, uint64_t root, uint64_t dir, size_t name_at)
{
	struct extract_item item;
	int ret = load_item(x, root, dir, name_at, false, &item);

	if (ret)
		return ret < 0 ? ret : 0;
	item.i.mode = S_IFDIR | 0755;
	item.i.flags = 0;
	item.num_xattrs = 0;
	ret = x->target->enter(x, &item);
	if (ret)
		return ret < 0 ? ret : 0;
	return x->target->leave(x, &item);
}

static int enter(struct extract *x, const struct extract_item *item)
{
	int ret = x->target->enter(x, item);

	if (ret)
		return ret < 0 ? ret : 0;
	return push_frame(x, item);
}

/* Stands in for the lost inode of a directory, with the attributes that a directory is created with. */
static void replace_inode(struct extract *x, uint64_t root, uint64_t inode, size_t name_at, struct extract_item *item)
{
	*item = (struct extract_item){ .path = x->path,
				       .name = x->path + name_at,
				       .i = { .root = root, .inode = inode, .mode = S_IFDIR | 0700, .nlink = 1 },
				       .inode_lost = true };
}

static int leave(struct extract *x)
{
	struct extract_frame *f = &x->frames[x->num_frames - 1];
	struct extract_item item;
	int ret = 1;

	pop_name(x, f->path_len);
	/* What was readable before may not be any more. */
	if (!f->inode_lost)
		ret = load_item(x, f->root, f->inode, f->name_at, f->xattrs_lost, &item);
	if (ret == 1)
		replace_inode(x, f->root, f->inode, f->name_at, &item);
	if (ret >= 0)
		ret = x->target->leave(x, &item);
	dir_lost_release(&f->lost);
	x->num_frames--;
	return ret;
}

static int load_target(struct extract *x, struct extract_item *item, char **ret)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char *text = NULL;
	size_t len = 0;
	int r = file_link_target(x->fs, &item->i, &text, &len, &what);

	if (!r && (!len || strlen(text) != len))
		r = err_corrupt(&what, NULL, "symbolic link has an invalid target");
	if (!r) {
		*ret = text;
		item->target = text;
		return 0;
	}
	free(text);
	return extract_problem(x, item->path, r, &what);
}

static int make_other(struct extract *x, struct extract_item *item)
{
	char *target = NULL;
	int ret = extract_find_link(x, item);

	if (!ret && item->link) {
		/* The same path may be requested twice. */
		ret = strcmp(item->link, item->path) ? x->target->link(x, item) : 0;
		if (ret <= 0) {
			extract_end_link(x, item);
			return ret;
		}
		ret = extract_move_link(x, item);
		item->link = NULL;
	}
	if (!ret && S_ISLNK(item->i.mode)) {
		ret = load_target(x, item, &target);
		if (ret || !target)
			return ret;
	}
	if (!ret)
		ret = x->target->other(x, item);
	free(target);
	return ret;
}

/* Extracts what is at x->path. @dir is its parent directory and @e its entry; NULL: a requested path */
static int make(struct extract *x, uint64_t root, uint64_t inode, size_t name_at, const struct extract_frame *dir,
		const struct btrkit_dir_entry *e)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct extract_item item;
	int ret, told = 0;

	if (dir && inode == BTRKIT_EMPTY_SUBVOLUME)
		return make_empty(x, dir->root, dir->inode, name_at);
	ret = load_item(x, root, inode, name_at, false, &item);
	if (ret < 0 || (ret && !(dir && e->type == DT_DIR && item.inode_lost)))
		return ret < 0 ? ret : 0;
	/* The entry tells that it is a directory. Its entries have other keys, and thus mostly other leaves. */
	if (ret)
		replace_inode(x, root, inode, name_at, &item);
	if (!S_ISDIR(item.i.mode))
		return make_other(x, &item);
	if (dir) {
		ret = descent_enter(&x->descent, dir->root, dir->inode, e, &what);
		if (ret)
			told = extract_problem(x, x->path, ret < 0 ? ret : what.err, &what);
		if (ret < 0 || told)
			return told;
	}
	return enter(x, &item);
}

/*
 * Finds the next entry of the current directory. @e->name must be copied to the path. @return 0; 1: no more entries; <0
 */
static int next_entry(struct extract *x, struct extract_frame *f, struct btrkit_dir_entry *e, struct btrkit_error *what)
{
	int ret;

	if (f->at_end && (!f->lost.ranges.n || f->lost.done))
		return 1;
	if (x->c.root.id != f->root) {
		struct subvolume s;

		cursor_release(&x->c);
		ret = subvolume_get(x->fs, f->root, &s, what);
		cursor_init(&x->c, x->fs, ret ? &(struct tree_root){ 0 } : &s.root);
		if (ret) {
			f->at_end = f->lost.done = true;
			return ret;
		}
	}
	ret = f->at_end ? 1 : dir_entry_from(&x->c, f->inode, f->next, e, what);
	if (ret == 1) {
		f->at_end = true;
		return dir_lost_next(&x->c, f->inode, &f->lost, e, what);
	}
	if (ret < 0 && ret != -ENOMEM) {
		const int end = dir_entries_behind(&x->c, f->inode, f->next, &f->next, &f->lost, what);

		f->at_end = end;
		return end < 0 ? end : ret;
	}
	if (ret)
		return ret;
	f->lost.bytes += e->name_len;
	f->next = e->index + 1;
	f->at_end = !f->next;
	return 0;
}

static int step(struct extract *x)
{
	struct extract_frame *f = &x->frames[x->num_frames - 1];
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_dir_entry e;
	struct extract_frame dir;
	size_t name_at;
	int ret;

	pop_name(x, f->path_len);
	ret = next_entry(x, f, &e, &what);
	/* The entries before the damage were extracted, and those behind it will be. */
	if (ret < 0)
		return extract_problem(x, x->path, ret, &what);
	if (ret)
		return leave(x);
	if (!dir_name_possible(e.name, e.name_len)) {
		ret = err_corrupt(&what, "name", "directory entry has an invalid name");
		return extract_problem(x, x->path, ret, &what);
	}
	ret = push_name(x, e.name, e.name_len);
	if (ret)
		return ret;
	name_at = x->path_len - e.name_len;
	/* The cursor may move and frames may be reallocated, so copy what is needed. */
	e.name = x->path + name_at;
	dir = *f;
	return make(x, e.root, e.inode, name_at, &dir, &e);
}

/* Extracts a requested path, which is in x->path; its parent directories have been entered. */
static int run_path(struct extract *x, const struct btrkit_inode *i)
{
	const char *slash = strrchr(x->path, '/');
	int ret = descent_begin(&x->descent, x->fs, i->root, i->inode, x->err);

	if (!ret)
		ret = make(x, i->root, i->inode, slash ? (size_t)(slash + 1 - x->path) : 0, NULL, NULL);
	while (!ret && x->num_frames)
		ret = step(x);
	descent_end(&x->descent);
	return ret;
}

/* Gets the next component of a path. @return 0; 1: no more components */
static int next_part(const char **path, const char **part, size_t *len)
{
	for (;;) {
		*path += strspn(*path, "/");
		*part = *path;
		*len = strcspn(*path, "/");
		*path += *len;
		if (!*len)
			return 1;
		if (!(*len == 1 && **part == '.'))
			return 0;
	}
}

/*
 * Reduces a path to the names where it is written, separated by single slashes: ".." drops the name before it, so that
 * nothing is written above the target, and no directory for a name that the path leaves again. @ret: to be freed
 */
static int path_below(struct extract *x, const char *path, char **ret)
{
	char *below = malloc(strlen(path) + 1);
	const char *part;
	size_t n = 0, len;

	if (!below)
		return err_nomem(x->err);
	while (!next_part(&path, &part, &len)) {
		if (len == 2 && !memcmp(part, "..", 2)) {
			while (n && below[--n] != '/')
				;
			continue;
		}
		if (n)
			below[n++] = '/';
		memcpy(below + n, part, len);
		n += len;
	}
	below[n] = '\0';
	*ret = below;
	return 0;
}

/* Extracts inode @i to @path, which path_below() has returned. */
static int put_path(struct extract *x, const struct btrkit_inode *i, const char *path)
{
	const char *part, *last = NULL;
	size_t len, last_len = 0;
	unsigned above = 0;
	int ret = 0;

	pop_name(x, 0);
	while (!ret && !next_part(&path, &part, &len)) {
		if (last) {
			ret = push_name(x, last, last_len);
			if (!ret)
				ret = x->target->above(x, x->path + x->path_len - last_len);
			above += !ret;
		}
		last = part;
		last_len = len;
	}
	if (!ret && last)
		ret = push_name(x, last, last_len);
	if (!ret)
		ret = run_path(x, i);
	/* A parent directory could not be created, which was reported. */
	ret = ret == 1 ? 0 : ret;
	while (!ret && above--)
		ret = x->target->above_end(x);
	return ret;
}

static int take_path(struct extract *x, uint64_t root, const char *path)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_inode i;
	char *below = NULL;
	int ret = btrkit_inode_find(x->fs, root, path, &i, &what);

	if (ret)
		return extract_problem(x, path, ret, &what);
	ret = path_below(x, path, &below);
	if (ret)
		return ret;
	ret = put_path(x, &i, below);
	free(below);
	return ret;
}

int extract_run(struct extract *x, uint64_t root, const char *const *paths, size_t n)
{
	static const struct btrkit_extract_options defaults = BTRKIT_EXTRACT_OPTIONS_INIT;
	static const char *const top[] = { "" };
	struct btrkit_extract_result none = { 0 };
	struct btrkit_inode i;
	int ret;

	if (!x->opts)
		x->opts = &defaults;
	if (!x->result)
		x->result = &none;
	if (x->opts->flags & ~(unsigned)(BTRKIT_EXTRACT_OWNERS | BTRKIT_EXTRACT_INODE_FLAGS))
		return err_set(x->err, BTRKIT_INVALID, "unknown flag");
	x->buf = io_buffer(EXTRACT_PIECE);
	x->path = malloc(x->path_room = 256);
	cursor_init(&x->c, x->fs, &(struct tree_root){ 0 });
	ret = x->buf && x->path ? btrkit_inode_find(x->fs, root, "", &i, x->err) : err_nomem(x->err);
	for (size_t k = 0; k < (n ? n : 1) && !ret; k++)
		ret = take_path(x, root, (n ? paths : top)[k]);
	cursor_release(&x->c);
	extract_drop_xattrs(x);
	free(x->xattrs);
	extract_free_links(x);
	while (x->num_frames)
		dir_lost_release(&x->frames[--x->num_frames].lost);
	free(x->frames);
	free(x->path);
	free(x->buf);
	return ret;
}
