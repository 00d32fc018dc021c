/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_FIELDS_H
#define BTRKIT_DUMP_DUMP_FIELDS_H

/* Selects members of the JSON lines of dump-tree. */

#include <btrkit/error.h>

#include "lib/base/emit.h"

/* All members by path, sorted by strcmp(). Generated from the schema by the build. */
extern const char *const dump_fields[];
extern const size_t dump_fields_count;

struct dump_choice {
	const struct emit_filter *filter;	/* for emit_keep() */
	struct emit_filter *nodes;
	char *names;
};

/* @list: paths separated by commas. @return 0; -EINVAL: empty or unknown path; -ENOMEM */
int dump_choose(const char *list, struct dump_choice *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_choice_free(struct dump_choice *choice);

#endif
