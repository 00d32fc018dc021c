// SPDX-License-Identifier: LGPL-2.1-or-later
/* Determines the current state, what has to be changed, and whether that is possible. */
#include "lib/space_cache/convert.h"

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/tree/writable.h"
#include "lib/volume/volume.h"

#define BOTH_BITS (COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID)
#define MADE_ANEW UINT64_MAX /* cache_generation that causes Linux to rebuild the v1 cache */

static int check_call(const struct conversion *cv, struct btrkit_error *err)
{
	if (cv->opts->flags & ~(unsigned)BTRKIT_SPACE_DRY_RUN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", cv->opts->flags);
	if (cv->fs->writable)
		return fs_check_committed(cv->fs, err);
	if (!(cv->opts->flags & BTRKIT_SPACE_DRY_RUN))
		return err_system(err, EROFS, "the filesystem was opened for reading");
	if (cv->fs->super_mirror)
		return err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: the primary superblock is not used");
	/* A dry run fails for the same reasons as the conversion would. */
	return fs_check_write(cv->fs, false, err);
}

struct look {
	struct conversion *cv;
	struct btrkit_error *err;
	uint64_t groups;
};

static int look_at_group(void *ctx, const struct btrkit_space_group *group)
{
	struct look *l = ctx;

	(void)group;
	return progress_tell(&l->cv->progress, PROGRESS_LOOK, l->groups++, volume_num_chunks(l->cv->fs->volume),
			     l->err);
}

/* Compares a free space tree that is marked as valid with the extent tree before relying on it. */
static int check_tree(struct conversion *cv, struct btrkit_error *err)
{
	struct look look = { .cv = cv, .err = err };
	const struct btrkit_space_sink sink = { .group = look_at_group, .ctx = &look };
	struct btrkit_space_summary now;
	int ret = btrkit_space_status(cv->fs, &sink, &now, err);

	if (ret)
		return ret;
	cv->distrusted = now.contradictions;
	return 0;
}

static int look_at_fs(struct conversion *cv, struct btrkit_error *err)
{
	const struct super *super = &cv->fs->super;
	struct tree_root root;
	int ret;

	ret = fs_try_root(cv->fs, OID_FREE_SPACE_TREE, &root, NULL, err);
	if (ret < 0)
		return ret;
	cv->have_tree = !ret;
	ret = v1_count(cv->fs, &cv->v1, err);
	if (!ret && cv->have_tree && (super->compat_ro & BOTH_BITS) == BOTH_BITS)
		ret = check_tree(cv, err);
	if (ret)
		return ret;
	cv->compat_ro = super->compat_ro;
	cv->cache_generation = super->cache_generation;
	if (super->compat_ro & COMPAT_RO_FREE_SPACE_TREE) {
		cv->sum.from = BTRKIT_SPACE_CACHE_V2;
		cv->sum.was_valid = cv->have_tree && !cv->distrusted &&
				    super->compat_ro & COMPAT_RO_FREE_SPACE_TREE_VALID;
	} else if (super->cache_generation) {
		cv->sum.from = BTRKIT_SPACE_CACHE_V1;
		cv->sum.was_valid = super->cache_generation == super->generation;
	} else {
		cv->sum.was_valid = true;
	}
	return 0;
}

static int plan_v2(struct conversion *cv, struct btrkit_error *err)
{
	(void)err;
	if (cv->sum.from == BTRKIT_SPACE_CACHE_V2 && cv->sum.was_valid)
		return 0;
	cv->clear_v1 = cv->v1.headers || cv->v1.files;
	cv->drop_v2 = cv->have_tree;
	cv->build_v2 = true;
	cv->compat_ro |= BOTH_BITS;
	cv->cache_generation = 0;
	return 0;
}

/* Linux does not mount a filesystem with block-group-tree and no free space tree. */
static int plan_drop(struct conversion *cv, struct btrkit_error *err)
{
	if (cv->compat_ro & COMPAT_RO_BLOCK_GROUP_TREE)
		return features_refuse(BTRKIT_FEATURE_COMPAT_RO, COMPAT_RO_BLOCK_GROUP_TREE,
				       "needs the free space tree", err);
	cv->drop_v2 = cv->have_tree;
	cv->compat_ro &= ~BOTH_BITS;
	return 0;
}

static int plan_v1(struct conversion *cv, struct btrkit_error *err)
{
	/* Linux rebuilds an invalid one anyway. */
	if (cv->sum.from != BTRKIT_SPACE_CACHE_V1)
		cv->cache_generation = MADE_ANEW;
	return plan_drop(cv, err);
}

static int plan_none(struct conversion *cv, struct btrkit_error *err)
{
	cv->clear_v1 = cv->v1.headers || cv->v1.files;
	cv->cache_generation = 0;
	return plan_drop(cv, err);
}

static int plan_clear_v1(struct conversion *cv, struct btrkit_error *err)
{
	if (cv->distrusted)
		return err_corrupt(err, NULL, "the free space tree contradicts the extent tree");
	cv->clear_v1 = cv->v1.headers || cv->v1.files;
	if (cv->clear_v1)
		cv->cache_generation = cv->sum.from == BTRKIT_SPACE_CACHE_V2 ? 0 : MADE_ANEW;
	return 0;
}

static int work(struct conversion *cv, struct btrkit_error *err)
{
	const struct super *super = &cv->fs->super;
	int ret;

	cv->sum.changed = cv->clear_v1 || cv->drop_v2 || cv->build_v2 || cv->compat_ro != super->compat_ro ||
			  cv->cache_generation != super->cache_generation;
	cv->sum.cache_generation = cv->cache_generation;
	if (!cv->sum.changed)
		return 0;
	ret = convert_count(cv, err);
	if (ret)
		return ret;
	return cv->opts->flags & BTRKIT_SPACE_DRY_RUN ? convert_rehearse(cv, err) : convert_run(cv, err);
}

typedef int (*plan_fn)(struct conversion *cv, struct btrkit_error *err);

static int change(struct btrkit_fs *fs, const struct btrkit_space_change_options *opts, uint64_t held_bytes,
		  plan_fn plan, struct btrkit_space_change *ret, struct btrkit_error *err)
{
	static const struct btrkit_space_change_options defaults = BTRKIT_SPACE_CHANGE_OPTIONS_INIT;
	struct conversion cv = { .fs = fs, .opts = opts ? opts : &defaults, .held_bytes = held_bytes };
	int r;

	cv.progress.opts = cv.opts;
	r = check_call(&cv, err);
	if (!r)
		r = look_at_fs(&cv, err);
	if (!r)
		r = plan(&cv, err);
	if (!r)
		r = work(&cv, err);
	if (!r && ret)
		*ret = cv.sum;
	return r;
}

int convert_holding(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
		    const struct btrkit_space_change_options *opts, uint64_t held_bytes,
		    struct btrkit_space_change *ret, struct btrkit_error *err)
{
	static const plan_fn plans[] = { [BTRKIT_SPACE_CACHE_NONE] = plan_none,
					 [BTRKIT_SPACE_CACHE_V1] = plan_v1,
					 [BTRKIT_SPACE_CACHE_V2] = plan_v2 };

	if ((unsigned)to >= sizeof(plans) / sizeof(plans[0]))
		return err_set(err, BTRKIT_INVALID, "unknown cache kind %u", (unsigned)to);
	return change(fs, opts, held_bytes, plans[to], ret, err);
}

int btrkit_space_convert(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
			 const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
			 struct btrkit_error *err)
{
	return convert_holding(fs, to, opts, CONVERT_HELD_BYTES, ret, err);
}

int btrkit_space_clear(struct btrkit_fs *fs, enum btrkit_space_cache_kind kind,
		       const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
		       struct btrkit_error *err)
{
	plan_fn plan;

	if (kind != BTRKIT_SPACE_CACHE_V1 && kind != BTRKIT_SPACE_CACHE_V2)
		return err_set(err, BTRKIT_INVALID, "unknown cache kind %u", (unsigned)kind);
	plan = kind == BTRKIT_SPACE_CACHE_V1 ? plan_clear_v1 : plan_drop;
	return change(fs, opts, CONVERT_HELD_BYTES, plan, ret, err);
}
