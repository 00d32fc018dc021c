// SPDX-License-Identifier: LGPL-2.1-or-later
/* What qgroups should count: the space of all sets of subvolumes that reach something, by who is in a set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/usage.h>

#include "lib/check/qgroups.h"

/* Whoever is asked for says what is in a set; nothing is asked for twice. */
struct count {
	struct check_quota *q;
	struct btrkit_usage *usage;
	uint64_t *owners; /* their subvolumes */
	size_t num_owners;
	bool *members; /* [qgroup * owners + owner]: is in it */
};

/* What is damaged was told. */
static int damage(void *ctx, const struct btrkit_error *what)
{
	(void)what;
	*(bool *)ctx = true;
	return 0;
}

static size_t number_of(const struct check_quota *q, const struct check_qgroup *g)
{
	return (size_t)(g - (const struct check_qgroup *)q->groups.at);
}

/* Levels rise from member to parent, so that as many rounds as there are levels reach all. */
static void add_members(struct count *n)
{
	const struct check_relation *r = n->q->relations.at;
	bool more = true;

	for (size_t o = 0; o < n->num_owners; o++) {
		const struct check_qgroup *g = check_qgroup_find(n->q, n->owners[o]);

		if (g)
			n->members[number_of(n->q, g) * n->num_owners + o] = true;
	}
	for (size_t round = 0; more && round <= n->q->groups.n; round++) {
		more = false;
		for (size_t i = 0; i < n->q->relations.n; i++) {
			const struct check_qgroup *member = check_qgroup_find(n->q, r[i].member);
			const struct check_qgroup *parent = check_qgroup_find(n->q, r[i].parent);

			if (!member || !parent || qgroup_level(r[i].member) >= qgroup_level(r[i].parent))
				continue;
			for (size_t o = 0; o < n->num_owners; o++) {
				bool *to = &n->members[number_of(n->q, parent) * n->num_owners + o];
				const bool is = n->members[number_of(n->q, member) * n->num_owners + o];

				more |= is && !*to;
				*to |= is;
			}
		}
	}
}

static void add_set(struct count *n, const struct btrkit_usage_set *set, const uint32_t *owners)
{
	struct check_qgroup *groups = n->q->groups.at;
	const uint64_t bytes = set->space.data + set->space.metadata;

	for (size_t i = 0; i < n->q->groups.n; i++) {
		size_t in = 0;

		for (size_t j = 0; j < set->num_owners; j++)
			in += n->members[i * n->num_owners + owners[j]];
		if (in)
			groups[i].rfer += bytes;
		if (in == set->num_owners)
			groups[i].excl += bytes;
	}
}

static int add_sets(struct count *n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint32_t *owners = calloc(n->num_owners + 1, sizeof(*owners));
	struct btrkit_usage_set set;

	if (!owners)
		return check_fail(n->q->c, err_nomem(&err), &err);
	for (size_t i = 0; i < btrkit_usage_num_sets(n->usage); i++) {
		btrkit_usage_set(n->usage, i, &set, owners, n->num_owners);
		if (set.num_owners)
			add_set(n, &set, owners);
	}
	free(owners);
	return 0;
}

/* @return 0; 1: there is somebody of whom it depends on when he is asked whether he counts; <0 */
static int count(struct count *n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	n->num_owners = btrkit_usage_num_owners(n->usage);
	n->owners = calloc(n->num_owners + 1, sizeof(*n->owners));
	n->members = calloc(n->num_owners * n->q->groups.n + 1, sizeof(*n->members));
	if (!n->owners || !n->members)
		return check_fail(n->q->c, err_nomem(&err), &err);
	for (size_t i = 0; i < n->num_owners; i++) {
		struct btrkit_usage_owner owner;

		btrkit_usage_owner(n->usage, i, &owner);
		n->owners[i] = owner.id;
		if (owner.kind == BTRKIT_USAGE_DYING || owner.kind == BTRKIT_USAGE_RELOCATION)
			return 1;
	}
	add_members(n);
	return add_sets(n);
}

int check_qgroup_count(struct check_quota *q)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct count n = { .q = q };
	bool damaged = false;
	int ret;

	opts.threads = q->c->threads;
	opts.damage = damage;
	opts.damage_ctx = &damaged;
	ret = btrkit_usage_load(q->c->fs, &opts, &n.usage, &err);
	if (ret == -ENOMEM)
		return check_fail(q->c, ret, &err);
	if (ret)
		return 1;
	ret = damaged ? 1 : count(&n);
	btrkit_usage_free(n.usage);
	free(n.owners);
	free(n.members);
	return ret;
}
