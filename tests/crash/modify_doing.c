// SPDX-License-Identifier: LGPL-2.1-or-later
#include "modify_doing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/hurry.h"

/* In every other transaction, do as much work as possible ahead of the commit. */
static void hurry(struct doing *d)
{
	if (!d->ret && d->txn->generation % 2)
		txn_hurry(d->txn);
}

struct doing doing_start(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = { .fs = fs, .err = err };

	d.ret = btrkit_txn_start(fs, &d.txn, err);
	hurry(&d);
	return d;
}

void doing_commit(struct doing *d)
{
	if (d->ret)
		return;
	d->ret = btrkit_txn_commit(d->txn, NULL, d->err);
	d->txn = NULL;
	if (!d->ret)
		d->ret = btrkit_txn_start(d->fs, &d->txn, d->err);
	if (!d->ret)
		btrkit_txn_set_may_commit(d->txn, d->may_commit);
	hurry(d);
}

void doing_continue(struct doing *d)
{
	enum btrkit_commit_state state = BTRKIT_COMMIT_UNKNOWN;

	if (d->ret)
		return;
	d->ret = btrkit_txn_commit_and_continue(d->txn, &state, d->err);
	if (!d->ret && state != BTRKIT_COMMIT_NEW)
		abort();
}

int doing_end(struct doing *d)
{
	if (!d->ret)
		d->ret = btrkit_txn_commit(d->txn, NULL, d->err);
	else
		btrkit_txn_abort(d->txn);
	d->txn = NULL;
	return d->ret;
}

void doing_allow(struct doing *d, int error)
{
	if (d->ret == error)
		d->ret = 0;
}

struct btrkit_found at(struct doing *d, const char *path)
{
	struct btrkit_found found = { .root = BTRKIT_TOP_LEVEL, .inode = TOP };

	while (*path && !d->ret) {
		const size_t len = strcspn(path, "/");

		d->ret = btrkit_txn_lookup(d->txn, found.root, found.inode, path, len, &found, d->err);
		path += len + (path[len] == '/');
	}
	return found;
}

struct spot spot_of(struct doing *d, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[256] = "";
	struct btrkit_found found;

	if (slash)
		memcpy(dir, path, (size_t)(slash - path));
	found = at(d, dir);
	path = slash ? slash + 1 : path;
	return (struct spot){ found.root, found.inode, path, strlen(path) };
}

static struct btrkit_found make_what(struct doing *d, const char *path, const struct btrkit_new_inode *what)
{
	const struct spot s = spot_of(d, path);
	struct btrkit_found found = { .root = s.root };

	if (!d->ret)
		d->ret = btrkit_txn_create(d->txn, s.root, s.dir, s.name, s.len, what, &found.inode, d->err);
	return found;
}

struct btrkit_found make(struct doing *d, const char *path, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode, .uid = 7, .gid = 8, .rdev = 0x105 };

	return make_what(d, path, &what);
}

void make_symlink(struct doing *d, const char *path, const char *target)
{
	const struct btrkit_new_inode what = { .mode = S_IFLNK | 0777, .target = target };

	make_what(d, path, &what);
}

void link_to(struct doing *d, const char *path, const char *name)
{
	const struct btrkit_found found = at(d, path);
	const struct spot s = spot_of(d, name);

	const struct btrkit_place to = { s.root, s.dir, s.name, s.len };

	if (!d->ret)
		d->ret = btrkit_txn_link(d->txn, found.root, found.inode, &to, d->err);
}

