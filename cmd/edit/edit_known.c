// SPDX-License-Identifier: LGPL-2.1-or-later
/* Directories of the last path, which the next path often begins with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"

/*
 * What is known of the last path. After its first @end bytes, for each of the @n marks, the directory that was reached
 * was the last of @above in e->above.
 */
struct edit_known {
	char *path;
	size_t room_path;
	struct mark {
		size_t end, above;
	} *marks;
	size_t n, room;
};

int edit_know(struct edit *e, struct btrkit_error *err)
{
	e->known = calloc(1, sizeof(*e->known));
	return e->known ? 0 : edit_fail(err, ENOMEM, "paths");
}

void edit_forget(struct edit *e)
{
	if (e->known) {
		free(e->known->path);
		free(e->known->marks);
	}
	free(e->known);
	e->known = NULL;
}

void edit_known_go_up(struct edit *e, size_t above)
{
	struct edit_known *k = e->known;
	size_t kept = 0;

	for (size_t i = 0; k && i < k->n; i++)
		if (k->marks[i].above <= above)
			k->marks[kept++] = k->marks[i];
	if (k)
		k->n = kept;
}

int edit_known_add(struct edit *e, size_t end, size_t above, struct btrkit_error *err)
{
	struct edit_known *k = e->known;

	if (!k)
		return 0;
	if (k->n == k->room) {
		const size_t room = k->room ? 2 * k->room : 64;
		struct mark *more = reallocarray(k->marks, room, sizeof(*more));

		if (!more)
			return edit_fail(err, ENOMEM, k->path);
		k->marks = more;
		k->room = room;
	}
	k->marks[k->n++] = (struct mark){ end, above };
	return 0;
}

int edit_known_find(struct edit *e, const char *path, size_t *end, size_t *above, struct btrkit_error *err)
{
	struct edit_known *k = e->known;
	const size_t size = strlen(path) + 1;
	size_t equal = 0;

	if (!k)
		return 0;
	while (k->path && k->path[equal] && k->path[equal] == path[equal])
		equal++;
	/* The last name is not skipped, and no name that only begins like a known one. */
	while (k->n && (k->marks[k->n - 1].end > equal || path[k->marks[k->n - 1].end] != '/'))
		k->n--;
	if (size > k->room_path) {
		char *more = realloc(k->path, 2 * size);

		if (!more)
			return edit_fail(err, ENOMEM, path);
		k->path = more;
		k->room_path = 2 * size;
	}
	memcpy(k->path, path, size);
	if (k->n) {
		*end = k->marks[k->n - 1].end;
		*above = k->marks[k->n - 1].above;
	}
	return 0;
}
