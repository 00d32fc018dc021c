// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_fields.h"

#include <stdlib.h>
#include <string.h>

#include <btrkit/dump.h>

#include "lib/base/err.h"

const char *const *btrkit_dump_fields(size_t *count)
{
	*count = dump_fields_count;
	return dump_fields;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

/* Finds a name in a list, or adds it. @used: number of nodes in use */
static struct emit_filter *take(struct dump_choice *c, size_t *used, const struct emit_filter **list, const char *name)
{
	struct emit_filter *node;

	for (const struct emit_filter *at = *list; at; at = at->next)
		if (!strcmp(at->name, name))
			return c->nodes + (at - c->nodes);
	node = &c->nodes[(*used)++];
	*node = (struct emit_filter){ .name = name, .next = *list };
	*list = node;
	return node;
}

/* Adds a path. Its dots are replaced by null bytes. */
static void add(struct dump_choice *c, size_t *used, const struct emit_filter **list, char *path)
{
	for (;;) {
		char *dot = strchr(path, '.');
		const size_t before = *used;
		struct emit_filter *node;

		if (dot)
			*dot = '\0';
		node = take(c, used, list, path);
		/* A member that is kept as a whole needs no choice of its members. */
		if (*used == before && !node->children)
			return;
		if (!dot) {
			node->children = NULL;
			return;
		}
		list = &node->children;
		path = dot + 1;
	}
}

static size_t count_parts(const char *list)
{
	size_t n = 1;

	for (; *list; list++)
		n += *list == '.' || *list == ',';
	return n;
}

int dump_choose(const char *list, struct dump_choice *ret, struct btrkit_error *err)
{
	struct dump_choice c = { NULL, calloc(count_parts(list), sizeof(*c.nodes)), strdup(list) };
	const struct emit_filter *first = NULL;
	size_t used = 0;
	char *next, *name;

	if (!c.nodes || !c.names) {
		dump_choice_free(&c);
		return err_nomem(err);
	}
	for (name = c.names; name; name = next) {
		next = strchr(name, ',');
		if (next)
			*next++ = '\0';
		if (!bsearch(name, dump_fields, dump_fields_count, sizeof(*dump_fields), compare)) {
			const int r = err_set(err, BTRKIT_INVALID, "unknown member '%s'", name);

			dump_choice_free(&c);
			return r;
		}
		add(&c, &used, &first, name);
	}
	c.filter = first;
	*ret = c;
	return 0;
}

void dump_choice_free(struct dump_choice *choice)
{
	free(choice->nodes);
	free(choice->names);
	*choice = (struct dump_choice){ 0 };
}
