// SPDX-License-Identifier: LGPL-2.1-or-later
/* The features for -O. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mkfs.h"

static const struct feature {
	const char *name;
	uint64_t incompat, compat_ro;
	const char *what;	/* NULL: known, but not supported */
	bool alias;
	unsigned flags;		/* BTRKIT_MKFS_* */
} features[] = {
	{ "mixed-bg", MKFS_MIXED_GROUPS, 0, "data and metadata in the same block groups", false },
	{ "quota", 0, 0, "what subvolumes take is counted (qgroups)", false, BTRKIT_MKFS_QUOTA },
	{ "extref", 0x40, 0, "many hard links to a file from one directory", false },
	{ "raid56", 0x80, 0, "profiles RAID5 and RAID6, which set it themselves", false },
	{ "skinny-metadata", 0x100, 0, "smaller extent items of tree blocks", false },
	{ "no-holes", 0x200, 0, "no extent items for holes in files", false },
	{ "fst", 0, 0x3, "the same as free-space-tree", true },
	{ "free-space-tree", 0, 0x3, "free space in a tree of its own", false },
	{ "raid1c34", 0x800, 0, "profiles RAID1C3 and RAID1C4, which set it themselves", false },
	{ "zoned", 0, 0, NULL, false },
	{ "bgt", 0, 0x8, "the same as block-group-tree", true },
	{ "block-group-tree", 0, 0x8, "block groups in a tree of their own (needs no-holes, free-space-tree)", false },
	{ "squota", 0x10000, 0, "the same as quota in a simpler and faster way", false },
};

#define FEATURES (sizeof(features) / sizeof(features[0]))
static bool is_set(const struct feature *f, uint64_t incompat, uint64_t compat_ro, bool quota)
{
	return f->incompat & incompat || f->compat_ro & compat_ro || (f->flags && quota);
}

void mkfs_print_features(uint64_t incompat, uint64_t compat_ro, bool quota)
{
	const char *between = "";

	for (size_t i = 0; i < FEATURES; i++) {
		if (features[i].alias || !is_set(&features[i], incompat, compat_ro, quota))
			continue;
		printf("%s%s", between, features[i].name);
		between = ", ";
	}
}

/* Whether -R accepts it. */
static bool is_runtime(const char *name)
{
	return !strcmp(name, "quota") || !strcmp(name, "free-space-tree");
}

static void list_features(const struct command *cmd, bool old)
{
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];
		const bool set = is_set(f, BTRKIT_MKFS_INCOMPAT_DEFAULT, BTRKIT_MKFS_COMPAT_RO_DEFAULT, false);

		if (f->what && (!old || is_runtime(f->name)))
			printf("%-20s- %s%s\n", f->name, f->what,
			       !f->alias && set ? " (default)" : "");
	}
	exit(cmd_close_stdout(cmd, EXIT_DONE));
}

static void take_feature(const struct command *cmd, struct btrkit_mkfs_options *o, const char *name, bool old)
{
	const char *option = old ? "--runtime-features" : "--features";
	bool without = *name == '^';

	name += without;
	if (!without && !strcmp(name, "list-all"))
		list_features(cmd, old);
	if (old && !is_runtime(name))
		cmd_usage_error(cmd, "%s: '%s' is unknown", option, name);
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		if (strcmp(name, f->name))
			continue;
		if (!f->what && !without)
			cmd_usage_error(cmd, "%s: '%s' is not supported", option, name);
		o->incompat = without ? o->incompat & ~f->incompat : o->incompat | f->incompat;
		o->compat_ro = without ? o->compat_ro & ~f->compat_ro : o->compat_ro | f->compat_ro;
		o->flags = without ? o->flags & ~f->flags : o->flags | f->flags;
		return;
	}
	cmd_usage_error(cmd, "%s: '%s' is unknown", option, name);
}

void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list, bool old)
{
	char *rest;

	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		take_feature(cmd, o, name, old);
}
