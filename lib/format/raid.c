// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/raid.h"

#include <stddef.h>

static const struct raid_profile profiles[] = {
	{ BG_RAID10, "RAID10", 2, 0, 2, 0 },
	{ BG_RAID1, "RAID1", 2, 0, 2, 2 },
	{ BG_RAID1C3, "RAID1C3", 3, 0, 3, 3 },
	{ BG_RAID1C4, "RAID1C4", 4, 0, 4, 4 },
	{ BG_DUP, "DUP", 2, 0, 2, 2 },
	{ BG_RAID0, "RAID0", 1, 0, 1, 0 },
	{ BG_RAID5, "RAID5", 1, 1, 2, 0 },
	{ BG_RAID6, "RAID6", 1, 2, 3, 0 },
	{ 0, "single", 1, 0, 1, 1 },
};

const struct raid_profile *raid_profile_find(uint64_t flags)
{
	size_t i = 0;

	while (profiles[i].flag && !(flags & profiles[i].flag))
		i++;
	return &profiles[i];
}
