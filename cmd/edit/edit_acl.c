// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes ACLs like setfacl(1), with numeric users and groups. */
#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit_acl.h"

#define ACCESS_NAME "system.posix_acl_access"
#define DEFAULT_NAME "system.posix_acl_default"
#define MODIFY 1u
#define REMOVE 2u
#define REMOVE_ALL 4u
#define REMOVE_DEFAULT 8u

/* The format of Linux: a version, then entries of tag, permissions and id, in ascending order of tags. */
#define VERSION 2
#define HEAD_SIZE 4u
#define ENTRY_SIZE 8u
#define ENTRIES_MAX ((XATTR_SIZE_MAX - HEAD_SIZE) / ENTRY_SIZE)
struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	struct entry entry[ENTRIES_MAX];
	size_t n;
	bool changed, has_mask;	/* set by the operation */
};

struct acls {
	struct acl access, of_new;
	uint8_t bytes[XATTR_SIZE_MAX];
};

static uint32_t get(const uint8_t *at, unsigned bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | at[bytes];
	return v;
}

static void put(uint8_t *at, unsigned bytes, uint32_t v)
{
	for (unsigned i = 0; i < bytes; i++, v >>= 8)
		at[i] = (uint8_t)v;
}

/* The index where an entry is, or where it has to be inserted. */
static size_t find(const struct acl *a, uint16_t tag, uint32_t id)
{
	size_t i = 0;

	while (i < a->n && (a->entry[i].tag < tag || (a->entry[i].tag == tag && a->entry[i].id < id)))
		i++;
	return i;
}

static bool is_at(const struct acl *a, size_t i, uint16_t tag, uint32_t id)
{
	return i < a->n && a->entry[i].tag == tag && a->entry[i].id == id;
}

static bool set(struct acl *a, uint16_t tag, uint32_t id, uint32_t perm)
{
	const size_t i = find(a, tag, id);

	if (!is_at(a, i, tag, id)) {
		if (a->n == ENTRIES_MAX)
			return false;
		memmove(&a->entry[i + 1], &a->entry[i], (a->n++ - i) * sizeof(a->entry[0]));
	}
	a->entry[i] = (struct entry){ tag, (uint16_t)perm, id };
	return true;
}

static void drop(struct acl *a, size_t i)
{
	memmove(&a->entry[i], &a->entry[i + 1], (--a->n - i) * sizeof(a->entry[0]));
}

static int load(struct edit *e, const struct btrkit_found *f, const char *name, struct acls *all, struct acl *ret,
		struct btrkit_error *err)
{
	struct btrkit_error none;
	size_t size;
	int r = btrkit_txn_xattr_get(e->txn, f->root, f->inode, name, all->bytes, sizeof(all->bytes), &size, &none);

	ret->n = 0;
	if (r == -ENODATA)
		return 0;
	if (r) {
		*err = none;
		return r;
	}
	if (size < HEAD_SIZE || (size - HEAD_SIZE) % ENTRY_SIZE || get(all->bytes, 4) != VERSION)
		return edit_fail(err, EINVAL, "the existing ACL is damaged");
	for (const uint8_t *at = all->bytes + HEAD_SIZE; at < all->bytes + size; at += ENTRY_SIZE)
		set(ret, (uint16_t)get(at, 2), get(at + 4, 4), get(at + 2, 2));
	return 0;
}

static int store(struct edit *e, const struct btrkit_found *f, const char *name, struct acls *all,
		 const struct acl *a, struct btrkit_error *err)
{
	uint8_t *at = all->bytes;

	if (!a->n)
		return btrkit_txn_xattr_remove(e->txn, f->root, f->inode, name, err);
	put(at, HEAD_SIZE, VERSION);
	at += HEAD_SIZE;
	for (size_t i = 0; i < a->n; i++, at += ENTRY_SIZE) {
		put(at, 2, a->entry[i].tag);
		put(at + 2, 2, a->entry[i].perm);
		put(at + 4, 4, a->entry[i].id);
	}
	return btrkit_txn_xattr_set(e->txn, f->root, f->inode, name, all->bytes, (size_t)(at - all->bytes), 0, err);
}

/* Sets the entries that correspond to a mode. */
static void set_base(struct acl *a, uint32_t mode)
{
	set(a, OWNER, NOBODY, mode >> 6 & 7);
	set(a, OWNER_GROUP, NOBODY, mode >> 3 & 7);
	set(a, OTHER, NOBODY, mode & 7);
}

/* Adds missing entries for owner, group and others to a default ACL, from the access ACL. */
static void complete_default(struct acls *all)
{
	if (!all->of_new.n)
		return;
	for (size_t i = 0; i < all->access.n; i++) {
		const struct entry *x = &all->access.entry[i];

		if (x->tag & (OWNER | OWNER_GROUP | OTHER) &&
		    !is_at(&all->of_new, find(&all->of_new, x->tag, x->id), x->tag, x->id))
			set(&all->of_new, x->tag, x->id, x->perm);
	}
}

