// SPDX-License-Identifier: LGPL-2.1-or-later

#include "lib/print/ls.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <btrkit/file.h>
#include <btrkit/inode.h>

#include "lib/base/err.h"
#include "lib/format/items/render.h"
#include "lib/print/files.h"
#include "lib/base/emit_list.h"

/* A directory entry, or a path given by the caller. */
struct entry {
	char *name;
	size_t len;
	uint64_t root, inode, index;
	uint8_t type;	/* DT_* */
	bool is_known;	/* the inode was read */
	struct btrkit_inode i;
	char *target;	/* target of a symbolic link, or NULL */
	size_t target_len;
};

struct entries {
	struct entry *at;
	size_t n, room;
};

/* A directory to list. */
struct folder {
	char *path;
	uint64_t root, inode;
	struct folder *next;
};

struct ls {
	struct btrkit_fs *fs;
	const struct print_ls_options *opts;
	struct emit e;
	struct problems problems;
	struct folder *pending;	/* directories to list, the next one first */
	bool headings;		/* print the path of each directory before its entries */
	bool begun;		/* something was printed */
};

static void free_entries(struct entries *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->at[i].name);
		free(l->at[i].target);
	}
	free(l->at);
	*l = (struct entries){ 0 };
}

static int add_entry(struct entries *l, const struct btrkit_dir_entry *e, struct btrkit_error *err)
{
	struct entry *to;

	if (l->n == l->room) {
		const size_t room = l->room ? 2 * l->room : 64;
		struct entry *more = reallocarray(l->at, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		l->at = more;
		l->room = room;
	}
	to = &l->at[l->n];
	*to = (struct entry){ .len = e->name_len, .root = e->root, .inode = e->inode, .index = e->index,
			      .type = e->type };
	to->name = malloc(e->name_len + 1);
	if (!to->name)
		return err_nomem(err);
	memcpy(to->name, e->name, e->name_len);
	to->name[e->name_len] = '\0';
	l->n++;
	return 0;
}

/* Joins @dir and @name with a slash. The caller frees the result. */
static char *join(const char *dir, const char *name, size_t len)
{
	const size_t n = strlen(dir);
	char *path = malloc(n + 1 + len + 1), *to = path;

	if (!path)
		return NULL;
	memcpy(to, dir, n);
	to += n;
	if (n && dir[n - 1] != '/')
		*to++ = '/';
	memcpy(to, name, len);
	to[len] = '\0';
	return path;
}

/* Reads the inode of an entry in @dir (NULL: of a path given by the caller). */
static int load(struct ls *ls, const char *dir, struct entry *x)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char *path;
	int ret;

	if (x->inode == BTRKIT_EMPTY_SUBVOLUME)
		return 0;
	ret = btrkit_inode_get(ls->fs, x->root, x->inode, &x->i, &what);
	x->is_known = !ret;
	if (!ret && S_ISLNK(x->i.mode))
		ret = link_target(ls->fs, &x->i, &x->target, &x->target_len, &what);
	if (!ret)
		return 0;
	path = dir ? join(dir, x->name, x->len) : strdup(x->name);
	if (!path)
		return err_nomem(ls->problems.err);
	ret = problem_tell(&ls->problems, path, ret, &what);
	free(path);
	return ret;
}

static int compare_names(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static unsigned digits(uint64_t v)
{
	unsigned n = 1;

	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}

/* Column widths, by the widest number in each. */
struct widths {
	unsigned inode, nlink, uid, gid, size, minor;
};

static bool is_device(const struct entry *x)
{
	return x->is_known && (S_ISCHR(x->i.mode) || S_ISBLK(x->i.mode));
}

static void widen(unsigned *width, uint64_t v)
{
	const unsigned n = digits(v);

	if (n > *width)
		*width = n;
}

static struct widths measure(const struct entries *l)
{
	struct widths w = { 1, 1, 1, 1, 1, 0 };
	unsigned major_width = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct entry *x = &l->at[i];

		widen(&w.inode, x->inode);
		if (!x->is_known)
			continue;
		widen(&w.nlink, x->i.nlink);
		widen(&w.uid, x->i.uid);
		widen(&w.gid, x->i.gid);
		if (is_device(x)) {
			widen(&w.minor, minor(x->i.rdev));
			widen(&major_width, major(x->i.rdev));
		} else {
			widen(&w.size, x->i.size);
		}
	}
	if (w.minor && w.size < major_width + 2 + w.minor)
		w.size = major_width + 2 + w.minor;
	return w;
}

