// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define PRIORITY_MIN (-32768)
#define PRIORITY_MAX 32767
#define NONE INT32_MIN
#define SHOWN 80

struct line {
	char *path;
	size_t number;
	int32_t priority;
};

struct mkfs_sort {
	const char *file;
	struct line *lines;
	size_t n, max;
};

struct mkfs_sort *mkfs_sort_destroy(struct mkfs_sort *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		free(s->lines[i].path);
	if (s)
		free(s->lines);
	free(s);
	return NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * Extracts a path in place. A backslash escapes the next byte, and a blank ends the path. @return the rest of the line
 */
static char *take_path(char *at)
{
	char *to = at;

	while (*at && !is_blank(*at)) {
		if (*at == '\\' && at[1])
			at++;
		*to++ = *at++;
	}
	if (*at)
		at++;
	*to = '\0';
	return at;
}

static int add_line(struct mkfs_sort *s, char *text, size_t number, struct btrkit_error *err)
{
	char *path = text + strspn(text, " \t\r\n"), *rest, *end;
	long priority;

	if (!*path || *path == '#')
		return 0;
	rest = take_path(path);
	errno = 0;
	priority = strtol(rest, &end, 10);
	if (end == rest || errno || priority < PRIORITY_MIN || priority > PRIORITY_MAX || end[strspn(end, " \t\r\n")])
		return err_set(err, BTRKIT_INVALID, "%s: line %zu: expected a path and a number from %d to %d", s->file,
			       number, PRIORITY_MIN, PRIORITY_MAX);
	if (s->n == s->max) {
		struct line *more = reallocarray(s->lines, 2 * s->max + 16, sizeof(*more));

		if (!more)
			return err_nomem(err);
		s->lines = more;
		s->max = 2 * s->max + 16;
	}
	s->lines[s->n] = (struct line){ strdup(path), number, (int32_t)priority };
	if (!s->lines[s->n].path)
		return err_nomem(err);
	s->n++;
	return 0;
}

static int read_lines(struct mkfs_sort *s, FILE *f, struct btrkit_error *err)
{
	char *text = NULL;
	size_t size = 0, number = 0;
	ssize_t len;
	int ret = 0;

	while (!ret && (errno = 0, len = getline(&text, &size, f)) >= 0) {
		number++;
		if (memchr(text, 0, (size_t)len))
			ret = err_set(err, BTRKIT_INVALID, "%s: line %zu: contains a zero byte", s->file, number);
		else
			ret = add_line(s, text, number, err);
	}
	if (!ret && (ferror(f) || errno == ENOMEM))
		ret = err_system(err, errno, "%s", s->file);
	free(text);
	return ret;
}

int mkfs_sort_read(const char *file, struct mkfs_sort **ret, struct btrkit_error *err)
{
	struct mkfs_sort *s;
	FILE *f = fopen(file, "re");
	int r;

	if (!f)
		return err_system(err, errno, "%s", file);
	s = calloc(1, sizeof(*s));
	if (s)
		s->file = file;
	r = s ? read_lines(s, f, err) : err_nomem(err);
	fclose(f);
	if (r)
		mkfs_sort_destroy(s);
	else
		*ret = s;
	return r;
}

static uint32_t find(const struct source *source, const char *path)
{
	uint32_t inode = 0;
	const char *name;
	size_t len;

	while ((name = source_next_name(&path, &len)), len) {
		const uint32_t entry = source_lookup(source, inode, name, len);

		if (entry == SOURCE_NONE)
			return SOURCE_NONE;
		inode = source->entries[entry].inode;
	}
	return inode;
}

/* Fills in the priority of each inode that a line names, and NONE for others. The last line for an inode wins. */
static int own_priorities(const struct mkfs_sort *s, const struct source *source, int32_t *own,
			  struct btrkit_error *err)
{
	char shown[SHOWN];

	for (uint32_t i = 0; i < source->num_inodes; i++)
		own[i] = NONE;
	for (size_t i = 0; i < s->n; i++) {
		const struct line *l = &s->lines[i];
		const uint32_t inode = find(source, l->path);

		if (inode == SOURCE_NONE) {
			source_escape(l->path, strlen(l->path), shown, sizeof(shown));
			return err_set(err, BTRKIT_NOT_FOUND, "%s: line %zu: no %s in the source", s->file,
				       l->number, shown);
		}
		own[source->inodes[inode].contents] = l->priority;
	}
	return 0;
}

/* Returns the priority of the inode, or of its nearest ancestor that has one. */
static int32_t priority_of(const struct source *source, const int32_t *own, uint32_t inode)
{
	while (own[inode] == NONE && source->inodes[inode].name != SOURCE_NONE)
		inode = source->entries[source->inodes[inode].name].parent;
	return own[inode] == NONE ? 0 : own[inode];
}

struct file {
	int32_t priority;
	uint32_t position; /* index in source.in_order */
};

static int by_priority(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

int mkfs_sort_files(const struct mkfs_sort *s, const struct source *source, uint32_t **ret, uint32_t *count,
		    struct btrkit_error *err)
{
	int32_t *own = calloc(source->num_inodes, sizeof(*own));
	struct file *files = calloc(source->num_inodes, sizeof(*files));
	uint32_t *order = calloc(source->num_inodes, sizeof(*order)), n = 0;
	int r;

	r = own && files && order ? own_priorities(s, source, own, err) : err_nomem(err);
	for (uint32_t i = 0; !r && i < source->num_inodes; i++) {
		const uint32_t inode = source->in_order[i];

		if (S_ISREG(source->inodes[inode].mode) && source->inodes[inode].contents == inode)
			files[n++] = (struct file){ priority_of(source, own, inode), i };
	}
	if (!r)
		qsort(files, n, sizeof(*files), by_priority);
	for (uint32_t i = 0; !r && i < n; i++)
		order[i] = source->in_order[files[i].position];
	free(own);
	free(files);
	if (r) {
		free(order);
		return r;
	}
	*ret = order;
	*count = n;
	return 0;
}
