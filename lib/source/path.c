// SPDX-License-Identifier: LGPL-2.1-or-later
/* Paths of inodes, and messages with them. */
#include "lib/source/layers.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"

#define CUT "..."

/* A string that is built from right to left in its buffer. */
struct backwards {
	char *begin, *at;
	bool cut;
};

static void put_byte(struct backwards *b, uint8_t byte)
{
	char text[8];
	size_t len = 1;

	if (byte == '\\')
		len = (size_t)snprintf(text, sizeof(text), "\\\\");
	else if (byte >= 0x20 && byte < 0x7f)
		text[0] = (char)byte;
	else
		len = (size_t)snprintf(text, sizeof(text), "\\%03o", byte);
	if (b->cut || (size_t)(b->at - b->begin) < len) {
		b->cut = true;
		return;
	}
	b->at -= len;
	memcpy(b->at, text, len);
}

static void put_name(struct backwards *b, const char *name, size_t len)
{
	while (len && !b->cut)
		put_byte(b, (uint8_t)name[--len]);
}

static void put_inode(struct backwards *b, const struct source *s, uint32_t inode)
{
	while (!b->cut && s->inodes[inode].name != SOURCE_NONE) {
		const struct source_entry *e = &s->entries[s->inodes[inode].name];

		put_name(b, e->name, e->len);
		inode = e->parent;
		if (s->inodes[inode].name != SOURCE_NONE)
			put_byte(b, '/');
	}
}

static struct backwards backwards_in(char *buf, size_t size)
{
	buf[size - 1] = '\0';
	return (struct backwards){ buf, buf + size - 1, false };
}

static void come_forward(struct backwards *b, size_t size)
{
	const size_t cut = sizeof(CUT) - 1;

	if (b->cut && size > cut) {
		if ((size_t)(b->at - b->begin) < cut)
			b->at = b->begin + cut;
		b->at -= cut;
		memcpy(b->at, CUT, cut);
	}
	memmove(b->begin, b->at, size - (size_t)(b->at - b->begin));
}

void source_path(const struct source *s, uint32_t inode, char *buf, size_t size)
{
	struct backwards b;

	if (!size)
		return;
	b = backwards_in(buf, size);
	put_inode(&b, s, inode);
	if (!*b.at && !b.cut)
		put_byte(&b, '.');
	come_forward(&b, size);
}

void source_path_of_name(const struct source *s, uint32_t parent, const char *name, size_t len, char *buf, size_t size)
{
	struct backwards b = backwards_in(buf, size);

	put_name(&b, name, len);
	if (s->inodes[parent].name != SOURCE_NONE) {
		put_byte(&b, '/');
		put_inode(&b, s, parent);
	}
	come_forward(&b, size);
}

void source_escape(const char *bytes, size_t len, char *buf, size_t size)
{
	struct backwards b = backwards_in(buf, size);

	put_name(&b, bytes, len);
	come_forward(&b, size);
}

const char *source_next_name(const char **path, size_t *len)
{
	const char *name;

	do {
		*path += strspn(*path, "/");
		name = *path;
		*len = strcspn(name, "/");
		*path += *len;
	} while (*len == 1 && *name == '.');
	return name;
}

const char *source_name(const struct source *s)
{
	const char *path = source_layer_path(s, s->state->layer);

	return s->state->opts->kind != BTRKIT_SOURCE_DIRECTORY && !strcmp(path, "-") ? "standard input" : path;
}

ssize_t source_full_path(const struct source *s, uint32_t inode, char **buf, size_t *max)
{
	size_t len = 0;
	char *at;

	for (uint32_t i = inode; s->inodes[i].name != SOURCE_NONE; i = s->entries[s->inodes[i].name].parent)
		len += s->entries[s->inodes[i].name].len + 1u;
	if (len + 1 > *max) {
		char *grown = realloc(*buf, 2 * len + 256);

		if (!grown)
			return -ENOMEM;
		*buf = grown;
		*max = 2 * len + 256;
	}
	/* Put a slash after every name. The last one is replaced by the terminating zero byte. */
	at = *buf + len;
	for (uint32_t i = inode; s->inodes[i].name != SOURCE_NONE; i = s->entries[s->inodes[i].name].parent) {
		const struct source_entry *e = &s->entries[s->inodes[i].name];

		*--at = '/';
		at -= e->len;
		memcpy(at, e->name, e->len);
	}
	if (len)
		len--;
	(*buf)[len] = '\0';
	return (ssize_t)len;
}

int source_vfail(const char *path, struct btrkit_error *err, int errnum, const char *fmt, va_list args)
{
	char text[sizeof(err->message)];

	vsnprintf(text, sizeof(text), fmt, args);
	if (errnum == ENOMEM)
		return err_nomem(err);
	if (errnum == EUCLEAN)
		return err_corrupt(err, NULL, "%s: %s", path, text);
	err_set(err,
		errnum == ENOENT ? BTRKIT_NOT_FOUND :
		errnum == EINVAL ? BTRKIT_INVALID :
				   BTRKIT_SYSTEM,
		"%s: %s", path, text);
	if (err)
		err->err = -errnum;
	return -errnum;
}

int source_fail(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *fmt, ...)
{
	char path[PATH_SHOWN];
	va_list args;
	int ret;

	source_path(s, inode, path, sizeof(path));
	va_start(args, fmt);
	ret = source_vfail(path, err, errnum, fmt, args);
	va_end(args);
	return ret;
}

int source_fail_name(const struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err,
		     int errnum, const char *fmt, ...)
{
	char path[PATH_SHOWN];
	va_list args;
	int ret;

	source_path_of_name(s, parent, name, len, path, sizeof(path));
	va_start(args, fmt);
	ret = source_vfail(path, err, errnum, fmt, args);
	va_end(args);
	return ret;
}
