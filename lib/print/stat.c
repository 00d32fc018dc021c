// SPDX-License-Identifier: LGPL-2.1-or-later

#include "lib/print/stat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <btrkit/fiemap.h>
#include <btrkit/inode.h>

#include "lib/base/err.h"
#include "lib/format/items/render.h"
#include "lib/print/files.h"
#include "lib/base/emit_list.h"

/* Statistics of a file's extents. Sizes are in bytes of the file, except on_disk. */
struct extents {
	uint64_t inlines, regular, holes, prealloc, compressed; /* items; compressed ones also in the others */
	uint64_t on_disk;	/* bytes of inline data, and of extents, counted once for each item */
	uint64_t shared;	/* bytes that others refer to as well */
	struct stat_job *s;
	const char *path;
	uint64_t root;		/* of the file */
	bool damaged;		/* extents are missing */
	int stopped;		/* what the caller returned to stop the work */
};

struct stat_job {
	struct btrkit_fs *fs;
	struct emit e;
	struct problems problems;
	bool first_attribute, begun;
};

static int count_extent(void *ctx, const struct btrkit_file_extent *x)
{
	struct extents *n = ctx;

	if (x->type == BTRKIT_FILE_EXTENT_INLINE)
		n->inlines++;
	else if (!x->bytenr)
		n->holes++;
	else if (x->type == BTRKIT_FILE_EXTENT_PREALLOC)
		n->prealloc++;
	else
		n->regular++;
	n->compressed += x->compression != 0;
	if (x->type == BTRKIT_FILE_EXTENT_INLINE || x->bytenr)
		n->on_disk += x->disk_length;
	return 0;
}

static int no_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	(void)file;
	return 0;
}

/* A btrkit_lost_fn. */
static int lose_extents(void *ctx, const struct btrkit_error *what)
{
	struct extents *n = ctx;

	n->damaged = true;
	n->stopped = problem_tell(&n->s->problems, n->path, what->err, what);
	return n->stopped;
}

/* What is damaged in the tree of the file has been told by lose_extents(). */
static int lose_shared(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	struct extents *n = ctx;

	(void)file;
	if (n->damaged && (what->places & BTRKIT_AT_TREE) && what->tree == n->root)
		return 0;
	n->stopped = problem_tell(&n->s->problems, n->path, what->err, what);
	return n->stopped;
}

static int count_shared(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct extents *x = ctx;

	for (size_t i = 0; i < n; i++)
		if (rows[i].flags & BTRKIT_EXTENT_SHARED)
			x->shared += rows[i].length;
	return 0;
}

/* Prints the time zone after a blank, like date +%z. */
static void emit_zone(struct emit *e, int64_t sec)
{
	const time_t time = (time_t)sec;
	char text[32];
	struct tm tm;

	if (!localtime_r(&time, &tm))
		return;
	text[strftime(text, sizeof(text), " %z", &tm)] = '\0';
	emit_text(e, text);
}

static void print_time(struct emit *e, const char *key, const char *words, const struct btrkit_time *t)
{
	if (e->form == EMIT_JSON) {
		time_member_emit(e, key, t);
		return;
	}
	emit_text(e, words);
	render_local_time(e, (uint64_t)t->sec);
	emit_textf(e, ".%09u", t->nsec);
	emit_zone(e, t->sec);
	emit_text(e, "\n");
}

static void print_head_text(struct emit *e, const char *path, const struct btrkit_inode *i, const char *target,
			    size_t target_len)
{
	char mode[MODE_TEXT];

	mode_text(i->mode, mode);
	emit_name_escaped(e, NULL, "  File: ", *path ? path : "/", *path ? strlen(path) : 1, false);
	if (target)
		emit_name_escaped(e, NULL, " -> ", target, target_len, false);
	emit_str(e, NULL, "\n  Type: ", type_text(i->mode));
	if (S_ISCHR(i->mode) || S_ISBLK(i->mode)) {
		emit_u64(e, NULL, " ", major(i->rdev));
		emit_u64(e, NULL, ", ", minor(i->rdev));
	}
	emit_u64(e, NULL, "\n  Size: ", i->size);
	emit_u64(e, NULL, "  Bytes: ", i->nbytes);
	emit_u64(e, NULL, "  Links: ", i->nlink);
	emit_u64(e, NULL, "\n Inode: ", i->inode);
	emit_u64(e, NULL, "  Subvolume: ", i->root);
	emit_textf(e, "\nAccess: (%04o/%s)  Uid: %u  Gid: %u\n", i->mode & 07777, mode, i->uid, i->gid);
}

static void print_inode(struct stat_job *s, const char *path, const struct btrkit_inode *i, const char *target,
			size_t target_len)
{
	struct emit *e = &s->e;

	if (e->form == EMIT_JSON) {
		emit_object(e, NULL);
		emit_name(e, "path", "", path, strlen(path));
		emit_u64(e, "root", "", i->root);
		emit_u64(e, "inode", "", i->inode);
		inode_members_emit(e, i);
		if (target)
			emit_name(e, "target", "", target, target_len);
		emit_u64(e, "nbytes", "", i->nbytes);
	} else {
		print_head_text(e, path, i, target, target_len);
	}
	print_time(e, "atime", "Access: ", &i->atime);
	print_time(e, "mtime", "Modify: ", &i->mtime);
	print_time(e, "ctime", "Change: ", &i->ctime);
	print_time(e, "otime", " Birth: ", &i->otime);
	emit_u64(e, "generation", "Generation: ", i->generation);
	emit_u64(e, "transid", "  Transid: ", i->transid);
	emit_u64(e, "sequence", "  Sequence: ", i->sequence);
	emit_text(e, "\n");
	inode_flags_emit(e, "flags", "Flags: ", i->flags);
}

