// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counts of qgroups in random hierarchies, with more qgroups than are counted in one pass, compared with a separate
 * count for each qgroup.
 */
#include <inttypes.h>

#include "tests/unit/session.h"

#include "lib/check/quota/qgroup_count.h"
#include "lib/check/quota/quota.h"
#include "lib/check/state.h"
#include "lib/usage/state.h"
#include "tests/random.h"

#define SUBVOLUMES 24u
#define OWNERS_MAX (SUBVOLUMES + 2) /* including other trees */
#define LEVELS 5u
#define OF_A_LEVEL 60u
#define RELATIONS 900u

static uint64_t seed = 1;

static unsigned pick(unsigned below)
{
	random_step(&seed);
	return (unsigned)((seed >> 33) % below);
}

/* Subvolumes that are snapshots of each other, each modified afterwards. */
static void make_subvolumes(uint64_t ids[SUBVOLUMES])
{
	ids[0] = BTRKIT_TOP_LEVEL;
	for (unsigned i = 1; i < SUBVOLUMES; i++) {
		uint8_t bytes[9000];
		char name[24];
		uint64_t inode;

		snprintf(name, sizeof(name), "subvolume-%u", i);
		rig_check(btrkit_txn_subvolume_snapshot(txn, ids[pick(i)], BTRKIT_TOP_LEVEL, TOP, name, strlen(name),
							NULL, &ids[i], &err),
			  &err);
		for (unsigned file = 0; file < 3; file++) {
			const uint64_t in = ids[pick(i + 1)];

			snprintf(name, sizeof(name), "file-%u-%u", i, file);
			memset(bytes, (int)i, sizeof(bytes));
			rig_check(btrkit_txn_create(txn, in, TOP, name, strlen(name), NULL, &inode, &err), &err);
			rig_check(btrkit_txn_write(txn, in, inode, 0, bytes, sizeof(bytes), NULL, &err), &err);
		}
	}
	session_commit();
}

static uint64_t group_id(unsigned level, const uint64_t *ids)
{
	return level ? (uint64_t)level << 48 | pick(OF_A_LEVEL) : ids[pick(SUBVOLUMES)];
}

static int compare_relations(const void *x, const void *y)
{
	const struct check_relation *a = x, *b = y;

	if (a->member != b->member)
		return a->member < b->member ? -1 : 1;
	return a->parent < b->parent ? -1 : a->parent > b->parent;
}

/* Some subvolumes have no qgroup, and some relations name qgroups that do not exist, or lead to a lower level. */
static void make_groups(struct check_quota *q, const uint64_t *ids)
{
	struct check_qgroup *groups = calloc(SUBVOLUMES + (size_t)LEVELS * OF_A_LEVEL, sizeof(*groups));
	struct check_relation *relations = calloc(2 * (size_t)RELATIONS, sizeof(*relations));

	assert_non_null(groups);
	assert_non_null(relations);
	*q = (struct check_quota){ .c = q->c, .groups = { .at = groups }, .relations = { .at = relations } };
	for (unsigned i = 0; i < SUBVOLUMES; i++)
		if (pick(8))
			groups[q->groups.n++].id = ids[i];
	for (unsigned level = 1; level <= LEVELS; level++)
		for (unsigned i = 0; i < OF_A_LEVEL; i++)
			if (pick(8))
				groups[q->groups.n++].id = (uint64_t)level << 48 | i;
	for (unsigned i = 0; i < RELATIONS; i++) {
		const unsigned level = pick(LEVELS);
		const struct check_relation r = { group_id(level, ids),
						  group_id(level + pick(LEVELS - level + 1), ids) };

		relations[q->relations.n++] = r;
		relations[q->relations.n++] = (struct check_relation){ r.parent, r.member };
	}
	qsort(relations, q->relations.n, sizeof(*relations), compare_relations);
}

/* Whether a qgroup contains a subvolume, directly or through other qgroups. */
static bool has(const struct check_quota *q, uint64_t id, uint64_t subvolume)
{
	const struct check_relation *r = q->relations.at;

	if (id == subvolume)
		return true;
	for (size_t i = 0; i < q->relations.n; i++)
		if (r[i].parent == id && qgroup_level(r[i].member) < qgroup_level(id) &&
		    check_qgroup_find(q, r[i].member) && has(q, r[i].member, subvolume))
			return true;
	return false;
}

static void validate_group(const struct check_quota *q, const struct btrkit_usage *u, const struct check_qgroup *g)
{
	uint32_t owners[OWNERS_MAX];
	uint64_t rfer = 0, excl = 0;
	bool in[OWNERS_MAX];

	for (unsigned i = 0; i < btrkit_usage_num_owners(u); i++) {
		struct btrkit_usage_owner owner;

		btrkit_usage_get_owner(u, i, &owner);
		in[i] = check_qgroup_find(q, owner.id) && has(q, g->id, owner.id);
	}
	for (size_t i = 0; i < btrkit_usage_num_sets(u); i++) {
		struct btrkit_usage_set set;
		size_t n = 0;

		btrkit_usage_get_set(u, i, &set, owners, OWNERS_MAX);
		for (size_t j = 0; j < set.num_owners; j++)
			n += in[owners[j]];
		rfer += n ? set.space.data + set.space.metadata : 0;
		excl += n && n == set.num_owners ? set.space.data + set.space.metadata : 0;
	}
	assert_int_equal(g->rfer, rfer);
	assert_int_equal(g->excl, excl);
}

static void counts_of_hierarchies(void **state)
{
	struct check c = { .threads = 2 };
	struct check_quota q = { .c = &c };
	struct btrkit_usage *u;
	uint64_t ids[SUBVOLUMES], referred = 0;

	(void)state;
	session_begin();
	make_subvolumes(ids);
	c.fs = rig_open(&rig, 0, 0);
	pthread_mutex_init(&c.lock, NULL);
	rig_check(btrkit_usage_load(c.fs, NULL, &u, &err), &err);
	assert_true(btrkit_usage_num_owners(u) <= OWNERS_MAX);
	for (unsigned times = 0; times < 8; times++) {
		const struct check_qgroup *groups;

		make_groups(&q, ids);
		assert_int_equal(check_qgroup_count(&q), 0);
		groups = q.groups.at;
		for (size_t i = 0; i < q.groups.n; i++) {
			validate_group(&q, u, &groups[i]);
			referred += qgroup_level(groups[i].id) && groups[i].excl;
		}
		free(q.groups.at);
		free(q.relations.at);
	}
	assert_true(referred > 100);
	btrkit_usage_free(u);
	pthread_mutex_destroy(&c.lock);
	btrkit_fs_close(c.fs);
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(counts_of_hierarchies) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
