// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computes the correct counters of qgroups from the space of each set of subvolumes that share something. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/usage.h>

#include "lib/check/findings.h"
#include "lib/check/quota/qgroup_count.h"
#include "lib/check/quota/quota.h"
#include "lib/check/state.h"
#include "lib/usage/state.h"

#define NONE UINT32_MAX
#define SET_MEMORY (128ull << 20) /* initial limit for sets of owners, in bytes */
#define AT_A_TIME 64u		  /* qgroups of higher levels per pass: bits of a mask */

/* A relation to a parent, and the next one of the same member. Both are indexes. */
struct up {
	uint32_t parent, next;
};

/*
 * The filesystem determines the number of owners and qgroups, and a table of their product could be too large.
 * Qgroups of level 0 are counted in one pass over all sets; of the others, 64 in each pass.
 */
struct count {
	struct check_quota *q;
	struct btrkit_usage *usage;
	size_t num_owners;
	uint32_t *owners; /* the owners of a set */
	uint32_t *own;	  /* for each owner, the index of its qgroup of level 0, or NONE */
	/* For each qgroup: */
	uint32_t *ups;	 /* index of its first relation, or NONE */
	bool *reached;	 /* whether it has any owner as a member */
	uint64_t *masks; /* which of the current 64 it is a member of */
	struct up *up;
};

/* Damage was already reported; only note that there is some. */
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

/* Each relation is stored in both directions; take the one from member to parent, where the level rises. */
static void link_relations(struct count *n)
{
	const struct check_relation *r = n->q->relations.at;

	for (size_t i = 0; i < n->q->groups.n; i++)
		n->ups[i] = NONE;
	for (size_t i = 0; i < n->q->relations.n; i++) {
		const struct check_qgroup *member = check_qgroup_find(n->q, r[i].member);
		const struct check_qgroup *parent = check_qgroup_find(n->q, r[i].parent);

		if (!member || !parent || qgroup_level(r[i].member) >= qgroup_level(r[i].parent))
			continue;
		n->up[i] = (struct up){ (uint32_t)number_of(n->q, parent), n->ups[number_of(n->q, member)] };
		n->ups[number_of(n->q, member)] = (uint32_t)i;
	}
}

/* @return false: some tree is being dropped or relocated, and the counters depend on when Linux accounted it */
static bool find_owners(struct count *n)
{
	for (size_t i = 0; i < n->num_owners; i++) {
		struct btrkit_usage_owner owner;
		const struct check_qgroup *g;

		btrkit_usage_get_owner(n->usage, i, &owner);
		if (owner.kind == BTRKIT_USAGE_DROPPED || owner.kind == BTRKIT_USAGE_RELOCATION)
			return false;
		g = check_qgroup_find(n->q, owner.id);
		n->own[i] = g ? (uint32_t)number_of(n->q, g) : NONE;
		if (g)
			n->reached[n->own[i]] = true;
	}
	return true;
}

/* Qgroups are sorted by level, so each comes before its parents. */
static void reach(struct count *n)
{
	for (size_t i = 0; i < n->q->groups.n; i++)
		for (uint32_t u = n->reached[i] ? n->ups[i] : NONE; u != NONE; u = n->up[u].next)
			n->reached[n->up[u].parent] = true;
}

/* Adds the space of a set to the level 0 qgroups of its owners. */
static void add_to_own(struct count *n, const struct btrkit_usage_set *set)
{
	const uint64_t bytes = set->space.data + set->space.metadata;
	struct check_qgroup *groups = n->q->groups.at;

	for (size_t i = 0; i < set->num_owners; i++) {
		const uint32_t g = n->own[n->owners[i]];

		if (g != NONE)
			groups[g].rfer += bytes;
	}
	if (set->num_owners == 1 && n->own[n->owners[0]] != NONE)
		groups[n->own[n->owners[0]]].excl += bytes;
}

/* Adds to the qgroups in @chosen: referenced if any owner is a member, exclusive if all are. */
static void add_to_chosen(struct count *n, const struct btrkit_usage_set *set, const uint32_t *chosen)
{
	const uint64_t bytes = set->space.data + set->space.metadata;
	struct check_qgroup *groups = n->q->groups.at;
	uint64_t any = 0, all = UINT64_MAX;

	for (size_t i = 0; i < set->num_owners; i++) {
		const uint32_t g = n->own[n->owners[i]];
		const uint64_t mask = g == NONE ? 0 : n->masks[g];

		any |= mask;
		all &= mask;
	}
	for (; any; any &= any - 1) {
		const unsigned bit = (unsigned)__builtin_ctzll(any);

		groups[chosen[bit]].rfer += bytes;
		if (all >> bit & 1)
			groups[chosen[bit]].excl += bytes;
	}
}

