// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks a local directory by descriptors, so that concurrent changes cannot redirect it elsewhere. Each opened file
 * must be the one that was listed, otherwise the walk ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/edit/edit.h"

/* A directory that was entered. Only the innermost one is open, so that the depth is not limited by descriptors. */
struct level {
	struct stat st;
	char *names;	/* each terminated by a zero byte */
	size_t len, next;
	size_t path_len;
};

struct walk {
	const struct edit_visitor *to;
	struct level *levels;
	size_t depth, room;
	int fd;		/* of the innermost directory; -1: none */
	char *path;
	size_t path_room;
	size_t top_len;	/* of the path; the path below it starts with a slash */
	struct btrkit_error *err;
};

int edit_changed(struct btrkit_error *err, const char *local)
{
	edit_fail(err, ESTALE, local);
	snprintf(err->message, sizeof(err->message), "%s: changed while it was read", local);
	return -ESTALE;
}

static int open_same(const struct walk *w, struct edit_local *local)
{
	const mode_t type = local->st.st_mode & S_IFMT;
	const struct stat was = local->st;

	/* O_NONBLOCK: do not block if the file was replaced by a fifo. */
	local->fd = openat(local->dir, local->name,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (type == S_IFDIR ? O_DIRECTORY : 0));
	if (local->fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO ?
			       edit_changed(w->err, local->path) : edit_fail(w->err, errno, local->path);
	if (fstat(local->fd, &local->st))
		return edit_fail(w->err, errno, local->path);
	if (local->st.st_dev != was.st_dev || local->st.st_ino != was.st_ino || (local->st.st_mode & S_IFMT) != type)
		return edit_changed(w->err, local->path);
	return 0;
}

static int keep_name(struct level *l, size_t *room, const char *name)
{
	const size_t size = strlen(name) + 1;

	if (l->len + size > *room) {
		char *grown = realloc(l->names, *room * 2 + 4096);

		if (!grown)
			return -ENOMEM;
		l->names = grown;
		*room = *room * 2 + 4096;
	}
	memcpy(l->names + l->len, name, size);
	l->len += size;
	return 0;
}

static int list_names(int fd, struct level *l)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	size_t room = 0;
	int ret = 0;

	if (!stream) {
		ret = -errno;
		if (copy >= 0)
			close(copy);
		return ret;
	}
	for (errno = 0; !ret && (entry = readdir(stream)); errno = 0)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			ret = keep_name(l, &room, entry->d_name);
	ret = ret ? ret : -errno;
	closedir(stream);
	return ret;
}

/* Takes over the descriptor of @local, even on failure. */
static int enter(struct walk *w, const struct edit_local *local)
{
	struct level *l;
	int ret;

	if (w->fd >= 0)
		close(w->fd);
	w->fd = local->fd;
	if (w->depth == w->room) {
		l = reallocarray(w->levels, w->room * 2 + 16, sizeof(*l));
		if (!l)
			return edit_fail(w->err, ENOMEM, w->path);
		w->levels = l;
		w->room = w->room * 2 + 16;
	}
	l = &w->levels[w->depth++];
	*l = (struct level){ .st = local->st, .path_len = strlen(w->path) };
	ret = list_names(w->fd, l);
	return ret ? edit_fail(w->err, -ret, w->path) : 0;
}

/* Reopens the parent of the innermost directory, unless it was moved. */
static int go_up(struct walk *w, const struct level *l)
{
	const int fd = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return edit_fail(w->err, errno, w->path);
	close(w->fd);
	w->fd = fd;
	if (fstat(fd, &st))
		return edit_fail(w->err, errno, w->path);
	return st.st_dev == l->st.st_dev && st.st_ino == l->st.st_ino ? 0 : edit_changed(w->err, w->path);
}

static const char *below(const struct walk *w)
{
	return w->depth ? w->path + w->top_len : "";
}

static int leave(struct walk *w)
{
	struct level *l = &w->levels[--w->depth];
	const struct edit_local local = { .dir = -1, .fd = w->fd, .path = w->path, .st = l->st };
	const int ret = w->to->leave(w->to->ctx, &local, below(w), w->err);

	free(l->names);
	return ret || !w->depth ? ret : go_up(w, l - 1);
}

/* Appends a name to the path of the innermost directory. */
static int add_name(struct walk *w, size_t len, const char *name)
{
	const size_t room = len + strlen(name) + 2;

	if (room > w->path_room) {
		char *grown = realloc(w->path, room * 2);

		if (!grown)
			return edit_fail(w->err, ENOMEM, w->path);
		w->path = grown;
		w->path_room = room * 2;
	}
	if (w->path[len - 1] != '/')
		w->path[len++] = '/';
	strcpy(w->path + len, name);
	return 0;
}

/* Visits w->path, which is @name in @dir, and enters it if it is a directory. */
static int visit(struct walk *w, int dir, const char *name)
{
	struct edit_local local = { .dir = dir, .name = name, .path = w->path, .fd = -1 };
	int ret;

	if (fstatat(dir, name, &local.st, AT_SYMLINK_NOFOLLOW))
		return edit_fail(w->err, errno, w->path);
	ret = S_ISDIR(local.st.st_mode) || S_ISREG(local.st.st_mode) ? open_same(w, &local) : 0;
	if (!ret)
		ret = w->to->put(w->to->ctx, &local, below(w), w->err);
	if (!ret && S_ISDIR(local.st.st_mode))
		return enter(w, &local);
	if (local.fd >= 0)
		close(local.fd);
	return ret;
}

static int go_through(struct walk *w, const char *top)
{
	int ret = visit(w, AT_FDCWD, top);

	while (!ret && w->depth) {
		struct level *l = &w->levels[w->depth - 1];
		const char *name = l->names + l->next;

		w->path[l->path_len] = '\0';
		if (l->next == l->len) {
			ret = leave(w);
			continue;
		}
		l->next += strlen(name) + 1;
		ret = add_name(w, l->path_len, name);
		if (!ret)
			ret = visit(w, w->fd, name);
	}
	return ret;
}

int edit_walk(const char *top, const struct edit_visitor *to, struct btrkit_error *err)
{
	struct walk w = { .to = to, .fd = -1, .err = err };
	size_t len = strlen(top);
	int ret;

	while (len > 1 && top[len - 1] == '/')
		len--;
	w.path = strndup(top, len);
	if (!w.path)
		return edit_fail(err, ENOMEM, top);
	w.top_len = strcmp(w.path, "/") ? len : 0;
	w.path_room = len + 1;
	ret = go_through(&w, top);
	while (w.depth)
		free(w.levels[--w.depth].names);
	if (w.fd >= 0)
		close(w.fd);
	free(w.levels);
	free(w.path);
	return ret;
}
