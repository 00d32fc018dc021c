// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/layers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"

#define LEAVE_OUT "; --without-xattr leaves it out"

static int compare(const void *a, const void *b)
{
	const struct source_xattr *x = a, *y = b;
	const uint32_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
	const int c = memcmp(x->name, y->name, n);

	return c ? c : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static uint32_t hash(const struct xattr_build *b)
{
	uint32_t h = b->n;

	for (uint32_t i = 0; i < b->n; i++) {
		h = crc32c(h, b->at[i].name, b->at[i].name_len);
		h = crc32c(h, b->at[i].value, b->at[i].value_len);
	}
	return h;
}

static bool same_value(const struct source_xattr *a, const struct source_xattr *b)
{
	return a->value_len == b->value_len && !memcmp(a->value, b->value, a->value_len);
}

static bool all_equal(const struct source_xattr *a, const struct source_xattr *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (compare(&a[i], &b[i]) || !same_value(&a[i], &b[i]))
			return false;
	return true;
}

static bool equal(const struct source_xattrs *known, const struct xattr_build *b)
{
	return known->n == b->n && all_equal(known->at, b->at, b->n);
}

bool source_xattrs_equal(const struct source_xattrs *a, const struct source_xattrs *b)
{
	if (!a || !b)
		return a == b;
	return a->n == b->n && all_equal(a->at, b->at, a->n);
}

/* Copies the collected xattrs with names and values into one allocation. */
static const struct source_xattrs *keep(struct source *s, const struct xattr_build *b)
{
	struct source_xattrs *x;
	size_t size = sizeof(*x) + b->n * sizeof(x->at[0]);
	char *at;

	for (uint32_t i = 0; i < b->n; i++)
		size += b->at[i].name_len + 1u + b->at[i].value_len;
	x = pool_take(&s->state->pool, size, 8);
	if (!x)
		return NULL;
	x->n = b->n;
	at = (char *)&x->at[b->n];
	for (uint32_t i = 0; i < b->n; i++) {
		x->at[i] = b->at[i];
		x->at[i].name = memcpy(at, b->at[i].name, b->at[i].name_len + 1u);
		at += b->at[i].name_len + 1u;
		x->at[i].value = at;
		if (b->at[i].value_len)
			memcpy(at, b->at[i].value, b->at[i].value_len);
		at += b->at[i].value_len;
	}
	return x;
}

/* Discards the collected xattrs. */
static void drop(struct xattr_build *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		free((void *)b->at[i].name);
	b->n = 0;
	b->inode = SOURCE_NONE;
}

void source_xattrs_drop(struct source *s)
{
	drop(&s->state->xattrs);
	free(s->state->xattrs.at);
	s->state->xattrs.at = NULL;
}

/* Sorts the collected xattrs. @return 0; -EINVAL: one has two values */
static int sort(const struct source *s, struct xattr_build *b, struct btrkit_error *err)
{
	uint32_t n = 0;

	qsort(b->at, b->n, sizeof(b->at[0]), compare);
	for (uint32_t i = 1; i < b->n; i++)
		if (!compare(&b->at[i - 1], &b->at[i]) && !same_value(&b->at[i - 1], &b->at[i]))
			return source_fail(s, b->inode, err, EINVAL, "duplicate attribute %.80s", b->at[i].name);
	/* Archives of bsdtar contain each attribute in two forms. */
	for (uint32_t i = 0; i < b->n; i++) {
		if (n && !compare(&b->at[n - 1], &b->at[i]))
			free((void *)b->at[i].name);
		else
			b->at[n++] = b->at[i];
	}
	b->n = n;
	return 0;
}

int source_xattrs_flush(struct source *s, struct btrkit_error *err)
{
	struct xattr_build *b = &s->state->xattrs;
	const struct source_xattrs **known;
	const uint32_t inode = b->inode;
	int ret;

	if (inode == SOURCE_NONE)
		return 0;
	ret = sort(s, b, err);
	if (ret)
		return ret;
	known = &s->state->known[hash(b) & (XATTRS_KNOWN - 1)];
	if (!*known || !equal(*known, b)) {
		const struct source_xattrs *kept = keep(s, b);

		if (!kept)
			return err_nomem(err);
		*known = kept;
	}
	s->inodes[inode].xattrs = *known;
	drop(b);
	return 0;
}

/* Checks that an inode may have the attribute. Attributes that Linux could neither show nor remove are refused. */
static int check_xattr(const struct source *s, uint32_t inode, const char *name, const void *value, size_t len,
		       struct btrkit_error *err)
{
	const size_t name_len = strlen(name), room = s->state->limits.xattr;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int ret;

	if (!name_len || name_len > SOURCE_NAME_MAX)
		return source_fail(s, inode, err, EINVAL, "attribute name of %zu bytes" LEAVE_OUT, name_len);
	if (len > room || name_len + len > room)
		return source_fail(s, inode, err, E2BIG,
				   "attribute %.40s is too large: %zu bytes, maximum is %zu" LEAVE_OUT, name,
				   len, room - name_len);
	ret = source_check_xattr(name, value, len, s->inodes[inode].mode, &own);
	if (!ret || ret == -ENOMEM)
		return ret ? err_nomem(err) : 0;
	return source_fail(s, inode, err, -ret, "attribute %.80s: %s" LEAVE_OUT, name, own.message);
}

/*
 * Returns the name under which overlayfs shows an attribute of a layer. It keeps its own for itself, and escapes those
 * of an overlay within it: trusted.overlay.overlay.opaque is shown as trusted.overlay.opaque. @return NULL: not at all
 */
static const char *shown_name(const char *name, char room[SOURCE_NAME_MAX + 1])
{
	static const char again[] = "overlay.";
	const char *word = source_overlay_word(name);
	const size_t begin = word ? (size_t)(word - name) : 0, more = sizeof(again) - 1;

	if (!word)
		return name;
	if (strncmp(word, again, more) != 0 || strlen(name) - more > SOURCE_NAME_MAX)
		return NULL;
	memcpy(room, name, begin);
	strcpy(room + begin, word + more);
	return room;
}

int source_add_xattr(struct source *s, uint32_t inode, const char *name, const void *value, size_t len,
		     struct btrkit_error *err)
{
	struct xattr_build *b = &s->state->xattrs;
	char room[SOURCE_NAME_MAX + 1], *copy;
	size_t name_len;
	int ret;

	if (source_layered(s))
		name = shown_name(name, room);
	if (!name || !source_takes_xattr(s, name))
		return 0;
	name_len = strlen(name);
	ret = check_xattr(s, inode, name, value, len, err);
	if (ret)
		return ret;
	if (b->inode != inode) {
		ret = source_xattrs_flush(s, err);
		if (ret < 0)
			return ret;
		if (s->inodes[inode].xattrs)
			return source_fail(s, inode, err, EINVAL, "attributes are not contiguous");
		b->inode = inode;
	}
	if (b->n == b->max) {
		struct source_xattr *grown = reallocarray(b->at, b->max * 2u + 8, sizeof(*grown));

		if (!grown)
			return err_nomem(err);
		b->at = grown;
		b->max = b->max * 2 + 8;
	}
	copy = malloc(name_len + 1 + len);
	if (!copy)
		return err_nomem(err);
	memcpy(copy, name, name_len + 1);
	if (len)
		memcpy(copy + name_len + 1, value, len);
	b->at[b->n++] = (struct source_xattr){ copy, copy + name_len + 1, (uint32_t)name_len, (uint32_t)len };
	return 0;
}
