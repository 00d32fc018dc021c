// SPDX-License-Identifier: LGPL-2.1-or-later
/* The features that -O names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mkfs.h"

static const struct feature {
	const char *name;
	uint64_t incompat, compat_ro;
	const char *what;	/* NULL: a feature of mkfs.btrfs that is known and refused */
	bool alias;
} features[] = {
	{ "mixed-bg", MKFS_MIXED_GROUPS, 0, "data and metadata in the same block groups", false },
	{ "quota", 0, 0, NULL, false },
	{ "extref", 0x40, 0, "many hard links to a file from one directory", false },
	{ "raid56", 0, 0, NULL, false },
	{ "skinny-metadata", 0x100, 0, "smaller extent items of tree blocks", false },
	{ "no-holes", 0x200, 0, "no extent items for holes in files", false },
	{ "fst", 0, 0x3, "the same as free-space-tree", true },
	{ "free-space-tree", 0, 0x3, "free space in a tree of its own", false },
	{ "raid1c34", 0, 0, NULL, false },
	{ "zoned", 0, 0, NULL, false },
	{ "bgt", 0, 0x8, "the same as block-group-tree", true },
	{ "block-group-tree", 0, 0x8, "block groups in a tree of their own (needs no-holes, free-space-tree)", false },
	{ "squota", 0, 0, NULL, false },
};

#define FEATURES (sizeof(features) / sizeof(features[0]))
#define NO_HOLES 0x200u
#define FREE_SPACE_TREE 0x1u
#define BLOCK_GROUP_TREE 0x8u

static bool is_set(const struct feature *f, uint64_t incompat, uint64_t compat_ro)
{
	return f->incompat & incompat || f->compat_ro & compat_ro;
}

void mkfs_print_features(uint64_t incompat, uint64_t compat_ro)
{
	const char *between = "";

	for (size_t i = 0; i < FEATURES; i++) {
		if (features[i].alias || !is_set(&features[i], incompat, compat_ro))
			continue;
		printf("%s%s", between, features[i].name);
		between = ", ";
	}
}

static void list_features(const struct command *cmd)
{
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		if (f->what)
			printf("%-20s- %s%s\n", f->name, f->what,
			       !f->alias && is_set(f, BTRKIT_MKFS_INCOMPAT_DEFAULT, BTRKIT_MKFS_COMPAT_RO_DEFAULT) ?
				       " (default)" : "");
	}
	exit(cmd_close_stdout(cmd->name, EXIT_DONE));
}

static void take_feature(const struct command *cmd, struct btrkit_mkfs_options *o, const char *name)
{
	bool without = *name == '^';

	name += without;
	if (!without && !strcmp(name, "list-all"))
		list_features(cmd);
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		if (strcmp(name, f->name))
			continue;
		if (!f->what && !without)
			cmd_usage_error(cmd, "--features: '%s' is not supported", name);
		o->incompat = without ? o->incompat & ~f->incompat : o->incompat | f->incompat;
		o->compat_ro = without ? o->compat_ro & ~f->compat_ro : o->compat_ro | f->compat_ro;
		return;
	}
	cmd_usage_error(cmd, "--features: '%s' is unknown", name);
}

void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list)
{
	char *rest;

	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		take_feature(cmd, o, name);
}

void mkfs_warn(const struct command *cmd, const struct mkfs_request *req)
{
	const struct btrkit_mkfs_options *o = &req->opts;
	struct cmd_note note = { cmd, req->device };
	char line[128];

	if (o->compat_ro & BLOCK_GROUP_TREE && (!(o->incompat & NO_HOLES) || !(o->compat_ro & FREE_SPACE_TREE)))
		cmd_note(&note, "without block-group-tree, which needs no-holes and free-space-tree");
	if (o->sectorsize == MKFS_SECTORSIZE || o->sectorsize == sysconf(_SC_PAGESIZE))
		return;
	snprintf(line, sizeof(line), "sectorsize %" PRIu32 " is not this machine's page size: Linux may refuse it",
		 o->sectorsize);
	cmd_note(&note, line);
}
