/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_DUMP_TREE_H
#define CMD_DUMP_TREE_H

/* The parts of dump-tree. */

#include "cmd/cmd.h"

enum {
	OPT_FOLLOW = 256,
	OPT_BFS,
	OPT_DFS,
	OPT_HIDE_NAMES,
	OPT_CSUM_HEADERS,
	OPT_CSUM_ITEMS,
	OPT_KEY,
	OPT_TYPE,
	OPT_INODE,
	OPT_PATH,
	OPT_SUBVOL,
	OPT_WITH_EXTENTS,
	OPT_BYTENR,
	OPT_GENERATION,
	OPT_LEVEL,
	OPT_FORMAT,
	OPT_FIELDS,
	OPT_RAW,
	OPT_COPY,
	OPT_SCAN,
	OPT_DUMP,
	OPT_COMPAT,
};

/* Selection of items and blocks. @ranges has room for as many ranges as there are arguments. */
struct dump_choice {
	struct btrkit_dump_select select;
	struct btrkit_dump_range *ranges;
	uint8_t types[256];
	const char *subvol;	/* where the path starts, or NULL */
	bool any;
};

/* Output other than trees. */
struct dump_other {
	bool raw, scan, dump, copy_given;
	uint64_t bytenr;
	unsigned copy;	/* 0 is the first */
};

/* In dump_tree_other.c: */
/* @return whether the option is one of these */
bool dump_take_other(const struct command *cmd, struct dump_other *other, int c, const char *arg);
/* Reports conflicting options as usage errors. */
void dump_check_other(const struct command *cmd, const struct dump_other *other,
		      const struct btrkit_dump_options *opts);
int dump_other(struct btrkit_fs *fs, const struct dump_other *other, const struct btrkit_dump_options *opts,
	       struct cmd_output *out, struct btrkit_error *err);

/* In dump_fields.c: */
/* @arg may be modified. @return whether the option is one of these */
bool dump_choose(const struct command *cmd, struct dump_choice *choice, int c, char *arg);

#endif
