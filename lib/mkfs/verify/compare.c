// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/verify/compare.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <btrkit/file.h>
#include <btrkit/subvolume.h>

#include "lib/base/err.h"
#include "lib/format/ids.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"

BTRKIT_PRINTF(3, 0)
static void say(struct compare *c, const char *path, const char *fmt, va_list args)
{
	char *line;
	int n;

	if (c->differences++ >= COMPARE_LINES)
		return;
	line = c->lines[c->differences - 1];
	n = snprintf(line, COMPARE_LINE_MAX, "%s%s", path, *path ? ": " : "");
	if (n >= 0 && (size_t)n < COMPARE_LINE_MAX)
		vsnprintf(line + n, COMPARE_LINE_MAX - (size_t)n, fmt, args);
}

void compare_differs(struct compare *c, uint32_t inode, const char *fmt, ...)
{
	char path[COMPARE_LINE_MAX / 2] = "";
	va_list args;

	if (inode != SOURCE_NONE)
		source_path(c->fill->source, inode, path, sizeof(path));
	va_start(args, fmt);
	say(c, path, fmt, args);
	va_end(args);
}

void compare_name_differs(struct compare *c, uint32_t dir, const char *name, size_t len, const char *fmt, ...)
{
	char path[COMPARE_LINE_MAX / 2];
	va_list args;

	source_path_of_name(c->fill->source, dir, name, len, path, sizeof(path));
	va_start(args, fmt);
	say(c, path, fmt, args);
	va_end(args);
}

uint64_t compare_first_difference(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;

	while (i < len && a[i] == b[i])
		i++;
	return i;
}

int compare_unreadable(struct compare *c, uint32_t inode, int ret, const char *what, const struct btrkit_error *why,
		       struct btrkit_error *err)
{
	char line[300];

	if (ret == -ENOMEM)
		return err_nomem(err);
	if (ret < 0)
		compare_differs(c, inode, "%s cannot be read: %s", what, btrkit_error_format(why, line, sizeof(line)));
	return 0;
}

int compare_subvolumes(struct compare *c, struct btrkit_error *err)
{
	const struct source *s = c->fill->source;
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	struct btrkit_subvolume v = { 0 };
	uint64_t id = 0, after = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < s->num_subvolumes; i++) {
		const struct source_subvolume *wanted = &s->subvolumes[i];

		ret = btrkit_subvolume_next(c->fs, after, &v, &why);
		if (ret)
			break;
		if (v.id != mkfs_fill_subvolume_id(i))
			compare_differs(c, wanted->root, "subvolume %" PRIu64 " instead of %" PRIu64, v.id,
					mkfs_fill_subvolume_id(i));
		if (v.read_only != wanted->readonly)
			compare_differs(c, wanted->root, "subvolume is %sread-only", v.read_only ? "" : "not ");
		after = v.id;
	}
	if (ret == 1)
		compare_differs(c, SOURCE_NONE, "fewer subvolumes than %" PRIu32, s->num_subvolumes);
	else if (!ret && !(ret = btrkit_subvolume_next(c->fs, after, &v, &why)))
		compare_differs(c, SOURCE_NONE, "unexpected subvolume %" PRIu64, v.id);
	if (ret >= 0)
		ret = subvolume_default(c->fs, &id, &why);
	if (!ret && id != mkfs_fill_default(c->fill))
		compare_differs(c, SOURCE_NONE, "default subvolume %" PRIu64 " instead of %" PRIu64, id,
				mkfs_fill_default(c->fill));
	return compare_unreadable(c, SOURCE_NONE, ret, "subvolumes", &why, err);
}

static void compare_number(struct compare *c, uint32_t inode, const char *what, uint64_t found, uint64_t wanted)
{
	if (found != wanted)
		compare_differs(c, inode, "%s %" PRIu64 " instead of %" PRIu64, what, found, wanted);
}

