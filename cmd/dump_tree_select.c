// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options of dump-tree that select items and blocks. */
#include <string.h>

#include "cmd/dump_tree.h"

/* Parses A or A..B, where A or B may be omitted. */
static void take_numbers(const struct command *cmd, const char *option, char *s, uint64_t *min, uint64_t *max)
{
	char *dots = strstr(s, "..");

	*min = 0;
	*max = UINT64_MAX;
	if (dots)
		*dots = '\0';
	if (*s || !dots)
		*min = cmd_number(cmd, option, s, false);
	if (!dots)
		*max = *min;
	else if (dots[2])
		*max = cmd_number(cmd, option, dots + 2, false);
	if (*min > *max)
		cmd_usage_error(cmd, "%s: the range is reversed", option);
}

/* Parses types separated by commas. */
static void take_types(const struct command *cmd, struct dump_choice *choice, char *s)
{
	char *rest = s, *name;

	while ((name = strsep(&rest, ","))) {
		uint8_t type;

		if (btrkit_item_type_parse(name, &type))
			cmd_usage_error(cmd, "--type: '%s' is not an item type", name);
		/* Without duplicates, the array has room for all types. */
		if (!memchr(choice->types, type, choice->select.num_types))
			choice->types[choice->select.num_types++] = type;
	}
}

static void take_levels(const struct command *cmd, struct btrkit_dump_select *s, char *arg)
{
	uint64_t min, max;

	take_numbers(cmd, "--level", arg, &min, &max);
	s->min_level = min < 255 ? (unsigned)min : 255;
	s->max_level = max < 255 ? (unsigned)max : 255;
	s->flags |= BTRKIT_DUMP_BY_LEVEL;
}

bool dump_choose(const struct command *cmd, struct dump_choice *choice, int c, char *arg)
{
	struct btrkit_dump_select *s = &choice->select;

	switch (c) {
	case OPT_KEY:
		if (btrkit_dump_range_parse(arg, &choice->ranges[s->num_ranges++]))
			cmd_usage_error(cmd, "--key: '%s' is not a key range", arg);
		break;
	case OPT_TYPE:
		take_types(cmd, choice, arg);
		break;
	case OPT_INODE:
		s->inode = cmd_number(cmd, "--inode", arg, false);
		s->flags |= BTRKIT_DUMP_BY_INODE;
		break;
	case OPT_PATH:
		s->path = cmd_path(cmd, arg);
		break;
	case OPT_SUBVOL:
		choice->subvol = cmd_path(cmd, arg);
		break;
	case OPT_WITH_EXTENTS:
		s->flags |= BTRKIT_DUMP_WITH_EXTENTS;
		break;
	case OPT_BYTENR:
		take_numbers(cmd, "--bytenr", arg, &s->min_bytenr, &s->max_bytenr);
		s->flags |= BTRKIT_DUMP_BY_BYTENR;
		break;
	case OPT_GENERATION:
		take_numbers(cmd, "--generation", arg, &s->min_generation, &s->max_generation);
		s->flags |= BTRKIT_DUMP_BY_GENERATION;
		break;
	case OPT_LEVEL:
		take_levels(cmd, s, arg);
		break;
	default:
		return false;
	}
	choice->any = true;
	return true;
}
