// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints references to an address, and the names of inodes, as text or JSON Lines. */
#include "lib/print/references.h"

#include <btrkit/reference.h>
#include <btrkit/subvolume.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/emit_list.h"

struct paths {
	struct btrkit_fs *fs;
	struct emit *e;
	struct btrkit_error *err;
	unsigned flags;
	btrkit_lost_fn lost; /* NULL: the first damage ends the work */
	void *lost_ctx;
	bool damaged;
	/* The subvolume whose path is cached, followed by a slash unless it is empty. */
	uint64_t root;
	char *prefix;
	size_t prefix_len;
	/* What the next paths belong to. */
	const struct btrkit_reference *ref; /* NULL: an inode without a reference */
	uint64_t inode;
	uint64_t printed;
};

static int keep_prefix(void *ctx, const char *path, size_t len)
{
	struct paths *p = ctx;
	char *prefix = malloc(len + 1);

	if (!prefix)
		return err_nomem(p->err);
	memcpy(prefix, path, len);
	prefix[len] = '/';
	free(p->prefix);
	p->prefix = prefix;
	p->prefix_len = len ? len + 1 : 0;
	return 0;
}

/* Finds the path of the subvolume. @return 0; -ENOENT: no path, or not a subvolume; <0 */
static int enter(struct paths *p, uint64_t root)
{
	int ret;

	if (p->prefix && p->root == root)
		return 0;
	ret = btrkit_subvolume_path(p->fs, root, keep_prefix, p, p->err);
	if (!ret)
		p->root = root;
	return ret;
}

static void print_place(struct paths *p, uint64_t root)
{
	struct emit *e = p->e;

	emit_object(e, NULL);
	emit_u64(e, "root", "", root);
	emit_u64(e, "inode", "", p->inode);
	if (p->ref) {
		emit_u64(e, "offset", "", p->ref->offset);
		emit_u64(e, "length", "", p->ref->length);
		emit_u64(e, "extent_offset", "", p->ref->extent_offset);
	}
}

static int print_path(void *ctx, const char *path, size_t len)
{
	struct paths *p = ctx;
	/* The path of a subvolume's root directory is that of the subvolume. */
	const size_t before = p->prefix_len - (!len && p->prefix_len);
	struct emit *e = p->e;
	char *whole = malloc(before + len + 1);

	if (!whole)
		return err_nomem(p->err);
	memcpy(whole, p->prefix, before);
	memcpy(whole + before, path, len);
	p->printed++;
	if (e->form == EMIT_JSON) {
		print_place(p, p->root);
		emit_name(e, "path", "", whole, before + len);
		emit_object_end(e);
	} else {
		emit_name_escaped(e, NULL, "", whole, before + len, false);
		emit_text(e, "\n");
	}
	free(whole);
	return emit_failed(e);
}

static void print_reference(struct paths *p, const struct btrkit_reference *ref)
{
	struct emit *e = p->e;

	if (e->form == EMIT_JSON) {
		print_place(p, ref->root);
		emit_object_end(e);
		return;
	}
	emit_u64(e, NULL, "inode ", ref->inode);
	emit_u64(e, NULL, " offset ", ref->offset);
	emit_u64(e, NULL, " root ", ref->root);
	emit_text(e, "\n");
}

/* A btrkit_lost_fn. */
static int lose(void *ctx, const struct btrkit_error *what)
{
	struct paths *p = ctx;

	p->damaged = true;
	return p->lost(p->lost_ctx, what);
}

static int tell_reference(void *ctx, const struct btrkit_reference *ref)
{
	struct paths *p = ctx;
	struct btrkit_error own = BTRKIT_ERROR_INIT, *err = p->err;
	const uint64_t before = p->printed;
	int ret = 0;

	p->ref = ref;
	p->inode = ref->inode;
	if (!(p->flags & PRINT_NO_PATHS)) {
		p->err = &own;
		ret = enter(p, ref->root);
		if (!ret)
			ret = btrkit_inode_paths_around(p->fs, ref->root, ref->inode, print_path,
							p->lost ? lose : NULL, p, p->err);
		p->err = err;
		/* A subvolume that is being deleted has no path, and neither do other trees. */
		if (ret && ret != -ENOENT && (!p->lost || ret == -ENOMEM || emit_failed(p->e)))
			return err_pass(err, &own, ret);
		if (ret && ret != -ENOENT) {
			ret = lose(p, &own);
			if (ret)
				return ret;
		}
	}
	if (p->printed == before)
		print_reference(p, ref);
	return emit_failed(p->e);
}

int print_logical_references(struct btrkit_fs *fs, uint64_t address, unsigned flags, enum btrkit_format format,
			     btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err)
{
	struct emit e;
	struct paths p = { .fs = fs, .e = &e, .err = err, .flags = flags, .lost = lost, .lost_ctx = lost_ctx };
	int ret;

	ret = list_begin(&e, format, "logical-resolve", write, ctx, err);
	if (ret)
		return ret;
	ret = btrkit_logical_references_around(fs, address, flags & ~PRINT_NO_PATHS, tell_reference,
					       lost ? lose : NULL, &p, err);
	free(p.prefix);
	return list_end(&e, ret);
}

int print_inode_paths(struct btrkit_fs *fs, uint64_t root, uint64_t inode, enum btrkit_format format,
		      btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	struct emit e;
	struct paths p = { .fs = fs, .e = &e, .err = err, .lost = lost, .lost_ctx = lost_ctx, .inode = inode };
	int ret;

	ret = list_begin(&e, format, "inode-resolve", write, ctx, err);
	if (ret)
		return ret;
	ret = enter(&p, root);
	if (!ret)
		ret = btrkit_inode_paths_around(fs, root, inode, print_path, lost ? lose : NULL, &p, err);
	if (!ret && !p.printed && !p.damaged)
		ret = err_set(err, BTRKIT_NOT_FOUND, "inode %" PRIu64 " of subvolume %" PRIu64 " has no name", inode,
			      root);
	free(p.prefix);
	return list_end(&e, ret);
}