static void compare_time(struct compare *c, uint32_t inode, const char *what, struct btrkit_time found,
			 struct source_time wanted)
{
	if (found.sec != wanted.sec || found.nsec != wanted.nsec)
		compare_differs(c, inode, "%s %" PRId64 ".%09" PRIu32 " instead of %" PRId64 ".%09" PRIu32, what,
				found.sec, found.nsec, wanted.sec, wanted.nsec);
}

static void compare_attributes(struct compare *c, uint32_t inode, const struct btrkit_inode *found)
{
	const struct source_inode *n = &c->fill->source->inodes[inode];
	const struct mkfs_times t = mkfs_fill_times(c->fill, n);
	const bool device = S_ISCHR(n->mode) || S_ISBLK(n->mode);

	if (found->mode != n->mode)
		compare_differs(c, inode, "mode %06" PRIo32 " instead of %06" PRIo32, found->mode, n->mode);
	compare_number(c, inode, "uid", found->uid, n->uid);
	compare_number(c, inode, "gid", found->gid, n->gid);
	compare_number(c, inode, "device", found->rdev, device ? makedev(n->rdev >> 20, n->rdev & 0xfffff) : 0);
	compare_number(c, inode, "link count", found->nlink, n->nlink);
	compare_number(c, inode, "size", found->size, mkfs_fill_size(c->fill->source, n));
	compare_number(c, inode, "flags", found->flags, mkfs_fill_inode_flags(c->fill->source, n));
	compare_time(c, inode, "atime", found->atime, t.atime);
	compare_time(c, inode, "mtime", found->mtime, t.mtime);
	compare_time(c, inode, "ctime", found->ctime, t.ctime);
	compare_time(c, inode, "otime", found->otime, t.otime);
}

struct comparing_xattrs {
	struct compare *c;
	uint32_t inode;
	bool *met;
};

static int by_name(const void *key, const void *at)
{
	const struct btrkit_xattr *x = key;
	const struct source_xattr *y = at;
	const int order = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);

	return order ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static int take_xattr(void *ctx, const struct btrkit_xattr *x)
{
	struct comparing_xattrs *k = ctx;
	const struct source_xattrs *wanted = k->c->fill->source->inodes[k->inode].xattrs;
	const struct source_xattr *y = wanted ? bsearch(x, wanted->at, wanted->n, sizeof(*y), by_name) : NULL;
	char name[COMPARE_NAME_SHOWN];

	source_escape(x->name, x->name_len, name, sizeof(name));
	if (!y || k->met[y - wanted->at]) {
		compare_differs(k->c, k->inode, "unexpected attribute %s", name);
		return 0;
	}
	k->met[y - wanted->at] = true;
	if (x->value_len != y->value_len || (x->value_len && memcmp(x->value, y->value, x->value_len) != 0))
		compare_differs(k->c, k->inode, "attribute %s has a different value", name);
	return 0;
}

static int compare_xattrs(struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *n = &c->fill->source->inodes[inode];
	const uint32_t count = n->xattrs ? n->xattrs->n : 0;
	struct comparing_xattrs k = { c, inode, count ? calloc(count, sizeof(bool)) : NULL };
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	char name[COMPARE_NAME_SHOWN];
	int ret;

	if (count && !k.met)
		return err_nomem(err);
	ret = btrkit_inode_xattrs(c->fs, mkfs_fill_root(n), mkfs_fill_objectid(n), take_xattr, &k, &why);
	for (uint32_t i = 0; !ret && i < count; i++) {
		source_escape(n->xattrs->at[i].name, n->xattrs->at[i].name_len, name, sizeof(name));
		if (!k.met[i])
			compare_differs(c, inode, "attribute %s is missing", name);
	}
	free(k.met);
	return compare_unreadable(c, inode, ret, "attributes", &why, err);
}

/* State while the entries of a directory are compared. They arrive in index order, like those of the source. */
struct comparing_names {
	struct compare *c;
	uint32_t inode;
	struct tree_root root;
	uint32_t next; /* number of the next expected entry in the directory */
	struct btrkit_error *err;
};