static void print_long(struct emit *e, const struct entry *x, const struct widths *w)
{
	char mode[MODE_TEXT];

	if (!x->is_known) {
		/* An empty subvolume directory without an inode, or an unreadable inode. */
		emit_text(e, x->inode == BTRKIT_EMPTY_SUBVOLUME ? "drwxr-xr-x" : "??????????");
		emit_textf(e, " %*s %*s %*s %*s %19s ", (int)w->nlink, "?", (int)w->uid, "?", (int)w->gid, "?",
			   (int)w->size, "?", "?");
		return;
	}
	mode_text(x->i.mode, mode);
	emit_str(e, NULL, "", mode);
	emit_u64_wide(e, NULL, " ", x->i.nlink, w->nlink);
	emit_u64_wide(e, NULL, " ", x->i.uid, w->uid);
	emit_u64_wide(e, NULL, " ", x->i.gid, w->gid);
	if (is_device(x)) {
		emit_u64_wide(e, NULL, " ", major(x->i.rdev), w->size - 2 - w->minor);
		emit_u64_wide(e, NULL, ", ", minor(x->i.rdev), w->minor);
	} else {
		emit_u64_wide(e, NULL, " ", x->i.size, w->size);
	}
	emit_text(e, " ");
	render_local_time(e, (uint64_t)x->i.mtime.sec);
	emit_text(e, " ");
}

static void print_text(struct ls *ls, const struct entry *x, const struct widths *w)
{
	struct emit *e = &ls->e;

	if (ls->opts->flags & PRINT_LS_INODE) {
		emit_u64_wide(e, NULL, "", x->inode, w->inode);
		emit_text(e, " ");
	}
	if (ls->opts->flags & PRINT_LS_LONG)
		print_long(e, x, w);
	emit_name_escaped(e, NULL, "", x->name, x->len, false);
	if (x->target)
		emit_name_escaped(e, NULL, " -> ", x->target, x->target_len, false);
	emit_text(e, "\n");
}

static int print_json(struct ls *ls, const char *dir, const struct entry *x)
{
	struct emit *e = &ls->e;
	char *path = join(dir ? dir : "", x->name, x->len);

	if (!path)
		return err_nomem(ls->problems.err);
	emit_object(e, NULL);
	emit_name(e, "path", "", path, strlen(path));
	emit_u64(e, "root", "", x->root);
	emit_u64(e, "inode", "", x->inode);
	if (x->is_known) {
		inode_members_emit(e, &x->i);
		time_member_emit(e, "mtime", &x->i.mtime);
		if (x->target)
			emit_name(e, "target", "", x->target, x->target_len);
	} else {
		emit_str(e, "type", "", type_text(DTTOIF(x->type)));
	}
	emit_object_end(e);
	free(path);
	return 0;
}

static int print_entries(struct ls *ls, const char *dir, struct entries *l)
{
	struct widths w;
	int ret = 0;

	if (ls->opts->flags & PRINT_LS_LONG)
		for (size_t i = 0; i < l->n && !ret; i++)
			ret = load(ls, dir, &l->at[i]);
	w = measure(l);
	for (size_t i = 0; i < l->n && !ret; i++) {
		if (ls->e.form == EMIT_JSON)
			ret = print_json(ls, dir, &l->at[i]);
		else
			print_text(ls, &l->at[i], &w);
		if (!ret)
			ret = emit_failed(&ls->e);
	}
	return ret;
}

/* Inserts before the pending directories. */
static int push(struct ls *ls, char *path, uint64_t root, uint64_t inode)
{
	struct folder *f = malloc(sizeof(*f));

	if (!path || !f) {
		free(path);
		free(f);
		return err_nomem(ls->problems.err);
	}
	*f = (struct folder){ path, root, inode, ls->pending };
	ls->pending = f;
	return 0;
}

static struct folder *pop(struct ls *ls)
{
	struct folder *f = ls->pending;

	ls->pending = f->next;
	return f;
}

static void free_folder(struct folder *f)
{
	free(f->path);
	free(f);
}

/* Lists the subdirectories of a directory next, in their order. */
static int push_folders(struct ls *ls, const struct folder *f, struct btrkit_descent *d, const struct entries *l)
{
	int ret = 0;

	for (size_t i = l->n; i-- && !ret;) {
		const struct entry *x = &l->at[i];
		const struct btrkit_dir_entry e = { x->name, x->len, x->root, x->inode, x->index, x->type };
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		int told = 0;
		char *path;

		if (x->type != DT_DIR || x->inode == BTRKIT_EMPTY_SUBVOLUME)
			continue;
		path = join(f->path, x->name, x->len);
		ret = path ? btrkit_descent_enter(d, f->root, f->inode, &e, &what) : err_nomem(&what);
		if (ret)
			told = problem_tell(&ls->problems, path ? path : "", ret < 0 ? ret : what.err, &what);
		if (ret >= 0 && !told) {
			ret = push(ls, path, x->root, x->inode);
			continue;
		}
		ret = told;
		free(path);
	}
	return ret;
}

struct reading {
	struct ls *ls;
	const struct folder *f;
	struct entries *l;
	struct btrkit_error *err;
};

/* Reports names that are missing; the others are listed. */
static int lose_entries(void *ctx, const struct btrkit_error *what)
{
	const struct reading *r = ctx;

	return problem_tell(&r->ls->problems, r->f->path, what->err, what);
}

