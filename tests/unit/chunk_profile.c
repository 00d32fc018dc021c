// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chunks of other profiles than the existing ones, for conversions. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/format/feature_bits.h"
#include "lib/space/chunk.h"
#include "lib/reserve/reserve.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"

#define MIB (1ull << 20)
#define DEVICES_MAX 6u

struct rig {
	unsigned n;
	struct sparse *at[DEVICES_MAX];
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
};

static struct btrkit_error err;

static void check(int ret)
{
	char line[512];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

static struct btrkit_fs *open_devices(struct rig *r, unsigned flags)
{
	struct btrkit_open_options o = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io[DEVICES_MAX];
	struct btrkit_fs *fs = NULL;

	o.flags = flags;
	for (unsigned i = 0; i < r->n; i++)
		io[i] = sparse_io(r->at[i]);
	check(btrkit_fs_open(io, r->n, &o, &fs, &err));
	return fs;
}

static void create(struct rig *r, unsigned n, struct btrkit_mkfs_options *o)
{
	struct btrkit_io *io[DEVICES_MAX];

	r->n = n;
	for (unsigned i = 0; i < n; i++) {
		r->at[i] = sparse_create((5000 + 10 * i) * MIB, NULL);
		io[i] = sparse_io(r->at[i]);
	}
	check(btrkit_mkfs(io, n, o, NULL, &err));
	r->fs = open_devices(r, BTRKIT_OPEN_WRITE);
	check(btrkit_txn_start(r->fs, &r->txn, &err));
}

static void destroy(struct rig *r)
{
	btrkit_txn_abort(r->txn);
	btrkit_fs_close(r->fs);
	for (unsigned i = 0; i < r->n; i++)
		sparse_free(r->at[i]);
}

static void commit(struct rig *r)
{
	struct btrkit_fs *fs;

	check(btrkit_txn_commit(r->txn, NULL, &err));
	fs = open_devices(r, 0);
	check(audit_own(fs, 0, &err));
	btrkit_fs_close(fs);
	check(btrkit_txn_start(r->fs, &r->txn, &err));
}

static const struct {
	uint64_t profile;
	unsigned on_four, incompat; /* stripes of a chunk on four equal devices; INCOMPAT_* */
} profiles[] = {
	{ 0, 1, 0 },
	{ BG_DUP, 2, 0 },
	{ BG_RAID0, 4, 0 },
	{ BG_RAID1, 2, 0 },
	{ BG_RAID10, 4, 0 },
	{ BG_RAID1C3, 3, INCOMPAT_RAID1C34 },
	{ BG_RAID1C4, 4, INCOMPAT_RAID1C34 },
	{ BG_RAID5, 4, INCOMPAT_RAID56 },
	{ BG_RAID6, 4, INCOMPAT_RAID56 },
};

static uint64_t incompat(const struct rig *r)
{
	return le64_get(r->txn->super.incompat_flags) & (INCOMPAT_RAID1C34 | INCOMPAT_RAID56);
}

/* Each stripe of a profile other than DUP is on another device. */
static void expect_devices(const struct chunk_plan *plan)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < plan->num_stripes; i++) {
		assert_true(plan->type & BG_DUP || !(seen >> plan->stripes[i].devid & 1));
		seen |= 1u << plan->stripes[i].devid;
	}
}

/* Groups of each profile come and go, with their feature flags, whatever the filesystem was made with. */
static void every_profile_can_be_had(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		struct space_group *g, *more;
		struct chunk_plan plan;
		struct rig r;

		if (profiles[i].incompat & INCOMPAT_RAID56 && !UNIT_PARITY)
			continue;
		o.data = BTRKIT_PROFILE_RAID0;
		o.metadata = BTRKIT_PROFILE_RAID1;
		create(&r, 4, &o);
		check(chunk_plan_profile(r.txn->space, BG_DATA, profiles[i].profile, &plan, &err));
		assert_int_equal(plan.type, BG_DATA | profiles[i].profile);
		assert_int_equal(plan.num_stripes, profiles[i].on_four);
		expect_devices(&plan);
		check(chunk_create(r.txn->space, &plan, &r.txn->super, &g, &err));
		assert_int_equal(incompat(&r), profiles[i].incompat);
		check(txn_add_chunk(r.txn, BG_METADATA, profiles[i].profile, &more, &err));
		assert_int_equal(more->item.flags, BG_METADATA | profiles[i].profile);
		check(txn_add_chunk(r.txn, BG_SYSTEM, profiles[i].profile, NULL, &err));
		commit(&r);
		assert_int_equal(r.fs->super.incompat & (INCOMPAT_RAID1C34 | INCOMPAT_RAID56), profiles[i].incompat);
		/* The flag stays until the last such group has gone, of whatever type. */
		check(chunk_remove(r.txn->space, g, &r.txn->super, &err));
		assert_int_equal(incompat(&r), profiles[i].incompat);
		for (size_t k = space_num_groups(r.txn->space); k--;) {
			more = space_group_at(r.txn->space, k);
			if ((more->item.flags & BG_PROFILE_MASK) == profiles[i].profile && !more->removed &&
			    !more->item.used && profiles[i].incompat)
				check(chunk_remove(r.txn->space, more, &r.txn->super, &err));
		}
		assert_int_equal(incompat(&r), 0);
		commit(&r);
		destroy(&r);
	}
}