/* Compares an entry that was found by index, and looks its name up by hash, too. */
static int compare_name(const struct comparing_names *k, const struct btrkit_dir_entry *e,
			const struct source_entry *wanted)
{
	const struct source *s = k->c->fill->source;
	const struct source_inode *n = &s->inodes[wanted->inode];
	struct inode_place at = { k->root, mkfs_fill_objectid(&s->inodes[k->inode]) };
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	char line[300];
	int ret;

	if (e->root != mkfs_fill_root(n) || e->inode != mkfs_fill_objectid(n))
		compare_name_differs(k->c, k->inode, e->name, e->name_len,
				     "inode %" PRIu64 " of subvolume %" PRIu64 " instead of %" PRIu64 " of %" PRIu64,
				     e->inode, e->root, mkfs_fill_objectid(n), mkfs_fill_root(n));
	if (e->type != IFTODT(n->mode))
		compare_name_differs(k->c, k->inode, e->name, e->name_len, "type %u instead of %u", e->type,
				     IFTODT(n->mode));
	ret = path_step(k->c->fs, &at, e->name, e->name_len, &why);
	if (ret == -ENOMEM)
		return err_nomem(k->err);
	if (ret)
		compare_name_differs(k->c, k->inode, e->name, e->name_len, "cannot be looked up by name: %s",
				     ret < 0 ? btrkit_error_format(&why, line, sizeof(line)) : "no such entry");
	else if (at.root.id != mkfs_fill_root(n) || at.inode != mkfs_fill_objectid(n))
		compare_name_differs(k->c, k->inode, e->name, e->name_len, "lookup by name finds a different inode");
	return 0;
}

static int take_name(void *ctx, const struct btrkit_dir_entry *e)
{
	struct comparing_names *k = ctx;
	const struct source *s = k->c->fill->source;
	const struct source_inode *n = &s->inodes[k->inode];
	const struct source_entry *wanted = &s->entries[n->first + k->next];

	for (; k->next < n->count && wanted->index < e->index; k->next++, wanted++)
		compare_name_differs(k->c, k->inode, wanted->name, wanted->len, "is missing");
	if (k->next == n->count || wanted->index != e->index) {
		compare_name_differs(k->c, k->inode, e->name, e->name_len, "should not exist");
		return 0;
	}
	k->next++;
	if (wanted->len == e->name_len && !memcmp(wanted->name, e->name, e->name_len))
		return compare_name(k, e, wanted);
	compare_name_differs(k->c, k->inode, wanted->name, wanted->len, "is missing");
	compare_name_differs(k->c, k->inode, e->name, e->name_len, "should not exist");
	return 0;
}

static int compare_names(struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const struct source *s = c->fill->source;
	const struct source_inode *n = &s->inodes[inode];
	struct comparing_names k = { .c = c, .inode = inode, .err = err };
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	int ret;

	ret = fs_find_root(c->fs, mkfs_fill_root(n), &k.root, NULL, &why);
	if (!ret)
		ret = btrkit_inode_entries(c->fs, mkfs_fill_root(n), mkfs_fill_objectid(n), take_name, &k, &why);
	for (; !ret && k.next < n->count; k.next++) {
		const struct source_entry *wanted = &s->entries[n->first + k.next];

		compare_name_differs(c, inode, wanted->name, wanted->len, "is missing");
	}
	return compare_unreadable(c, inode, ret, "names", &why, err);
}

static int compare_target(struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *n = &c->fill->source->inodes[inode];
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	size_t got = 0;
	int ret;

	ret = btrkit_file_open(c->fs, mkfs_fill_root(n), mkfs_fill_objectid(n), &f, &why);
	if (!ret) {
		ret = btrkit_file_read(f, 0, c->found, DIGEST_UNIT, &got, &why);
		btrkit_file_close(f);
	}
	if (!ret && (got != n->size || memcmp(c->found, n->text, got) != 0))
		compare_differs(c, inode, "symbolic link has a different target");
	return compare_unreadable(c, inode, ret, "target", &why, err);
}

