// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the usage of each directory. */
#include <btrkit/usage_paths.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/print/usage_impl.h"

/* Far more than Linux supports; longer paths are omitted. */
#define PATH_BYTES_MAX 65536u

/* Path of the last printed directory, and the lengths of its parents' paths. */
struct trail {
	char path[PATH_BYTES_MAX];
	size_t *ends;
	size_t *dirs;
	size_t n, room;
};

static int push(struct trail *t, size_t dir, size_t end)
{
	if (t->n == t->room) {
		const size_t room = t->room ? 2 * t->room : 64;
		size_t *ends = reallocarray(t->ends, room, sizeof(*ends)), *dirs;

		if (!ends)
			return -ENOMEM;
		t->ends = ends;
		dirs = reallocarray(t->dirs, room, sizeof(*dirs));
		if (!dirs)
			return -ENOMEM;
		t->dirs = dirs;
		t->room = room;
	}
	t->dirs[t->n] = dir;
	t->ends[t->n++] = end;
	return 0;
}

/* Continues from the last directory to this one. @return 0; -ENOMEM */
static int follow(struct trail *t, size_t dir, const struct btrkit_usage_path *d)
{
	size_t end;

	while (t->n && t->dirs[t->n - 1] != d->parent)
		t->n--;
	if (!t->n) {
		/* The top-level subvolume is "/"; without a location, the path has no leading slash. */
		t->path[0] = '/';
		return push(t, dir, d->root == BTRKIT_TOP_LEVEL ? 1 : 0);
	}
	end = t->ends[t->n - 1];
	if (end > PATH_BYTES_MAX || end + 1 + d->name_len > PATH_BYTES_MAX)
		return push(t, dir, PATH_BYTES_MAX + 1);
	if (end && t->path[end - 1] != '/')
		t->path[end++] = '/';
	memcpy(t->path + end, d->name, d->name_len);
	return push(t, dir, end + d->name_len);
}

static void text_head(struct usage_printer *p)
{
	static const char *const columns[] = { "total", "unshared", "set shared", "frees" };
	struct emit *e = &p->emit;

	for (size_t i = 0; i < 4; i++)
		emit_textf(e, "%s%*s", i ? "  " : "", p->width, columns[i]);
	emit_textf(e, "  %8s  path\n", "id");
}

static void text_path(struct usage_printer *p, const struct btrkit_usage_path *d, const char *path, size_t len)
{
	const uint64_t sizes[] = { d->total, d->unshared, d->set_shared, d->frees };
	struct emit *e = &p->emit;

	for (size_t i = 0; i < 4; i++) {
		char size[SIZE_BYTES];

		emit_textf(e, "%s%*s", i ? "  " : "", p->width, usage_size_text(p, sizes[i], size));
	}
	emit_u64_wide(e, NULL, "  ", d->root, 8);
	if (len)
		emit_name_escaped(e, NULL, "  ", path, len, false);
	else
		emit_text(e, "  (no path)");
	emit_text(e, "\n");
}

static void print_path(struct usage_printer *p, const struct btrkit_usage_path *d, const char *path, size_t len)
{
	struct emit *e = &p->emit;

	if (p->opts.format == BTRKIT_FORMAT_TEXT) {
		text_path(p, d, path, len);
		return;
	}
	emit_object(e, NULL);
	emit_u64(e, "root", "path\t", d->root);
	emit_u64(e, "inode", "\t", d->inode);
	emit_u64(e, "depth", "\t", d->depth);
	emit_u64(e, "total", "\t", d->total);
	emit_u64(e, "unshared", "\t", d->unshared);
	emit_u64(e, "set_shared", "\t", d->set_shared);
	emit_u64(e, "frees", "\t", d->frees);
	if (len)
		emit_name_escaped(e, "path", "\t", path, len, false);
	else
		emit_text(e, "\t");
	emit_text(e, "\n");
	emit_object_end(e);
}

int usage_printer_paths(struct usage_printer *p, const struct btrkit_usage_paths *paths,
			       struct btrkit_error *err)
{
	const size_t n = btrkit_usage_paths_num(paths);
	struct trail *t = calloc(1, sizeof(*t));
	struct emit *e;
	int ret = 0;

	if (!t)
		return err_nomem(err);
	e = usage_print_begin(p);
	if (p->opts.format == BTRKIT_FORMAT_TEXT)
		text_head(p);
	for (size_t i = 0; !ret && i < n && !emit_failed(e); i++) {
		struct btrkit_usage_path d;
		size_t end;

		btrkit_usage_paths_get(paths, i, &d);
		ret = follow(t, i, &d);
		if (ret)
			break;
		end = t->ends[t->n - 1];
		print_path(p, &d, t->path, end <= PATH_BYTES_MAX ? end : 0);
	}
	free(t->ends);
	free(t->dirs);
	free(t);
	return ret ? err_nomem(err) : emit_failed(e);
}