static int take_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	struct reading *r = ctx;

	return add_entry(r->l, e, r->err);
}

static int list_folder(struct ls *ls, const struct folder *f, struct btrkit_descent *d)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct entries l = { 0 };
	struct reading r = { ls, f, &l, &what };
	int ret = btrkit_inode_entries_around(ls->fs, f->root, f->inode, take_entry, lose_entries, &r, &what);

	/* Entries that were read before the failure are still printed. */
	if (ret)
		ret = problem_tell(&ls->problems, f->path, ret, &what);
	if (!ret && ls->headings) {
		emit_text(&ls->e, ls->begun ? "\n" : "");
		emit_name_escaped(&ls->e, NULL, "", *f->path ? f->path : ".", *f->path ? strlen(f->path) : 1, false);
		emit_text(&ls->e, ":\n");
	}
	ls->begun = true;
	if (l.n)
		qsort(l.at, l.n, sizeof(l.at[0]), compare_names);
	if (!ret)
		ret = print_entries(ls, f->path, &l);
	if (!ret && (ls->opts->flags & PRINT_LS_RECURSIVE))
		ret = push_folders(ls, f, d, &l);
	free_entries(&l);
	return ret;
}

/* Lists a directory given by the caller, recursively if requested. */
static int list_below(struct ls *ls, const struct entry *x)
{
	struct btrkit_descent *d = NULL;
	char *path = ls->e.form == EMIT_JSON ? path_tidy(x->name) : strdup(x->name);
	int ret = push(ls, path, x->root, x->inode);

	if (ret)
		return ret;
	ret = btrkit_descent_begin(ls->fs, x->root, x->inode, &d, ls->problems.err);
	while (!ret && ls->pending) {
		struct folder *f = pop(ls);

		ret = list_folder(ls, f, d);
		free_folder(f);
	}
	btrkit_descent_end(d);
	while (ls->pending)
		free_folder(pop(ls));
	return ret;
}

/* Adds a path to the directories or to the other files. */
static int take_path(struct ls *ls, uint64_t root, const char *path, struct entries *dirs, struct entries *others)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_inode i;
	struct entries *to;
	struct btrkit_dir_entry e;
	char *tidy;
	int ret = btrkit_inode_find(ls->fs, root, path, &i, &what);

	if (ret)
		return problem_tell(&ls->problems, path, ret, &what);
	to = S_ISDIR(i.mode) && !(ls->opts->flags & PRINT_LS_DIRECTORY) ? dirs : others;
	tidy = ls->e.form == EMIT_JSON && to == others ? path_tidy(path) : strdup(path);
	if (!tidy)
		return err_nomem(ls->problems.err);
	e = (struct btrkit_dir_entry){ .name = tidy, .name_len = strlen(tidy), .root = i.root, .inode = i.inode,
				       .type = IFTODT(i.mode) };
	if (!e.name_len && ls->e.form == EMIT_TEXT && to == others) {
		e.name = ".";
		e.name_len = 1;
	}
	ret = add_entry(to, &e, ls->problems.err);
	free(tidy);
	return ret;
}

static int list_paths(struct ls *ls, uint64_t root, const char *const *paths, size_t n)
{
	static const char *const top[] = { "" };
	struct entries dirs = { 0 }, others = { 0 };
	struct btrkit_inode i;
	int ret = btrkit_inode_find(ls->fs, root, "", &i, ls->problems.err);

	if (!n)
		paths = top;
	for (size_t k = 0; k < (n ? n : 1) && !ret; k++)
		ret = take_path(ls, root, paths[k], &dirs, &others);
	ls->headings = ls->e.form == EMIT_TEXT && (n > 1 || (ls->opts->flags & PRINT_LS_RECURSIVE));
	if (!ret && others.n) {
		qsort(others.at, others.n, sizeof(others.at[0]), compare_names);
		ls->begun = true;
		ret = print_entries(ls, NULL, &others);
	}
	if (dirs.n)
		qsort(dirs.at, dirs.n, sizeof(dirs.at[0]), compare_names);
	for (size_t k = 0; k < dirs.n && !ret; k++)
		ret = list_below(ls, &dirs.at[k]);
	free_entries(&dirs);
	free_entries(&others);
	return ret;
}

int print_ls(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		    const struct print_ls_options *opts, btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	const unsigned known = PRINT_LS_LONG | PRINT_LS_RECURSIVE | PRINT_LS_DIRECTORY | PRINT_LS_INODE;
	static const struct print_ls_options defaults = PRINT_LS_OPTIONS_INIT;
	struct ls ls = { .fs = fs, .opts = opts ? opts : &defaults };
	int ret;

	opts = ls.opts;
	ls.problems = (struct problems){ opts->problem, opts->problem_ctx, err };
	if (opts->flags & ~known)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	ret = list_begin(&ls.e, opts->format, "ls", write, ctx, err);
	return ret ? ret : list_end(&ls.e, list_paths(&ls, root, paths, n));
}
