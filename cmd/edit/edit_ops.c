// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of operations, and those that need only one call of the library. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cmd/edit/edit.h"

int edit_fail(struct btrkit_error *err, int error, const char *what)
{
	*err = (struct btrkit_error){ .code = error == EINVAL ? BTRKIT_INVALID : BTRKIT_SYSTEM, .err = -error };
	snprintf(err->message, sizeof(err->message), "%s", what);
	return -error;
}

/* Whether a message starts with a path. */
static bool tells(const char *message, const char *path)
{
	const size_t len = strlen(path);

	message += message[0] == '"';
	return !strncmp(message, path, len) && strchr("\": ", message[len]);
}

int edit_do(struct edit *e, const struct edit_call *c, struct btrkit_error *err)
{
	char message[sizeof(err->message)];
	int ret;

	e->path = NULL;
	ret = c->op->run(e, c->words, c->n, c->flags, err);
	if (!ret || !e->path || !strstr(c->op->args, "PATH...") || tells(err->message, e->path))
		return ret;
	if (snprintf(message, sizeof(message), "%s: %s", e->path, err->message) < (int)sizeof(message))
		snprintf(err->message, sizeof(err->message), "%s", message);
	return ret;
}

static int op_mkdir(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	int ret = 0;

	what.mode = S_IFDIR | 0755;
	for (size_t i = 0; !ret && i < n; i++)
		ret = flags ? edit_make_dirs(e, words[i], true, err) : edit_create(e, words[i], &what, NULL, NULL, err);
	return ret;
}

static int op_mknod(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	static const char letters[] = "bcps";
	static const mode_t types[] = { S_IFBLK, S_IFCHR, S_IFIFO, S_IFSOCK };
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	const char *at = words[1][0] && !words[1][1] ? strchr(letters, words[1][0]) : NULL;
	const bool device = at && at - letters < 2;
	uint64_t major = 0, minor = 0;
	int ret = 0;

	(void)flags;
	if (!at)
		return edit_fail(err, EINVAL, "invalid type: expected b, c, p or s");
	if (n != (device ? 4 : 2))
		return edit_fail(err, EINVAL, "types b and c require MAJOR and MINOR, others must not have them");
	if (device)
		ret = edit_number(words[2], &major, err);
	if (device && !ret)
		ret = edit_number(words[3], &minor, err);
	if (ret)
		return ret;
	/* Linux has 12 bits for major and 20 for minor numbers. */
	if (major >> 12 || minor >> 20)
		return edit_fail(err, EINVAL, "device number out of range");
	what.mode = types[at - letters] | 0644;
	what.rdev = makedev((unsigned)major, (unsigned)minor);
	return edit_create(e, words[0], &what, NULL, NULL, err);
}

static int op_ln(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	struct btrkit_found f;
	struct edit_spot s;
	int ret;

	(void)n;
	if (flags) {
		what.mode = S_IFLNK | 0777;
		what.target = words[0];
		return edit_create(e, words[1], &what, NULL, NULL, err);
	}
	ret = edit_find(e, words[0], &f, err);
	if (!ret)
		ret = edit_spot_new(e, words[1], 0, &s, err);
	if (ret)
		return ret;
	return btrkit_txn_link(e->txn, f.root, f.inode, &s.at, err);
}

static int op_rmdir(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	/* As in Linux: the directory that two dots name has at least the one in it that the path came through. */
	static const int refused[] = { [EDIT_ROOT] = EBUSY, [EDIT_DOT] = EINVAL, [EDIT_DOTDOT] = ENOTEMPTY };
	int ret = 0;

	(void)flags;
	for (size_t i = 0; !ret && i < n; i++) {
		struct edit_spot s;

		ret = edit_spot(e, words[i], &s, err);
		if (!ret)
			ret = s.at.len ? btrkit_txn_unlink(e->txn, s.root, s.at.dir, s.at.name, s.at.len,
							   BTRKIT_UNLINK_DIR, err) :
					 edit_fail(err, refused[s.last], words[i]);
	}
	return ret;
}

/* Checks that an existing name is a directory. */
static int check_dir(struct edit *e, const struct edit_spot *s, const char *path, struct btrkit_error *err)
{
	struct btrkit_found f;
	const int ret = btrkit_txn_lookup(e->txn, s->root, s->at.dir, s->at.name, s->at.len, &f, err);

	return ret || f.type == DT_DIR ? ret : edit_fail(err, ENOTDIR, path);
}

/* A slash after either name requires that the result is a directory. */
static int check_slashes(struct edit *e, const struct edit_spot *from, const struct edit_spot *to, unsigned how,
			 char **words, struct btrkit_error *err)
{
	const bool exchange = how == BTRKIT_RENAME_EXCHANGE;
	struct btrkit_found f;
	int ret = 0;

	if (from->slash || (to->slash && !exchange))
		ret = check_dir(e, from, words[!from->slash], err);
	if (!ret && to->slash && exchange)
		ret = check_dir(e, to, words[1], err);
	if (ret == -ENOTDIR && how == BTRKIT_RENAME_NOREPLACE &&
	    !btrkit_txn_lookup(e->txn, to->root, to->at.dir, to->at.name, to->at.len, &f, NULL))
		return edit_fail(err, EEXIST, words[1]);
	return ret;
}