static void drop_what(struct doing *d, const char *path, enum btrkit_unlink_what what)
{
	const struct spot s = spot_of(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_unlink(d->txn, s.root, s.dir, s.name, s.len, what, d->err);
}

void drop(struct doing *d, const char *path)
{
	drop_what(d, path, BTRKIT_UNLINK_FILE);
}

void drop_dir(struct doing *d, const char *path)
{
	drop_what(d, path, BTRKIT_UNLINK_DIR);
}

void move(struct doing *d, const char *from, const char *to, unsigned flags)
{
	const struct spot a = spot_of(d, from), b = spot_of(d, to);
	const struct btrkit_place old = { a.root, a.dir, a.name, a.len }, new = { b.root, b.dir, b.name, b.len };

	if (!d->ret)
		d->ret = btrkit_txn_rename(d->txn, &old, &new, flags, d->err);
}

static void fill(uint8_t *bytes, size_t len, unsigned seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		if (!(seed % 2) || !(i % 512))
			x = x * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

void put_at(struct doing *d, const struct btrkit_found *f, uint64_t offset, size_t len, unsigned seed,
	    uint8_t compression)
{
	/* A single thread makes the order of operations deterministic. */
	const struct btrkit_write_options opts = { .compression = compression, .threads = 1 };
	uint8_t *bytes = malloc(len + 1);

	if (!bytes)
		d->ret = d->ret ? d->ret : -ENOMEM;
	if (!d->ret) {
		fill(bytes, len, seed);
		d->ret = btrkit_txn_write(d->txn, f->root, f->inode, offset, bytes, len, &opts, d->err);
	}
	free(bytes);
}

void put(struct doing *d, const char *path, uint64_t offset, size_t len, unsigned seed, uint8_t compression)
{
	const struct btrkit_found f = at(d, path);

	put_at(d, &f, offset, len, seed, compression);
}

void cut(struct doing *d, const char *path, uint64_t size)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_truncate(d->txn, f.root, f.inode, size, d->err);
}

void punch(struct doing *d, const char *path, uint64_t offset, uint64_t len)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_punch(d->txn, f.root, f.inode, offset, len, d->err);
}

void keep(struct doing *d, const char *path, uint64_t offset, uint64_t len, unsigned flags)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_prealloc(d->txn, f.root, f.inode, offset, len, flags, d->err);
}

void share(struct doing *d, const char *from, uint64_t offset, uint64_t len, const char *to, uint64_t there)
{
	const struct btrkit_found a = at(d, from), b = at(d, to);
	const struct btrkit_clone what = { a.root, a.inode, offset, b.root, b.inode, there, len };

	if (!d->ret)
		d->ret = btrkit_txn_clone(d->txn, &what, d->err);
}

void set_xattr(struct doing *d, const char *path, const char *name, size_t len)
{
	const struct btrkit_found f = at(d, path);
	uint8_t *value = malloc(len + 1);

	if (!value)
		d->ret = d->ret ? d->ret : -ENOMEM;
	if (!d->ret) {
		fill(value, len, (unsigned)len);
		d->ret = btrkit_txn_xattr_set(d->txn, f.root, f.inode, name, value, len, 0, d->err);
	}
	free(value);
}

void drop_xattr(struct doing *d, const char *path, const char *name)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_xattr_remove(d->txn, f.root, f.inode, name, d->err);
}

void set_flags(struct doing *d, const char *path, uint32_t flags, uint32_t mask)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_set_flags(d->txn, f.root, f.inode, flags, mask, d->err);
}

/* Owner, user 1000, group, mask, others. */
void set_acl(struct doing *d, const char *path, const char *name, unsigned perm)
{
	const struct btrkit_found f = at(d, path);
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} e[5];
	} acl = { 2, { { 1, 7, ~0u }, { 2, (uint16_t)perm, 1000 }, { 4, 5, ~0u }, { 16, 7, ~0u }, { 32, 1, ~0u } } };

	if (!d->ret)
		d->ret = btrkit_txn_xattr_set(d->txn, f.root, f.inode, name, &acl, sizeof(acl), 0, d->err);
}

void set_attr(struct doing *d, const char *path, const struct btrkit_attr *attr)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_set_attr(d->txn, f.root, f.inode, attr, d->err);
}

void subvolume(struct doing *d, const char *path)
{
	const struct spot s = spot_of(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_subvolume_create(d->txn, s.root, s.dir, s.name, s.len, NULL, NULL, d->err);
}

void snapshot(struct doing *d, const char *from, const char *to, bool read_only)
{
	const struct btrkit_new_snapshot how = { .flags = read_only ? BTRKIT_NEW_SNAPSHOT_READ_ONLY : 0 };
	const struct btrkit_found source = at(d, from);
	const struct spot s = spot_of(d, to);

	if (!d->ret)
		d->ret = btrkit_txn_subvolume_snapshot(d->txn, source.root, s.root, s.dir, s.name, s.len, &how, NULL,
						       d->err);
}

void delete_subvolume(struct doing *d, const char *path)
{
	const struct btrkit_found f = at(d, path);

	if (!d->ret)
		d->ret = btrkit_txn_subvolume_delete(d->txn, f.root, d->err);
}