/* The last group of the old profile can go when there is one of the new; new chunks then get that. */
static void the_last_of_a_profile_may_go(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct space_group *old = NULL, *g;
	struct chunk_plan plan;
	struct rig r;

	(void)state;
	o.data = BTRKIT_PROFILE_RAID0;
	o.metadata = BTRKIT_PROFILE_RAID1;
	create(&r, 2, &o);
	for (size_t k = 0; !old; k++)
		if (space_group_at(r.txn->space, k)->item.flags & BG_DATA)
			old = space_group_at(r.txn->space, k);
	assert_int_equal(chunk_remove(r.txn->space, old, &r.txn->super, &err), -EBUSY);
	check(txn_add_chunk(r.txn, BG_DATA, BG_RAID1, &g, &err));
	check(chunk_remove(r.txn->space, old, &r.txn->super, &err));
	assert_int_equal(chunk_remove(r.txn->space, g, &r.txn->super, &err), -EBUSY);
	commit(&r);
	check(chunk_plan(r.txn->space, BG_DATA, &plan, &err));
	assert_int_equal(plan.type, BG_DATA | BG_RAID1);
	destroy(&r);
}

/* A target replaces the choice by existing groups, until it is taken back. */
static void a_profile_can_be_set(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct chunk_plan plan;
	struct rig r;

	(void)state;
	o.data = o.metadata = BTRKIT_PROFILE_RAID1;
	create(&r, 2, &o);
	check(chunk_set_profile(r.txn->space, BG_METADATA, 0, &err));
	check(chunk_plan(r.txn->space, BG_METADATA, &plan, &err));
	assert_int_equal(plan.type, BG_METADATA);
	check(chunk_plan(r.txn->space, BG_DATA, &plan, &err));
	assert_int_equal(plan.type, BG_DATA | BG_RAID1);
	btrkit_txn_abort(r.txn);
	check(btrkit_txn_start(r.fs, &r.txn, &err));
	/* Chunks that a reservation needs get it, too. */
	check(txn_inc_ro(r.txn, space_group_at(r.txn->space, 1), &err));
	assert_int_equal(space_group_at(r.txn->space, space_num_groups(r.txn->space) - 1)->item.flags, BG_METADATA);
	commit(&r);
	check(chunk_set_profile(r.txn->space, BG_METADATA, CHUNK_ANY_PROFILE, &err));
	check(chunk_plan(r.txn->space, BG_METADATA, &plan, &err));
	assert_int_equal(plan.type, BG_METADATA | BG_RAID1);
	destroy(&r);
}

static void impossible_profiles_are_refused(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct chunk_plan plan;
	struct rig r;

	(void)state;
	o.metadata = BTRKIT_PROFILE_SINGLE;
	create(&r, 2, &o);
	assert_int_equal(chunk_plan_profile(r.txn->space, BG_DATA, BG_RAID1C3, &plan, &err), -EINVAL);
	assert_string_equal(err.message, "profile RAID1C3 needs 3 devices, there are 2");
	assert_int_equal(chunk_plan_profile(r.txn->space, BG_DATA, BG_RAID0 | BG_RAID1, &plan, &err), -EINVAL);
	assert_int_equal(chunk_plan_profile(r.txn->space, BG_DATA, BG_METADATA, &plan, &err), -EINVAL);
	assert_int_equal(chunk_set_profile(r.txn->space, BG_DATA, BG_RAID1C4, &err), -EINVAL);
	check(chunk_plan_profile(r.txn->space, BG_DATA, BG_DUP, &plan, &err));
	assert_int_equal(plan.stripes[0].devid, plan.stripes[1].devid);
	destroy(&r);
}

/* In mixed block groups, data and metadata are one type. */
static void mixed_groups_have_one_profile(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct chunk_plan plan;
	struct rig r;

	(void)state;
	o.mixed = true;
	o.nodesize = o.sectorsize = 4096;
	o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	create(&r, 2, &o);
	check(chunk_plan_profile(r.txn->space, BG_DATA, BG_RAID1, &plan, &err));
	assert_int_equal(plan.type, BG_DATA | BG_METADATA | BG_RAID1);
	check(chunk_set_profile(r.txn->space, BG_METADATA, BG_RAID1, &err));
	check(chunk_plan(r.txn->space, BG_DATA, &plan, &err));
	assert_int_equal(plan.type, BG_DATA | BG_METADATA | BG_RAID1);
	check(txn_add_chunk(r.txn, BG_METADATA, BG_RAID1, NULL, &err));
	commit(&r);
	destroy(&r);
}

/* Without room in the superblock for another system chunk, the transaction goes on. */
static void a_full_array_fails_alone(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct rig r;

	(void)state;
	create(&r, 1, &o);
	r.txn->super.sys_chunk_array_size = le32_put(SUPER_SYS_CHUNKS_SIZE);
	assert_int_equal(txn_add_chunk(r.txn, BG_SYSTEM, 0, NULL, &err), -ENOSPC);
	r.txn->super.sys_chunk_array_size = r.fs->super.disk.sys_chunk_array_size;
	check(btrkit_txn_failure(r.txn, &err));
	check(txn_add_chunk(r.txn, BG_DATA, 0, NULL, &err));
	commit(&r);
	destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_profile_can_be_had),
		cmocka_unit_test(the_last_of_a_profile_may_go),
		cmocka_unit_test(a_profile_can_be_set),
		cmocka_unit_test(impossible_profiles_are_refused),
		cmocka_unit_test(mixed_groups_have_one_profile),
		cmocka_unit_test(a_full_array_fails_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
