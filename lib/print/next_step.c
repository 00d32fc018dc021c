// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/print/next_step.h"

#include <stdio.h>

#include "lib/base/text.h"
#include "lib/format/ids.h"
#include "lib/format/raid.h"

#define PROFILES_TEXT 96

/* The profiles among the bits, separated by commas. */
static const char *name_profiles(uint64_t bits, char *text)
{
	*text = '\0';
	if (bits & BG_SINGLE)
		text_add(text, PROFILES_TEXT, "single");
	for (uint64_t bit = 1; bit < BG_SINGLE; bit <<= 1)
		if (bits & bit & BG_PROFILE_MASK)
			text_add(text, PROFILES_TEXT, "%s%s", *text ? ", " : "", raid_profile_find(bit)->name);
	return text;
}

void print_stale_step(uint64_t unmirrored, char *text, size_t size)
{
	char profiles[PROFILES_TEXT];

	if (!unmirrored)
		snprintf(text, size, "; mount it with all devices and run btrfs scrub");
	else if (unmirrored & (BG_METADATA | BG_SYSTEM))
		snprintf(text, size, "; no other device given has its metadata (%s), so Linux may refuse it: "
			 "btrkit extract copies what can be read", name_profiles(unmirrored, profiles));
	else
		snprintf(text, size, "; mount it with all devices and run btrfs scrub, which cannot repair its data "
			 "(%s): no other device given has that", name_profiles(unmirrored, profiles));
}
