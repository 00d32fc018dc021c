// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/du.h"

bool du_subset_take(const struct command *cmd, struct du_subset *s, char *text)
{
	const size_t len = strlen(text), most = len / 2 + 1;

	if (!len || *text == ',' || text[len - 1] == ',' || strstr(text, ",,"))
		cmd_usage_error(cmd, "--freed-by: '%s' has an empty element", text);
	s->text = text;
	s->ids = calloc(most, sizeof(*s->ids));
	s->owners = calloc(most, sizeof(*s->owners));
	return s->ids && s->owners;
}

void du_subset_free(struct du_subset *s)
{
	free(s->ids);
	free(s->owners);
}

/* Finds the id of a subvolume. A number is accepted as it is, and checked when all subvolumes are known. */
static int find_id(struct btrkit_fs *fs, const char *name, uint64_t *ret, struct btrkit_error *err)
{
	struct btrkit_error unknown = BTRKIT_ERROR_INIT;
	int r = btrkit_subvolume_find(fs, name, ret, &unknown);

	if (!r)
		return 0;
	/* A subvolume that is being deleted has no path. */
	if (r == -ENOENT && *name && !name[strspn(name, "0123456789")]) {
		errno = 0;
		*ret = strtoull(name, NULL, 10);
		if (!errno)
			return 0;
	}
	*err = unknown;
	return r;
}

int du_subset_resolve(struct btrkit_fs *fs, struct du_subset *s, struct btrkit_error *err)
{
	char *rest, *name;

	for (name = strtok_r(s->text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		int r = find_id(fs, name, &s->ids[s->n], err);

		if (r)
			return r;
		s->n++;
	}
	return 0;
}

static int compare_owners(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int du_subset_find(const struct btrkit_usage *u, struct du_subset *s, struct btrkit_error *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t owner;

		if (btrkit_usage_find(u, s->ids[i], &owner)) {
			*err = (struct btrkit_error){ .code = BTRKIT_NOT_FOUND, .err = -ENOENT };
			snprintf(err->message, sizeof(err->message), "no subvolume %" PRIu64, s->ids[i]);
			return -ENOENT;
		}
		s->owners[i] = (uint32_t)owner;
	}
	qsort(s->owners, s->n, sizeof(*s->owners), compare_owners);
	for (size_t i = 0; i < s->n; i++)
		if (!kept || s->owners[kept - 1] != s->owners[i])
			s->owners[kept++] = s->owners[i];
	s->n = kept;
	return 0;
}
