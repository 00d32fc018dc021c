/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_QUOTA_H
#define BTRKIT_CHECK_QUOTA_H

/* Contents of the quota tree, and the functions that count what it should contain. */

#include "lib/check/state.h"
#include "lib/format/items/qgroup.h"

/* A qgroup. The upper 16 bits of its id are the level. At level 0, the rest is the subvolume id. */
struct check_qgroup {
	uint64_t id;
	struct qgroup_info said;
	bool has_info, has_limit;
	uint64_t rfer, excl; /* as counted by the check */
	/* For squota.c. forked: a member has other parents too; unsure: may include a member twice, so not checked. */
	bool forked, unsure;
};

/* A qgroup is a member of another one of a higher level. */
struct check_relation {
	uint64_t member, parent;
};

struct check_quota {
	struct check *c;
	struct qgroup_status status;
	bool has_status;
	struct array groups;	/* struct check_qgroup, by number */
	struct array relations; /* struct check_relation, by member */
};

static inline uint64_t qgroup_level(uint64_t id)
{
	return id >> 48;
}

/* Finds a qgroup by id, or returns NULL. */
struct check_qgroup *check_qgroup_find(const struct check_quota *q, uint64_t id);

#endif
