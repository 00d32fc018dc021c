// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/print/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <btrkit/file.h>

#include "lib/base/err.h"

static const struct {
	uint32_t type;
	char letter;
	const char *text;
} types[] = {
	{ S_IFREG, '-', "regular file" }, { S_IFDIR, 'd', "directory" },    { S_IFLNK, 'l', "symbolic link" },
	{ S_IFCHR, 'c', "character device" }, { S_IFBLK, 'b', "block device" }, { S_IFIFO, 'p', "fifo" },
	{ S_IFSOCK, 's', "socket" },
};

int problem_tell(const struct problems *to, const char *path, int ret, const struct btrkit_error *what)
{
	if (ret == -ENOMEM || !to->problem)
		return err_pass(to->err, what, ret);
	return to->problem(to->ctx, path, strlen(path), what);
}

const char *type_text(uint32_t mode)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == (mode & S_IFMT))
			return types[i].text;
	return "unknown";
}

void mode_text(uint32_t mode, char to[MODE_TEXT])
{
	static const char letters[] = "rwxrwxrwx";
	static const struct {
		uint32_t bit, execute;
		unsigned at;
		char with, without;
	} special[] = { { S_ISUID, S_IXUSR, 3, 's', 'S' }, { S_ISGID, S_IXGRP, 6, 's', 'S' },
			{ S_ISVTX, S_IXOTH, 9, 't', 'T' } };

	to[0] = '?';
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == (mode & S_IFMT))
			to[0] = types[i].letter;
	for (unsigned i = 0; i < 9; i++)
		to[1 + i] = mode & (0400u >> i) ? letters[i] : '-';
	for (unsigned i = 0; i < 3; i++)
		if (mode & special[i].bit)
			to[special[i].at] = mode & special[i].execute ? special[i].with : special[i].without;
	to[MODE_TEXT - 1] = '\0';
}

void inode_members_emit(struct emit *e, const struct btrkit_inode *i)
{
	emit_str(e, "type", "", type_text(i->mode));
	emit_u64(e, "mode", "", i->mode);
	emit_u64(e, "nlink", "", i->nlink);
	emit_u64(e, "uid", "", i->uid);
	emit_u64(e, "gid", "", i->gid);
	emit_u64(e, "size", "", i->size);
	if (S_ISCHR(i->mode) || S_ISBLK(i->mode)) {
		emit_u64(e, "major", "", major(i->rdev));
		emit_u64(e, "minor", "", minor(i->rdev));
	}
}

void time_member_emit(struct emit *e, const char *key, const struct btrkit_time *t)
{
	emit_object(e, key);
	emit_s64(e, "sec", "", t->sec);
	emit_u64(e, "nsec", "", t->nsec);
	emit_object_end(e);
}

struct target {
	char *text;
	size_t len;
};

static int keep_target(void *ctx, const char *text, size_t len)
{
	struct target *t = ctx;

	t->text = malloc(len + 1);
	if (!t->text)
		return -ENOMEM;
	memcpy(t->text, text, len);
	t->text[len] = '\0';
	t->len = len;
	return 0;
}

int link_target(struct btrkit_fs *fs, const struct btrkit_inode *i, char **ret, size_t *len, struct btrkit_error *err)
{
	struct target t = { NULL, 0 };
	int r = btrkit_link_target(fs, i->root, i->inode, keep_target, &t, err);

	if (r)
		return r == -ENOMEM ? err_nomem(err) : r;
	*ret = t.text;
	*len = t.len;
	return 0;
}

char *path_tidy(const char *path)
{
	char *tidy = malloc(strlen(path) + 1), *to = tidy;

	if (!tidy)
		return NULL;
	while (*path) {
		const size_t len = strcspn(path, "/");

		if (len && !(len == 1 && *path == '.')) {
			if (to != tidy)
				*to++ = '/';
			memcpy(to, path, len);
			to += len;
		}
		path += len;
		path += *path == '/';
	}
	*to = '\0';
	return tidy;
}
