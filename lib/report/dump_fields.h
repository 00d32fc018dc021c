/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DUMP_FIELDS_H
#define BTRKIT_REPORT_DUMP_FIELDS_H

/* A choice of members of the lines that dump-tree writes as JSON. */

#include <btrkit/error.h>

#include "lib/base/emit.h"

/* Every member, by its path, in the order of strcmp(): made from the schema when the library is built. */
extern const char *const dump_fields[];
extern const size_t dump_fields_count;

struct dump_choice {
	const struct emit_filter *filter;	/* for emit_keep() */
	struct emit_filter *nodes;
	char *names;
};

/* @list: paths with commas between. @return 0; -EINVAL: none, or one that no line has; -ENOMEM */
int dump_choose(const char *list, struct dump_choice *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_choice_free(struct dump_choice *choice);

#endif
