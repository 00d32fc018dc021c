// SPDX-License-Identifier: LGPL-2.1-or-later
/* The features for -O. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/mkfs/mkfs.h"
#include "cmd/nearest.h"

/*
 * The lines of list-all have the form that mkfs.btrfs gives them, because scripts read it: a header, names, " - ", and
 * "alias" at the end of those to be skipped. The versions are those of Linux that can mount it and can write it
 * safely, and that of btrfs-progs (Linux, before 5.15) since which it is a default.
 */
static const struct feature {
	const char *name;
	uint64_t incompat, compat_ro;
	const char *what;	/* NULL: known, but not supported */
	bool alias;
	unsigned flags;		/* BTRKIT_MKFS_* */
} features[] = {
	{ "mixed-bg", MKFS_MIXED_GROUPS, 0, "data and metadata in the same block groups (compat=2.6.37, safe=2.6.37)" },
	{ "quota", 0, 0, "what subvolumes take is counted (qgroups) (compat=3.4)", .flags = BTRKIT_MKFS_QUOTA },
	{ "extref", 0x40, 0,
	  "many hard links to a file from one directory (compat=3.7, safe=3.12, default=3.12)" },
	{ "raid56", 0x80, 0, "profiles RAID5 and RAID6, which set it themselves (compat=3.9)" },
	{ "skinny-metadata", 0x100, 0,
	  "smaller extent items of tree blocks (compat=3.10, safe=3.18, default=3.18)" },
	{ "no-holes", 0x200, 0, "no extent items for holes in files (compat=3.14, safe=4.0, default=5.15)" },
	{ "fst", 0, 0x3, "free-space-tree alias", .alias = true },
	{ "free-space-tree", 0, 0x3,
	  "free space in a tree of its own (space_cache=v2) (compat=4.5, safe=4.9, default=5.15)" },
	{ "raid1c34", 0x800, 0, "profiles RAID1C3 and RAID1C4, which set it themselves (compat=5.5)" },
	{ "zoned" },
	{ "bgt", 0, 0x8, "block-group-tree alias", .alias = true },
	{ "block-group-tree", 0, 0x8,
	  "block groups in a tree of their own (needs no-holes, free-space-tree) "
	  "(compat=6.1, safe=6.6, default=6.19)" },
	{ "squota", 0x10000, 0, "quota in a simpler and faster way (compat=6.7)" },
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

/* Prints where mkfs.btrfs does when called by that name: some scripts read only the standard error. */
static void list_features(const struct command *cmd, bool old)
{
	FILE *out = cmd_is_mkfs_btrfs ? stderr : stdout;

	fprintf(out, "%s features available:\n", old ? "Runtime" : "Filesystem");
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		if (f->what && (!old || is_runtime(f->name)))
			fprintf(out, "%-20s- %s\n", f->name, f->what);
	}
	exit(cmd_close_stdout(cmd, EXIT_DONE));
}

static void take_feature(const struct command *cmd, struct btrkit_mkfs_options *o, const char *name, bool old)
{
	const char *option = old ? "--runtime-features" : "--features";
	bool without = *name == '^';
	struct cmd_nearest nearest = { .given = name + without };
	struct cmd_hint hint;

	name += without;
	if (!without && !strcmp(name, "list-all"))
		list_features(cmd, old);
	for (size_t i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		if (strcmp(name, f->name) || (old && !is_runtime(name)))
			continue;
		if (!f->what && !without)
			cmd_usage_error(cmd, "%s: '%s' is not supported", option, name);
		o->incompat = without ? o->incompat & ~f->incompat : o->incompat | f->incompat;
		o->compat_ro = without ? o->compat_ro & ~f->compat_ro : o->compat_ro | f->compat_ro;
		o->flags = without ? o->flags & ~f->flags : o->flags | f->flags;
		return;
	}
	for (size_t i = 0; i < FEATURES; i++)
		if (features[i].what && (!old || is_runtime(features[i].name)))
			cmd_nearest_try(&nearest, features[i].name);
	cmd_usage_error(cmd, "%s: '%s' is unknown%s", option, name, cmd_nearest_hint(&nearest, "", &hint));
}

void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list, bool old)
{
	char *rest;

	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		take_feature(cmd, o, name, old);
}