int compare_inode(struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const struct source_inode *n = &c->fill->source->inodes[inode];
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	struct btrkit_inode found;
	int ret;

	ret = btrkit_inode_get(c->fs, mkfs_fill_root(n), mkfs_fill_objectid(n), &found, &why);
	if (ret)
		return compare_unreadable(c, inode, ret, "inode", &why, err);
	compare_attributes(c, inode, &found);
	ret = compare_refs(c, inode, err);
	if (!ret)
		ret = compare_xattrs(c, inode, err);
	if (!ret && (found.mode & S_IFMT) != (n->mode & S_IFMT))
		return 0;
	if (!ret && S_ISDIR(n->mode))
		ret = compare_names(c, inode, err);
	if (!ret && S_ISLNK(n->mode))
		ret = compare_target(c, inode, err);
	return ret;
}

/* Reads contents from the source file again. */
static int read_wanted(struct compare *c, uint32_t inode, int fd, uint64_t offset, size_t len, struct btrkit_error *err)
{
	char path[COMPARE_NAME_SHOWN];
	size_t done = 0;

	source_path(c->fill->source, inode, path, sizeof(path));
	while (done < len) {
		const ssize_t n = pread(fd, c->wanted + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return err_system(err, errno, "%s: cannot be read", path);
		if (!n)
			return err_system(err, ESTALE, "%s: was truncated while it was verified", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Compares one unit. @return 0; 1: it differs, and the rest of the file need not be compared; <0 */
static int compare_unit(struct compare *c, uint32_t inode, struct btrkit_file *f, int fd, uint64_t offset, size_t len,
			struct btrkit_error *err)
{
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	size_t got;
	int ret;

	ret = btrkit_file_read(f, offset, c->found, len, &got, &why);
	if (ret) {
		c->unread = true;
		ret = compare_unreadable(c, inode, ret, "contents", &why, err);
		return ret ? ret : 1;
	}
	/* A wrong size was reported with the inode. */
	if (got < len) {
		c->unread = true;
		return 1;
	}
	if (fd < 0) {
		c->units[c->num_units].offset = offset;
		c->units[c->num_units++].digest = digest_unit(c->found, len);
		return 0;
	}
	ret = read_wanted(c, inode, fd, offset, len, err);
	if (ret || !memcmp(c->found, c->wanted, len))
		return ret;
	compare_differs(c, inode, "byte %" PRIu64 " differs",
			offset + compare_first_difference(c->found, c->wanted, len));
	return 1;
}

int compare_contents(struct compare *c, uint32_t inode, uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	const struct source *s = c->fill->source;
	const struct source_inode *n = &s->inodes[inode];
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	int fd = -1, ret;

	c->num_units = 0;
	c->unread = false;
	ret = btrkit_file_open(c->fs, mkfs_fill_root(n), mkfs_fill_objectid(n), &f, &why);
	if (ret) {
		c->unread = true;
		return compare_unreadable(c, inode, ret, "contents", &why, err);
	}
	if (!source_streams(s)) {
		fd = source_file_open(s, n->contents, err);
		ret = fd < 0 ? fd : 0;
	}
	for (uint64_t at = 0; !ret && at < len; at += DIGEST_UNIT)
		ret = compare_unit(c, inode, f, fd, offset + at, len - at < DIGEST_UNIT ? len - at : DIGEST_UNIT, err);
	if (ret >= 0 && fd >= 0)
		ret = source_file_unchanged(s, n->contents, fd, err);
	if (fd >= 0)
		close(fd);
	btrkit_file_close(f);
	return ret < 0 ? ret : 0;
}

void compare_digest(struct compare *c, uint32_t inode, uint64_t digest)
{
	const struct mkfs_contents *k = c->fill->contents;
	const uint32_t contents = c->fill->source->inodes[inode].contents;

	if (digest != (contents < k->num_file_digests ? k->file_digests[contents] : 0))
		compare_differs(c, inode, "contents differ");
}