static int op_mv(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	static const unsigned how[] = { 0, BTRKIT_RENAME_NOREPLACE, BTRKIT_RENAME_EXCHANGE,
					BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE };
	struct edit_spot from, to;
	int ret;

	(void)n;
	if (how[flags] == (BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE))
		return edit_fail(err, EINVAL, "mv takes -n or -x, not both");
	ret = edit_spot(e, words[0], &from, err);
	if (!ret)
		ret = edit_spot(e, words[1], &to, err);
	if (ret)
		return ret;
	if (!from.at.len)
		return edit_fail(err, EBUSY, words[0]);
	if (!to.at.len)
		return edit_fail(err, how[flags] == BTRKIT_RENAME_NOREPLACE ? EEXIST : EBUSY, words[1]);
	ret = check_slashes(e, &from, &to, how[flags], words, err);
	return ret ? ret : btrkit_txn_rename(e->txn, &from.at, &to.at, how[flags], err);
}

static int op_truncate(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_found f;
	uint64_t size;
	int ret = edit_number(words[1], &size, err);

	(void)n;
	(void)flags;
	if (!ret)
		ret = edit_target_file(e, words[0], &f, err);
	return ret ? ret : btrkit_txn_truncate(e->txn, f.root, f.inode, size, err);
}

const struct edit_op edit_ops[] = {
	{ "chattr", "[-h] +|-|=FLAGS PATH...", "change inode flags: some of ACDSacdim", "h", 2, -1,
	  edit_chattr, .dashes = 1, .sign = true },
	{ "chmod", "[-h] MODE PATH...", "set permissions: octal, or as u+rwX,g-w", "h", 2, -1, edit_chmod,
	  .dashes = 1, .sign = true },
	{ "chown", "[-h] [UID][:GID] PATH...", "set owner and group, as numbers; -h: of a link itself,\n"
						"as in other operations", "h", 2, -1, edit_chown },
	{ "clone", "FROM [AT LENGTH] TO [AT]", "share the data of a file, or of a range", "", 2, 5,
	  edit_clone },
	{ "ln", "[-s] TARGET PATH", "make a hard link; -s: a symbolic link", "s", 2, 2, op_ln },
	{ "mkdir", "[-p] PATH...", "make directories; -p: missing parents too", "p", 1, -1, op_mkdir },
	{ "mknod", "PATH b|c|p|s [MAJOR MINOR]", "make a device node, a fifo or a socket", "", 2, 4, op_mknod },
	{ "mv", "[-n|-x] FROM TO", "rename; -n: replace nothing; -x: exchange", "nx", 2, 2, op_mv },
	{ "prealloc", "[-k] PATH OFFSET LENGTH", "preallocate space; -k: keep the size", "k", 3, 3,
	  edit_prealloc },
	{ "property set", "[-f] PATH NAME VALUE", "set ro (true|false; -f: also if received)\n"
						  "or compression", "f", 3, 3,
	  edit_property_set },
	{ "punch", "PATH OFFSET LENGTH", "punch a hole", "", 3, 3, edit_punch },
	{ "put", "[-f] [-p] [-r] FILE PATH", "copy a local file; -r: or directory; -f: replace a file;\n"
					       "-p: with times and attributes", "fpr", 2, 2, edit_put },
	{ "rm", "[-r] [-f] PATH...", "remove; -r: directories too; -f: ignore missing", "rf", 1, -1, edit_rm },
	{ "rmdir", "PATH...", "remove empty directories", "", 1, -1, op_rmdir },
	{ "rmxattr", "[-h] NAME PATH...", "remove an extended attribute", "h", 2, -1, edit_rmxattr },
	{ "setfacl", "-m|-x|-b|-k [ENTRIES] PATH...", "-m: set ACL entries; -x: remove; -b: all; -k: default",
	  "mxbk", 1, -1, edit_setfacl },
	{ "setxattr", "[-c|-r] [-h] NAME VALUE PATH...", "set an attribute; -c: create; -r: replace", "crh", 3, -1,
	  edit_setxattr, .dashes = 2 },
	{ "subvolume create", "[-p] PATH...", "make subvolumes; -p: missing parents too", "p", 1, -1,
	  edit_subvolume_create },
	{ "subvolume delete", "[-R] ID|PATH...", "delete; -R: with the subvolumes in it", "R", 1, -1,
	  edit_subvolume_delete },
	{ "subvolume set-default", "ID|PATH", "set the subvolume mounted by default", "", 1, 1,
	  edit_subvolume_set_default },
	{ "subvolume snapshot", "[-r] ID|PATH PATH", "make a snapshot; -r: read-only", "r", 2, 2,
	  edit_subvolume_snapshot },
	{ "subvolume sync", "", "complete unfinished deletions", "", 0, 0, edit_subvolume_sync },
	{ "touch", "[-a] [-m] [-h] TIME PATH...",
	  "set times: now or @SECONDS; -a: access;\n-m: modification", "amh", 2, -1,
	  edit_touch },
	{ "truncate", "PATH SIZE", "set the size of a file", "", 2, 2, op_truncate },
	{ "write", "PATH OFFSET FILE", "write a local file into a file, at OFFSET", "", 3, 3, edit_write },
	{ 0 },
};