/* Sets the mask to the union of all permissions that it limits. */
static void set_mask(struct acl *a)
{
	bool wanted = false;
	uint32_t perm = 0;

	for (size_t i = 0; i < a->n; i++) {
		wanted |= !!(a->entry[i].tag & (USER | GROUP | MASK));
		if (a->entry[i].tag & (USER | GROUP | OWNER_GROUP))
			perm |= a->entry[i].perm;
	}
	if (wanted && a->changed && !a->has_mask)
		set(a, MASK, NOBODY, perm);
}

/* Removes all but the base entries. The group keeps only what the mask allowed. */
static void keep_base(struct acl *a)
{
	const size_t group = find(a, OWNER_GROUP, NOBODY), mask = find(a, MASK, NOBODY);

	if (is_at(a, group, OWNER_GROUP, NOBODY) && is_at(a, mask, MASK, NOBODY))
		a->entry[group].perm &= a->entry[mask].perm;
	for (size_t i = a->n; i--;)
		if (a->entry[i].tag & (USER | GROUP | MASK))
			drop(a, i);
}

static int grant(struct acls *all, const struct acl_wish *w, unsigned how, struct btrkit_error *err)
{
	struct acl *a = w->of_new ? &all->of_new : &all->access;
	size_t i;

	a->changed = true;
	if (how == MODIFY) {
		a->has_mask |= w->tag == MASK;
		return set(a, w->tag, w->id, w->perm) ? 0 : edit_fail(err, ENOSPC, "too many ACL entries");
	}
	if (w->tag & (OWNER | OWNER_GROUP | OTHER))
		return edit_fail(err, EINVAL, "the entries of owner, group and others cannot be removed");
	i = find(a, w->tag, w->id);
	if (is_at(a, i, w->tag, w->id))
		drop(a, i);
	return 0;
}

static int change(struct acls *all, const char *spec, unsigned how, struct btrkit_error *err)
{
	struct acl_wish w = { 0 };
	int ret = 0;

	for (;; spec++) {
		spec = acl_take_entry(spec, how == MODIFY, &w);
		if (!spec)
			return edit_fail(err, EINVAL,
					 how == MODIFY ? "invalid ACL entry: expected [d:]u|g|m|o:[ID]:rwx" :
							 "invalid ACL entry: expected [d:]u|g|m:[ID]");
		ret = grant(all, &w, how, err);
		if (ret || !*spec)
			return ret;
	}
}

static int change_path(struct edit *e, const char *spec, const char *path, unsigned how, struct acls *all,
		       struct btrkit_error *err)
{
	struct btrkit_inode inode;
	struct btrkit_found f;
	int ret = edit_target(e, path, &f, err);

	memset(all, 0, sizeof(*all));
	if (!ret)
		ret = btrkit_txn_flush(e->txn, err);
	if (!ret)
		ret = btrkit_inode_get(e->fs, f.root, f.inode, &inode, err);
	if (!ret)
		ret = load(e, &f, ACCESS_NAME, all, &all->access, err);
	if (!ret)
		ret = load(e, &f, DEFAULT_NAME, all, &all->of_new, err);
	if (!ret && !all->access.n)
		set_base(&all->access, inode.mode);
	if (!ret && spec)
		ret = change(all, spec, how, err);
	if (ret)
		return ret;
	complete_default(all);
	set_mask(&all->access);
	set_mask(&all->of_new);
	if (how == REMOVE_ALL) {
		keep_base(&all->access);
		all->access.changed = true;
	}
	if (how & (REMOVE_ALL | REMOVE_DEFAULT)) {
		all->of_new.changed = all->of_new.n;
		all->of_new.n = 0;
	}
	if (all->access.changed)
		ret = store(e, &f, ACCESS_NAME, all, &all->access, err);
	if (!ret && all->of_new.changed)
		ret = store(e, &f, DEFAULT_NAME, all, &all->of_new, err);
	return ret;
}

int edit_setfacl(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	const bool with_spec = flags & (MODIFY | REMOVE);
	struct acls *all;
	int ret = 0;

	if (!flags || flags & (flags - 1))
		return edit_fail(err, EINVAL, "setfacl requires one of -m, -x, -b and -k");
	if (with_spec && n < 2)
		return edit_fail(err, EINVAL, "setfacl -m and -x take ENTRIES PATH...");
	all = malloc(sizeof(*all));
	if (!all)
		return edit_fail(err, ENOMEM, "ACLs");
	for (size_t i = with_spec; !ret && i < n; i++)
		ret = change_path(e, with_spec ? words[0] : NULL, words[i], flags, all, err);
	free(all);
	return ret;
}
