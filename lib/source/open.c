// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads a source, and opens files for their contents. */
#include "lib/source/files.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/source/layers.h"

int source_read(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	/* Names are bytes, independent of the program's locale. */
	const locale_t bytes = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before;
	int ret;

	if (bytes == (locale_t)0)
		return err_nomem(err);
	before = uselocale(bytes);
	switch (s->state->opts->kind) {
	case BTRKIT_SOURCE_DIRECTORY:
		ret = source_read_directory(s, err);
		break;
	case BTRKIT_SOURCE_ARCHIVE:
		ret = source_read_archive(s, sink, err);
		break;
	default:
		ret = source_read_manifest(s, err);
	}
	if (!ret)
		ret = source_finish(s, err);
	uselocale(before);
	freelocale(bytes);
	return ret;
}

int source_openat(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags | O_CLOEXEC | O_NOATIME);

	/* Only the owner of a file may use O_NOATIME. */
	if (fd < 0 && errno == EPERM)
		fd = openat(dir, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int source_open_below(int root, char *path, int flags)
{
	int dir = root, fd = 0;

	/* Walk in steps no longer than PATH_MAX. */
	while (strlen(path) >= PATH_MAX && fd >= 0) {
		char *end = path + PATH_MAX - 1;

		while (end > path && *end != '/')
			end--;
		if (end == path)
			fd = -ENAMETOOLONG;
		else {
			*end = '\0';
			fd = openat(dir, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0)
				fd = -errno;
			*end = '/';
		}
		path = end + 1;
		if (dir != root)
			close(dir);
		dir = fd;
	}
	if (fd < 0)
		return fd;
	fd = source_openat(dir, path, flags);
	if (dir != root)
		close(dir);
	return fd;
}

int source_open_inode(const struct source *s, uint32_t inode, uint32_t layer, int flags)
{
	char *path = NULL;
	size_t max = 0;
	ssize_t len = source_full_path(s, inode, &path, &max);
	int fd;

	if (len < 0)
		return (int)len;
	fd = source_open_below(s->state->roots[layer], len ? path : strcpy(path, "."), flags);
	free(path);
	return fd;
}

int source_fstat(const struct source *s, int fd, struct stat *st)
{
	int ret;

	if (s->state->in_between)
		pthread_mutex_lock(&s->state->stat_lock);
	ret = fstat(fd, st) ? -errno : 0;
	if (s->state->in_between)
		pthread_mutex_unlock(&s->state->stat_lock);
	return ret;
}

void source_set_targets(struct source *s, const struct source_target *targets, size_t n)
{
	s->state->targets = targets;
	s->state->num_targets = n;
}

bool source_is_target(const struct source *s, const struct stat *st)
{
	const bool block = S_ISBLK(st->st_mode);
	const struct source_target is = { block ? st->st_rdev : st->st_dev, block ? 0 : st->st_ino };

	for (size_t i = 0; i < s->state->num_targets; i++)
		if (s->state->targets[i].device == is.device && s->state->targets[i].inode == is.inode)
			return true;
	return false;
}

/* Does not open the source, because a pipe can only be opened once. */
static int check_file(const struct source *s, const char *path, struct btrkit_error *err)
{
	const bool standard = !strcmp(path, "-");
	const char *called = standard ? "standard input" : path;
	char name[PATH_SHOWN];
	struct stat st;

	source_escape(called, strlen(called), name, sizeof(name));
	if (standard ? fstat(STDIN_FILENO, &st) : stat(path, &st))
		return err_system(err, errno, "%s: cannot open %s", name,
				  s->state->opts->kind == BTRKIT_SOURCE_ARCHIVE ? "archive" : "manifest");
	if (source_is_target(s, &st))
		return err_set(err, BTRKIT_INVALID, "%s: is the target of the new filesystem", name);
	return 0;
}

int source_check(const struct source *s, struct btrkit_error *err)
{
	int ret = 0;

	if (s->state->opts->kind == BTRKIT_SOURCE_DIRECTORY)
		return 0;
	for (uint32_t i = 0; !ret && i <= s->state->opts->num_layers; i++)
		ret = check_file(s, source_layer_path(s, i), err);
	return ret;
}

static bool time_is(struct source_time a, struct timespec b)
{
	return a.sec == b.tv_sec && a.nsec == (uint32_t)b.tv_nsec;
}

int source_changed(const struct source *s, uint32_t inode, struct btrkit_error *err)
{
	return source_fail(s, inode, err, ESTALE, "changed while it was read");
}

int source_cannot(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *what)
{
	char path[PATH_SHOWN];

	source_path(s, inode, path, sizeof(path));
	return err_system(err, errnum, "%s: cannot %s", path, what);
}

uint32_t source_identity_and_times(const struct stat *st)
{
	uint64_t h = source_identity(st->st_dev, st->st_ino);

	h = (h ^ (uint64_t)st->st_mtim.tv_sec) * UINT64_C(0xff51afd7ed558ccd) + (uint64_t)st->st_mtim.tv_nsec;
	h = (h ^ (uint64_t)st->st_ctim.tv_sec ^ h >> 32) * UINT64_C(0xc4ceb9fe1a85ec53) + (uint64_t)st->st_ctim.tv_nsec;
	return (uint32_t)(h ^ h >> 32);
}

int source_file_unchanged(const struct source *s, uint32_t inode, int fd, struct btrkit_error *err)
{
	const struct source_inode *i = &s->inodes[inode];
	struct stat st;
	int ret;

	if (i->bits & BIT_INLINE)
		return 0;
	ret = source_fstat(s, fd, &st);
	if (ret < 0)
		return source_cannot(s, inode, err, ret, "stat file");
	if (s->state->changes && (!S_ISREG(st.st_mode) || source_identity(st.st_dev, st.st_ino) != i->identity))
		return source_changed(s, inode, err);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != i->size)
		return source_take_changed(s, inode, err);
	if (s->state->opts->kind == BTRKIT_SOURCE_MANIFEST)
		return source_identity_and_times(&st) == i->identity ? 0 : source_changed(s, inode, err);
	if (source_identity(st.st_dev, st.st_ino) != i->identity || !time_is(i->mtime, st.st_mtim) ||
	    !time_is(i->ctime, st.st_ctim))
		return source_take_changed(s, inode, err);
	return 0;
}