/* Adds all sets. @chosen: NULL for the qgroups of level 0 */
static void add_sets(struct count *n, const uint32_t *chosen)
{
	struct btrkit_usage_set set;

	for (size_t i = 0; i < btrkit_usage_num_sets(n->usage) && !(i % 4096 == 0 && check_failed(n->q->c)); i++) {
		btrkit_usage_get_set(n->usage, i, &set, n->owners, n->num_owners);
		if (!set.num_owners)
			continue;
		if (chosen)
			add_to_chosen(n, &set, chosen);
		else
			add_to_own(n, &set);
	}
}

/* Chooses the next qgroups of higher levels with any owner, from *at on. @return their number */
static unsigned choose(struct count *n, size_t *at, uint32_t chosen[AT_A_TIME])
{
	const struct check_qgroup *groups = n->q->groups.at;
	unsigned num = 0;

	memset(n->masks, 0, n->q->groups.n * sizeof(*n->masks));
	for (; *at < n->q->groups.n && num < AT_A_TIME; ++*at) {
		if (!n->reached[*at] || !qgroup_level(groups[*at].id))
			continue;
		n->masks[*at] = 1ull << num;
		chosen[num++] = (uint32_t)*at;
	}
	for (size_t i = n->q->groups.n; i-- > 0;)
		for (uint32_t u = n->ups[i]; u != NONE; u = n->up[u].next)
			n->masks[i] |= n->masks[n->up[u].parent];
	return num;
}

static bool make_room(struct count *n)
{
	const size_t groups = n->q->groups.n;

	n->num_owners = btrkit_usage_num_owners(n->usage);
	n->owners = calloc(n->num_owners + 1, sizeof(*n->owners));
	n->own = calloc(n->num_owners + 1, sizeof(*n->own));
	n->ups = calloc(groups + 1, sizeof(*n->ups));
	n->reached = calloc(groups + 1, sizeof(*n->reached));
	n->masks = calloc(groups + 1, sizeof(*n->masks));
	n->up = calloc(n->q->relations.n + 1, sizeof(*n->up));
	return n->owners && n->own && n->ups && n->reached && n->masks && n->up;
}

/* @return 0; 1: see find_owners(); <0 */
static int count(struct count *n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint32_t chosen[AT_A_TIME];
	size_t at = 0;

	if (!make_room(n) || n->q->groups.n >= NONE || n->q->relations.n >= NONE)
		return check_fail(n->q->c, err_nomem(&err), &err);
	if (!find_owners(n))
		return 1;
	link_relations(n);
	reach(n);
	add_sets(n, NULL);
	while (!check_failed(n->q->c) && choose(n, &at, chosen)) {
		add_sets(n, chosen);
		/* Lets the progress callback stop the check. */
		check_progress(n->q->c, 0);
	}
	return n->q->c->failed;
}

/* Loads the usage. If SET_MEMORY is too low, retries with the memory limit of the check. */
static int load(struct check *c, struct btrkit_usage_options *opts, struct btrkit_usage **ret, struct btrkit_error *err)
{
	const uint64_t more = c->opts.memory ? c->opts.memory : UINT64_MAX;
	int r = btrkit_usage_load(c->fs, opts, ret, err);

	if (r != -ENOMEM || more <= SET_MEMORY)
		return r;
	opts->set_memory = more;
	return btrkit_usage_load(c->fs, opts, ret, err);
}

static void release(struct count *n)
{
	btrkit_usage_free(n->usage);
	free(n->owners);
	free(n->own);
	free(n->ups);
	free(n->reached);
	free(n->masks);
	free(n->up);
}

int check_qgroup_count(struct check_quota *q)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct count n = { .q = q };
	bool damaged = false;
	int ret;

	opts.threads = q->c->threads;
	opts.set_memory = SET_MEMORY;
	opts.damage = damage;
	opts.damage_ctx = &damaged;
	ret = load(q->c, &opts, &n.usage, &err);
	if (ret == -ENOMEM)
		return check_fail(q->c, ret, &err);
	if (ret)
		return 1;
	ret = damaged ? 1 : count(&n);
	release(&n);
	return ret;
}
