// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copying contents of local files into the filesystem. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/edit/edit.h"

struct copying {
	struct edit *e;
	int fd;
	const char *local;
	uint64_t root, inode;
	uint64_t offset;	/* in the target, of the first byte of the local file */
	uint64_t size;		/* the end of a regular local file, corrected if reading finds it shorter */
};

/* Copies @len bytes starting at @at, or up to the end if the file turns out to be shorter. */
static int copy_range(struct copying *c, uint64_t at, uint64_t len, bool seek, struct btrkit_error *err)
{
	int ret = 0;

	while (!ret && len) {
		const size_t want = len < EDIT_BUFFER ? (size_t)len : EDIT_BUFFER;
		size_t have = 0;

		/* Fill the buffer: a pipe returns less than requested, and small pieces would become small extents. */
		while (have < want) {
			char *to = c->e->buffer + have;
			const ssize_t n = seek ? pread(c->fd, to, want - have, (off_t)(at + have)) :
						 read(c->fd, to, want - have);

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return edit_fail(err, errno, c->local);
			if (!n)
				break;
			have += (size_t)n;
		}
		if (!have) {
			c->size = at;
			return 0;
		}
		ret = btrkit_txn_write(c->e->txn, c->root, c->inode, c->offset + at, c->e->buffer, have, &c->e->write,
				       err);
		at += have;
		len -= have;
	}
	return ret;
}

/* Copies a regular file, except its holes. */
static int copy_sparse(struct copying *c, struct btrkit_error *err)
{
	uint64_t at = 0;
	int ret = 0;

	/* Files in /proc claim to be empty, and those in /sys to be larger than they are. */
	if (!c->size)
		return copy_range(c, 0, UINT64_MAX, true, err);
	while (!ret && at < c->size) {
		const off_t data = lseek(c->fd, (off_t)at, SEEK_DATA);
		off_t hole;

		if (data < 0 && errno == ENXIO)
			return 0;
		if (data < 0)
			return copy_range(c, at, c->size - at, true, err);
		hole = lseek(c->fd, data, SEEK_HOLE);
		if (hole < 0)
			return edit_fail(err, errno, c->local);
		ret = copy_range(c, (uint64_t)data, (uint64_t)(hole - data), true, err);
		at = (uint64_t)hole;
	}
	return ret;
}

/* Allocates the buffer, and checks that the file may be written even if there is no data. */
static int begin_copy(struct copying *c, struct btrkit_error *err)
{
	if (!c->e->buffer)
		c->e->buffer = malloc(EDIT_BUFFER);
	if (!c->e->buffer)
		return edit_fail(err, ENOMEM, c->local);
	return btrkit_txn_write(c->e->txn, c->root, c->inode, c->offset, c->e->buffer, 0, &c->e->write, err);
}

static int copy_data(struct copying *c, const struct stat *st, struct btrkit_error *err)
{
	const int ret = begin_copy(c, err);

	if (ret)
		return ret;
	c->size = (uint64_t)st->st_size;
	return S_ISREG(st->st_mode) ? copy_sparse(c, err) : copy_range(c, 0, UINT64_MAX, false, err);
}

/* Opens a local file. "-" is stdin, which is read up to the end, whatever its type. */
static int open_local(const struct edit *e, const char *local, int *fd, struct stat *st, struct btrkit_error *err)
{
	const bool input = !strcmp(local, "-");

	if (input && e->script)
		return edit_fail(err, EINVAL, "the script is read from the standard input");
	*st = (struct stat){ 0 };
	*fd = input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(local, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return edit_fail(err, errno, local);
	if (input || (!fstat(*fd, st) && !S_ISDIR(st->st_mode)))
		return 0;
	edit_fail(err, S_ISDIR(st->st_mode) ? EISDIR : errno, local);
	close(*fd);
	return err->err;
}

/* Removes what is at a path, unless it is a directory. */
static int make_way(struct edit *e, const char *path, struct btrkit_error *err)
{
	const int ret = edit_unlink(e, path, err);

	return ret == -ENOENT ? 0 : ret;
}

int edit_put_local(struct edit *e, const struct edit_local *from, const char *path, unsigned flags,
		   struct btrkit_found *made, struct btrkit_error *err)
{
	const struct stat *st = &from->st;
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	struct copying c = { .e = e, .fd = from->fd, .local = from->path };
	int ret = 0;

	what.mode = S_IFREG | (S_ISREG(st->st_mode) ? st->st_mode & 07777 : 0644);
	what.uid = st->st_uid;
	what.gid = st->st_gid;
	if (flags & EDIT_PUT_FORCE)
		ret = make_way(e, path, err);
	if (!ret)
		ret = edit_create(e, path, &what, &c.root, &c.inode, err);
	if (!ret)
		ret = copy_data(&c, st, err);
	/* The file may end with a hole. */
	if (!ret && S_ISREG(st->st_mode))
		ret = btrkit_txn_truncate(e->txn, c.root, c.inode, c.size, err);
	if (!ret && flags & EDIT_PUT_PRESERVE && S_ISREG(st->st_mode))
		ret = edit_preserve(e, from, c.root, c.inode, err);
	*made = (struct btrkit_found){ c.root, c.inode, DT_REG };
	return ret;
}

static int put_file(struct edit *e, const char *local, const char *path, unsigned flags, struct btrkit_error *err)
{
	struct edit_local from = { .path = local };
	struct btrkit_found made;
	int ret = open_local(e, local, &from.fd, &from.st, err);

	if (ret)
		return ret;
	ret = edit_put_local(e, &from, path, flags, &made, err);
	close(from.fd);
	return ret;
}

int edit_put(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	(void)n;
	return flags & EDIT_PUT_BELOW ? edit_put_tree(e, words[0], words[1], flags, err) :
					put_file(e, words[0], words[1], flags, err);
}

int edit_write(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct copying c = { .e = e, .local = words[2] };
	struct btrkit_found f;
	struct stat st = { 0 };
	int ret;

	(void)n;
	(void)flags;
	ret = edit_number(words[1], &c.offset, err);
	if (!ret)
		ret = edit_target_file(e, words[0], &f, err);
	if (!ret)
		ret = open_local(e, c.local, &c.fd, &st, err);
	if (ret)
		return ret;
	c.root = f.root;
	c.inode = f.inode;
	ret = begin_copy(&c, err);
	if (!ret)
		ret = copy_range(&c, 0, UINT64_MAX, false, err);
	close(c.fd);
	return ret;
}