/* Provides contents from memory as a file. */
static int open_inline(const struct source *s, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *i = &s->inodes[inode];
	int fd = memfd_create("contents", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < i->size) {
		const ssize_t n = pwrite(fd, i->text + done, i->size - done, (off_t)done);

		if (n < 0) {
			const int errnum = errno;

			close(fd);
			return source_cannot(s, inode, err, errnum, "pass on contents");
		}
		done += (size_t)n;
	}
	return fd < 0 ? source_cannot(s, inode, err, errno, "pass on contents") : fd;
}

/* Opens a file. If it is in the same directory as the previous one, the path is not walked again. */
static int open_near(const struct source *s, struct source_near *near, uint32_t inode, int flags)
{
	const struct source_entry *e = &s->entries[s->inodes[inode].name];
	const uint32_t layer = s->inodes[inode].layer;

	if (e->parent != near->dir || layer != near->layer) {
		source_near_end(near);
		near->dir = e->parent;
		near->layer = layer;
		return source_open_inode(s, inode, layer, flags);
	}
	if (near->fd < 0)
		near->fd = source_open_inode(s, near->dir, layer, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	return near->fd < 0 ? source_open_inode(s, inode, layer, flags) : source_openat(near->fd, e->name, flags);
}

void source_near_end(struct source_near *near)
{
	if (near->fd >= 0)
		close(near->fd);
	*near = (struct source_near)SOURCE_NEAR_INIT;
}

int source_file_open_near(const struct source *s, struct source_near *near, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *i = &s->inodes[inode];
	int fd;

	if (source_streams(s) || !S_ISREG(i->mode))
		return source_fail(s, inode, err, EINVAL, "has no contents to open");
	if (i->bits & BIT_INLINE)
		return open_inline(s, inode, err);
	if (i->text)
		fd = source_openat(s->state->roots[0], i->text, O_RDONLY | O_NONBLOCK);
	else
		fd = open_near(s, near, inode, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return source_changed(s, inode, err);
	return fd < 0 ? source_cannot(s, inode, err, fd, "open file") : fd;
}

int source_file_open(const struct source *s, uint32_t inode, struct btrkit_error *err)
{
	struct source_near near = SOURCE_NEAR_INIT;
	const int fd = source_file_open_near(s, &near, inode, err);
	int ret;

	source_near_end(&near);
	if (fd < 0)
		return fd;
	ret = source_file_unchanged(s, inode, fd, err);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}
