// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/members.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/source/layers.h"

const char *member_path_wrong(const char *path)
{
	const char *name;
	size_t len;

	while ((name = source_next_name(&path, &len)), len)
		if (len == 2 && !memcmp(name, "..", 2))
			return "path with .. leads out of the tree";
	return NULL;
}

int member_find(struct source *s, const char *path, const struct source_attr *implicit, struct member *ret,
		struct btrkit_error *err)
{
	size_t len, next_len;
	const char *name = source_next_name(&path, &len), *next;
	uint32_t dir = 0;

	if (!len) {
		*ret = (struct member){ .parent = SOURCE_NONE };
		return 0;
	}
	while ((next = source_next_name(&path, &next_len)), next_len) {
		uint32_t found = source_find(s, dir, name, len);

		if (source_layered(s) && source_layer_look(s, dir, name, len, true, &found) >= LAYER_ATTRIBUTES)
			return MEMBER_HIDDEN;
		if (found == SOURCE_NONE) {
			const int failed = implicit ? source_add(s, dir, name, len, implicit, &found, err) :
						      source_excludes(s, dir, name, len, err);

			if (failed)
				return failed;
			if (!implicit)
				return -ENOENT;
			s->inodes[found].bits |= BIT_IMPLICIT;
		}
		dir = found;
		name = next;
		len = next_len;
	}
	*ret = (struct member){ dir, name, len };
	return 0;
}

uint32_t member_inode(struct source *s, const char *path)
{
	struct member m;
	uint32_t found;

	if (member_find(s, path, NULL, &m, NULL))
		return SOURCE_NONE;
	if (m.parent == SOURCE_NONE)
		return 0;
	found = source_find(s, m.parent, m.name, m.len);
	return found != SOURCE_NONE && s->inodes[found].layer == s->state->layer ? found : SOURCE_NONE;
}

int member_add(struct source *s, const struct member *m, const struct source_attr *a, uint32_t *inode,
	       struct btrkit_error *err)
{
	const bool top = m->parent == SOURCE_NONE;
	uint32_t found = top ? 0 : source_find(s, m->parent, m->name, m->len);
	int ret;

	if (found == SOURCE_NONE)
		return source_add(s, m->parent, m->name, m->len, a, inode, err);
	if (!(s->inodes[found].bits & BIT_IMPLICIT))
		return source_fail(s, found, err, EEXIST, "duplicate entry");
	ret = source_set_attr(s, found, a, err);
	if (!ret)
		*inode = found;
	return ret;
}

enum member_whiteout member_whiteout(const struct source *s, const struct member *m, const struct source_attr *a)
{
	static const char prefix[] = ".wh.", twice[] = ".wh..wh.", opaque[] = ".wh..wh..opq";

	if (m->parent == SOURCE_NONE || (s->state->opts->flags & BTRKIT_SOURCE_WHITEOUTS))
		return WHITEOUT_NONE;
	if (m->len == sizeof(opaque) - 1 && !memcmp(m->name, opaque, m->len))
		return WHITEOUT_OPAQUE;
	if (m->len >= sizeof(twice) - 1 && !memcmp(m->name, twice, sizeof(twice) - 1))
		return WHITEOUT_OTHER;
	if (m->len >= sizeof(prefix) - 1 && !memcmp(m->name, prefix, sizeof(prefix) - 1))
		return WHITEOUT_NAME;
	return a && S_ISCHR(a->mode) && !a->rdev ? WHITEOUT_DEVICE : WHITEOUT_NONE;
}
