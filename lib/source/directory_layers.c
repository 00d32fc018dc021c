// SPDX-License-Identifier: LGPL-2.1-or-later
/* What overlayfs would make of the names in a directory that is a layer. */
#include "lib/source/directory.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/source/layers.h"

/* Returns the value of an attribute of overlayfs. @return NULL: the file has none of this name */
static const char *overlay_value(const struct scan_worker *w, const struct scan_found *f, const char *word,
				 size_t *len)
{
	for (size_t at = f->xattrs; at < f->xattrs_end;) {
		struct scan_xattr head;
		const char *name = w->bytes + at + sizeof(head), *found;

		memcpy(&head, w->bytes + at, sizeof(head));
		found = source_overlay_word(name);
		if (found && !strcmp(found, word)) {
			*len = head.value_len;
			return name + head.name_len + 1;
		}
		at += sizeof(head) + head.name_len + 1 + head.value_len;
	}
	return NULL;
}

static bool opaque_is(const struct scan_worker *w, const struct scan_found *f, char wanted)
{
	size_t len;
	const char *value = overlay_value(w, f, "opaque", &len);

	return value && len == 1 && *value == wanted;
}

bool scan_has_file_whiteouts(const struct scan_worker *w, const struct scan_found *f)
{
	return opaque_is(w, f, 'x');
}

bool scan_is_opaque(const struct scan_worker *w, const struct scan_found *f)
{
	return opaque_is(w, f, 'y');
}

static bool is_whiteout(const struct scan_worker *w, const struct scan_dir *d, const struct scan_found *f)
{
	size_t len;

	if (S_ISCHR(f->attr.mode) && !f->attr.rdev)
		return true;
	return d->file_whiteouts && S_ISREG(f->attr.mode) && !f->attr.size && overlay_value(w, f, "whiteout", &len);
}

/* Refuses what points to other places of the layers below, which are not looked at. */
static int check(const struct source *s, const struct scan_worker *w, const struct scan_dir *d,
		 const struct scan_found *f, struct btrkit_error *err)
{
	size_t len;

	if (S_ISDIR(f->attr.mode) && overlay_value(w, f, "redirect", &len))
		return source_fail_name(s, d->inode, f->name, strlen(f->name), err, EOPNOTSUPP,
					"a directory renamed in an overlay cannot be merged with the layers below "
					"(attribute overlay.redirect)");
	if (S_ISREG(f->attr.mode) && overlay_value(w, f, "metacopy", &len))
		return source_fail_name(s, d->inode, f->name, strlen(f->name), err, EOPNOTSUPP,
					"its contents are in a layer below (attribute overlay.metacopy)");
	return 0;
}

int scan_layered(struct source *s, const struct scan_worker *w, const struct scan_dir *d, const struct scan_found *f,
		 uint32_t *inode, struct btrkit_error *err)
{
	const size_t len = strlen(f->name);
	enum layer_view view;
	int ret;

	if (is_whiteout(w, d, f)) {
		ret = source_layer_remove(s, d->inode, f->name, len, err);
		return ret ? ret : SCAN_HIDDEN;
	}
	ret = check(s, w, d, f, err);
	if (ret)
		return ret;
	view = source_layer_look(s, d->inode, f->name, len, S_ISDIR(f->attr.mode), inode);
	return view == LAYER_NEW ? 0 : view == LAYER_MERGED ? SCAN_MERGED : SCAN_HIDDEN;
}