static int print_attribute(void *ctx, const struct btrkit_xattr *x)
{
	struct stat_job *s = ctx;
	struct emit *e = &s->e;

	if (e->form == EMIT_JSON) {
		if (s->first_attribute)
			emit_array(e, "xattrs");
		s->first_attribute = false;
		emit_object(e, NULL);
		emit_name(e, "name", "", x->name, x->name_len);
		emit_hex(e, "value", "", x->value, x->value_len);
		emit_object_end(e);
		return emit_failed(e);
	}
	emit_name_escaped(e, NULL, "Attribute: ", x->name, x->name_len, false);
	emit_name_escaped(e, NULL, " = ", x->value, x->value_len, false);
	emit_text(e, "\n");
	return emit_failed(e);
}

static int print_attributes(struct stat_job *s, const char *path, const struct btrkit_inode *i)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret;

	s->first_attribute = true;
	ret = btrkit_inode_xattrs(s->fs, i->root, i->inode, print_attribute, s, &what);
	if (!s->first_attribute && s->e.form == EMIT_JSON)
		emit_array_end(&s->e);
	if (!ret || emit_failed(&s->e))
		return ret;
	return problem_tell(&s->problems, path, ret, &what);
}

static int print_extents(struct stat_job *s, const char *path, uint64_t root, const struct btrkit_inode *i)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct extents n = { .s = s, .path = path, .root = i->root };
	const struct btrkit_fiemap_sink counting = {
		.file = no_file, .extents = count_shared, .ctx = &n, .problem = lose_shared
	};
	struct emit *e = &s->e;
	int ret, shared;

	ret = btrkit_inode_extents_around(s->fs, i->root, i->inode, count_extent, lose_extents, &n, &what);

	if (ret)
		return n.stopped ? n.stopped : problem_tell(&s->problems, path, ret, &what);
	emit_object(e, "extents");
	emit_u64(e, "inline", "Extents: inline ", n.inlines);
	emit_u64(e, "regular", ", regular ", n.regular);
	emit_u64(e, "holes", ", holes ", n.holes);
	emit_u64(e, "prealloc", ", prealloc ", n.prealloc);
	emit_u64(e, "compressed", "; compressed ", n.compressed);
	emit_u64(e, "disk_bytes", "; bytes on disk ", n.on_disk);
	shared = btrkit_fiemap_path(s->fs, root, path, &counting, NULL, &what);
	if (!shared)
		emit_u64(e, "shared_bytes", ", shared ", n.shared);
	emit_text(e, "\n");
	emit_object_end(e);
	if (!shared || n.stopped)
		return n.stopped;
	return problem_tell(&s->problems, path, shared, &what);
}

static int print_file(struct stat_job *s, uint64_t root, const char *path)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	size_t target_len = 0;
	char *target = NULL, *tidy = NULL;
	struct btrkit_inode i;
	int ret = btrkit_inode_find(s->fs, root, path, &i, &what);

	if (ret)
		return problem_tell(&s->problems, path, ret, &what);
	if (S_ISLNK(i.mode)) {
		ret = link_target(s->fs, &i, &target, &target_len, &what);
		if (ret)
			ret = problem_tell(&s->problems, path, ret, &what);
	}
	if (!ret && s->e.form == EMIT_JSON) {
		tidy = path_tidy(path);
		if (!tidy)
			ret = err_nomem(s->problems.err);
	}
	if (!ret) {
		emit_text(&s->e, s->begun ? "\n" : "");
		s->begun = true;
		print_inode(s, tidy ? tidy : path, &i, target, target_len);
		ret = print_attributes(s, path, &i);
		if (!ret && S_ISREG(i.mode))
			ret = print_extents(s, path, root, &i);
		emit_object_end(&s->e);
	}
	free(tidy);
	free(target);
	return ret ? ret : emit_failed(&s->e);
}

int print_stat(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		      const struct print_stat_options *opts, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err)
{
	static const struct print_stat_options defaults = PRINT_STAT_OPTIONS_INIT;
	struct stat_job s = { .fs = fs };
	struct btrkit_inode top;
	int ret;

	if (!opts)
		opts = &defaults;
	s.problems = (struct problems){ opts->problem, opts->problem_ctx, err };
	if (opts->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", opts->flags);
	ret = list_begin(&s.e, opts->format, "stat", write, ctx, err);
	if (ret)
		return ret;
	ret = btrkit_inode_find(fs, root, "", &top, err);
	for (size_t i = 0; i < n && !ret; i++)
		ret = print_file(&s, root, paths[i]);
	return list_end(&s.e, ret);
}
