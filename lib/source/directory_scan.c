// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/source/layers.h"

static int fails(struct scan_failure *f, int errnum, const char *what, const char *name)
{
	*f = (struct scan_failure){ errnum, what, name, NULL };
	return -1;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static struct source_time time_of(struct timespec t)
{
	return (struct source_time){ t.tv_sec, (uint32_t)t.tv_nsec };
}

void scan_attr(const struct stat *st, struct source_attr *ret)
{
	*ret = (struct source_attr){
		.size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
		.atime = time_of(st->st_atim),
		.mtime = time_of(st->st_mtim),
		.ctime = time_of(st->st_ctim),
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = rdev_join(major(st->st_rdev), minor(st->st_rdev)),
		.identity = source_identity(st->st_dev, st->st_ino),
	};
}

static int keep_name(struct scan_dir *d, const char *name, size_t *len, size_t *max, uint32_t *max_names)
{
	const size_t size = strlen(name) + 1;

	if (*len + size > UINT32_MAX)
		return -EOVERFLOW;
	if (*len + size > *max) {
		char *grown = realloc(d->names, *max * 2 + 4096);

		if (!grown)
			return -ENOMEM;
		d->names = grown;
		*max = *max * 2 + 4096;
	}
	if (d->n == *max_names) {
		uint32_t *grown = reallocarray(d->at, *max_names * 2u + 64, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		d->at = grown;
		*max_names = *max_names * 2 + 64;
	}
	memcpy(d->names + *len, name, size);
	d->at[d->n++] = (uint32_t)*len;
	*len += size;
	return 0;
}

static int list_names(struct scan_dir *d, DIR *stream)
{
	size_t len = 0, max = 0;
	uint32_t max_names = 0;
	struct dirent *e;
	int ret = 0;

	for (errno = 0; !ret && (e = readdir(stream)); errno = 0)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			ret = keep_name(d, e->d_name, &len, &max, &max_names);
	return ret ? ret : -errno;
}

int scan_open(struct scan_dir *d, int root, char *path, struct scan_failure *failure)
{
	const struct stat wanted = d->stat;
	DIR *stream;
	int ret, copy;

	d->fd = source_open_below(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (d->fd == -ENOENT || d->fd == -ENOTDIR || d->fd == -ELOOP)
		return fails(failure, ESTALE, NULL, NULL);
	if (d->fd < 0)
		return fails(failure, -d->fd, "open directory", NULL);
	if (fstat(d->fd, &d->stat))
		return fails(failure, errno, "stat directory", NULL);
	if (d->stat.st_dev != wanted.st_dev || d->stat.st_ino != wanted.st_ino)
		return fails(failure, ESTALE, NULL, NULL);
	if (!same_time(d->stat.st_mtim, wanted.st_mtim) || !same_time(d->stat.st_ctim, wanted.st_ctim)) {
		if (!d->accept_changes)
			return fails(failure, ESTALE, NULL, NULL);
		d->changed = true;
	}
	copy = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
	stream = copy < 0 ? NULL : fdopendir(copy);
	if (!stream) {
		ret = errno;
		if (copy >= 0)
			close(copy);
		return fails(failure, ret, "open directory", NULL);
	}
	ret = list_names(d, stream);
	closedir(stream);
	return ret ? fails(failure, -ret, "read directory", NULL) : 0;
}

int scan_close(struct scan_dir *d, struct scan_failure *failure)
{
	struct stat st;
	const int ret = fstat(d->fd, &st) ? errno : 0;

	close(d->fd);
	d->fd = -1;
	if (ret)
		return fails(failure, ret, "stat directory", NULL);
	if (!same_time(st.st_mtim, d->stat.st_mtim) || !same_time(st.st_ctim, d->stat.st_ctim))
		d->changed = true;
	return d->changed ? fails(failure, ESTALE, NULL, NULL) : 0;
}

void scan_free(struct scan_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	free(d->names);
	free(d->at);
	free(d);
}

/* Ensures space for @len more bytes. */
static int reserve(struct scan_worker *w, size_t len)
{
	char *grown;

	if (w->max - w->len >= len)
		return 0;
	grown = realloc(w->bytes, w->max * 2 + len + 4096);
	if (!grown)
		return -ENOMEM;
	w->bytes = grown;
	w->max = w->max * 2 + len + 4096;
	return 0;
}

static int read_target(struct scan_worker *w, const struct scan_dir *d, struct scan_found *f,
		       struct scan_failure *failure)
{
	ssize_t len;

	if (reserve(w, PATH_MAX + 1))
		return fails(failure, ENOMEM, "", NULL);
	len = readlinkat(d->fd, f->name, w->bytes + w->len, PATH_MAX + 1);
	if (len < 0)
		return errno == ENOENT || errno == EINVAL ? fails(failure, ESTALE, NULL, f->name) :
							    fails(failure, errno, "read link", f->name);
	if (len > PATH_MAX)
		return fails(failure, ENAMETOOLONG, "read link", f->name);
	f->text = w->len;
	w->bytes[w->len + (size_t)len] = '\0';
	w->len += (size_t)len + 1;
	return 0;
}

static bool path_fits(const struct scan_dir *d, const char *name)
{
	return d->path && strlen(d->path) + strlen(name) < PATH_MAX;
}

/* Returns a path for reading xattrs, because there is no such call relative to a directory descriptor. */
static const char *host_path(struct scan_worker *w, const struct scan_dir *d, const char *name)
{
	if (path_fits(d, name))
		strcpy(stpcpy(w->path, d->path), name);
	else
		snprintf(w->path, sizeof(w->path), "/proc/self/fd/%d/%s", d->fd, name);
	return w->path;
}

/* Returns whether that path can work: a long one needs /proc. */
static bool path_leads(const struct scan_dir *d, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->fd);
	return path_fits(d, name) || !access(path, F_OK);
}

/*
 * Linux allocates a buffer of the requested size in each call, which takes half of the time with 64 KiB. Most xattrs
 * are small, so try a small buffer first.
 */
#define XATTR_USUAL 512u

static ssize_t list_attributes(const char *path, char *list, size_t size)
{
	const ssize_t len = llistxattr(path, list, XATTR_USUAL);

	return len < 0 && errno == ERANGE ? llistxattr(path, list, size) : len;
}

static ssize_t get_attribute(const char *path, const char *attribute, char *value, size_t size)
{
	const ssize_t len = lgetxattr(path, attribute, value, XATTR_USUAL);

	return len < 0 && errno == ERANGE ? lgetxattr(path, attribute, value, size) : len;
}

static int read_xattr(struct scan_worker *w, const char *path, const char *name, const char *attribute,
		      struct scan_failure *failure)
{
	const ssize_t len = get_attribute(path, attribute, w->value, sizeof(w->value));
	struct scan_xattr head;

	if (len < 0 && (errno == ENODATA || errno == ENOENT))
		return fails(failure, ESTALE, NULL, name);
	if (len < 0) {
		*failure = (struct scan_failure){ errno, "read attribute", name, attribute };
		return -1;
	}
	head = (struct scan_xattr){ (uint32_t)strlen(attribute), (uint32_t)len };
	if (reserve(w, sizeof(head) + head.name_len + 1 + head.value_len))
		return fails(failure, ENOMEM, "", NULL);
	memcpy(w->bytes + w->len, &head, sizeof(head));
	w->len += sizeof(head);
	memcpy(w->bytes + w->len, attribute, head.name_len + 1);
	w->len += head.name_len + 1;
	memcpy(w->bytes + w->len, w->value, head.value_len);
	w->len += head.value_len;
	return 0;
}

static int read_xattrs(struct scan_worker *w, const struct scan_dir *d, struct scan_found *f,
		       struct scan_failure *failure)
{
	const char *path;
	ssize_t len;
	int ret = 0;

	f->xattrs = f->xattrs_end = w->len;
	path = host_path(w, d, f->name);
	len = list_attributes(path, w->list, sizeof(w->list));
	/* An answer for this file alone: an overlay has layers with and without attributes, and so may FUSE. */
	if (len < 0 && errno == ENOTSUP)
		return 0;
	if (len < 0 && errno == ENOENT)
		return path_leads(d, f->name) ? fails(failure, ESTALE, NULL, f->name) :
				       fails(failure, ENOENT, "list attributes without /proc", f->name);
	if (len < 0)
		return fails(failure, errno, "list attributes", f->name);
	for (const char *at = w->list; at < w->list + len && !ret; at += strlen(at) + 1)
		if (source_takes_xattr(w->source, at) || (source_layered(w->source) && source_overlay_word(at)))
			ret = read_xattr(w, path, f->name, at, failure);
	f->xattrs_end = w->len;
	return ret;
}

static bool is_gone(const struct scan_dir *d, const char *name)
{
	struct stat st;

	return fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

static int look_at(struct scan_worker *w, const struct scan_dir *d, const char *name, struct scan_failure *failure)
{
	struct scan_found *f = &w->found[w->n];
	struct stat st;
	int ret = 0;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return fails(failure, errno, "stat file", name);
		return d->accept_changes ? 0 : fails(failure, ESTALE, NULL, name);
	}
	f->name = name;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->linked = !S_ISDIR(st.st_mode) && st.st_nlink > 1;
	f->target = S_ISREG(st.st_mode) && source_is_target(w->source, &st);
	scan_attr(&st, &f->attr);
	if (S_ISLNK(st.st_mode))
		ret = read_target(w, d, f, failure);
	if (!ret)
		ret = read_xattrs(w, d, f, failure);
	/* The time of the directory tells that a name was removed. */
	if (ret && d->accept_changes && failure->errnum == ESTALE && is_gone(d, name))
		return 0;
	w->n++;
	return ret;
}

int scan_range(struct scan_worker *w, const struct scan_dir *d, uint32_t start, uint32_t n,
	       struct scan_failure *failure)
{
	int ret = 0;

	w->n = 0;
	w->len = 0;
	for (uint32_t i = start; i < start + n && !ret; i++)
		ret = look_at(w, d, d->names + d->at[i], failure);
	for (uint32_t i = 0; i < w->n && !ret; i++)
		if (S_ISLNK(w->found[i].attr.mode))
			w->found[i].attr.text = w->bytes + w->found[i].text;
	return ret;
}

int scan_top(struct scan_worker *w, const struct scan_dir *d, struct scan_failure *failure)
{
	w->n = 1;
	w->len = 0;
	w->found[0] = (struct scan_found){ .name = ".", .device = d->stat.st_dev, .inode = d->stat.st_ino };
	scan_attr(&d->stat, &w->found[0].attr);
	return read_xattrs(w, d, &w->found[0], failure);
}
