/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_QGROUPS_H
#define BTRKIT_CHECK_QGROUPS_H

/* What the quota tree says, and those who count what it should. */

#include "lib/check/state.h"
#include "lib/format/items/qgroup.h"

/* A qgroup. Its number has the level in the upper 16 bits; those of level 0 have their subvolume's. */
struct check_qgroup {
	uint64_t id;
	struct qgroup_info said;
	bool has_info, has_limit;
	uint64_t rfer, excl; /* as they were counted */
	/* Of squota.c: a member belongs elsewhere too; the same could come here in two ways, and is not judged. */
	bool forked, unsure;
};

/* One belongs to another, of a higher level. */
struct check_relation {
	uint64_t member, parent;
};

struct check_quota {
	struct check *c;
	struct qgroup_status status;
	bool has_status;
	struct check_list groups;    /* struct check_qgroup, by number */
	struct check_list relations; /* struct check_relation, by member */
};

static inline uint64_t qgroup_level(uint64_t id)
{
	return id >> 48;
}

/* The qgroup with that number, or NULL. */
struct check_qgroup *check_qgroup_find(const struct check_quota *q, uint64_t id);

/* qgroup_count.c: by who reaches what. @return 0; 1: that cannot be said; <0 */
int check_qgroup_count(struct check_quota *q);
/* squota.c: by who made what. @return as above */
int check_squota_count(struct check_quota *q);

#endif
