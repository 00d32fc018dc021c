// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes a filesystem: what was on the device is disowned first, then all trees are written and flushed, and the
 * superblock comes last. Between these steps there is no superblock at all.
 */
#include <btrkit/mkfs.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/format/feature_bits.h"
#include "lib/io/batch.h"
#include "lib/mkfs/options.h"
#include "lib/mkfs/plan.h"
#include "lib/mkfs/streams.h"

#define GENERATION 1
#define BATCH_BYTES (8u << 20)
/* At the end of a device other filesystems and RAIDs have signatures. */
#define TAIL_BYTES (2u << 20)
#define HEAD_BYTES (1u << 20)
#define DISCARD_UNIT (1ull << 30)
#define DISCARD_STEPS 1000u	/* between which it can be ended */

static int make_uuids(struct mkfs_plan *p, struct btrkit_error *err)
{
	bool derived = p->opts.flags & BTRKIT_MKFS_REPRODUCIBLE;
	const struct {
		const char *name;
		const uint8_t *given;
		uint8_t *to;
	} wanted[] = {
		{ "device", p->opts.device_uuid, p->device_uuid },
		{ "chunk tree", NULL, p->chunk_tree_uuid },
		{ "top level", NULL, p->subvolume_uuid },
	};
	int ret = 0;

	if (p->opts.fsid)
		memcpy(p->fsid, p->opts.fsid, sizeof(p->fsid));
	else
		ret = base_uuid_random(p->fsid, err);
	for (size_t i = 0; !ret && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (wanted[i].given)
			memcpy(wanted[i].to, wanted[i].given, 16);
		else if (derived)
			ret = base_uuid_derive(p->fsid, wanted[i].name, wanted[i].to, err);
		else
			ret = base_uuid_random(wanted[i].to, err);
	}
	return ret;
}

/* How much of the device the filesystem takes: whole sectors. */
static int judge_size(const struct btrkit_io *device, const struct btrkit_mkfs_options *o, uint64_t *ret,
		      struct btrkit_error *err)
{
	uint64_t total = o->byte_count ? o->byte_count : device->size, min = mkfs_layout_min_size(o);

	if (total > device->size)
		return err_set(err, BTRKIT_INVALID, "%" PRIu64 " bytes are asked for, the device has %" PRIu64, total,
			       device->size);
	total -= total % o->sectorsize;
	if (total < min)
		return err_set(err, BTRKIT_INVALID, "too small: %" PRIu64 " bytes, at least %" PRIu64 " are needed",
			       total, min);
	*ret = total;
	return 0;
}

static int make_plan(const struct btrkit_io *device, const struct btrkit_mkfs_options *opts, struct mkfs_plan *p,
		     struct btrkit_error *err)
{
	uint64_t total = 0;
	int ret;

	*p = (struct mkfs_plan){ .generation = GENERATION };
	ret = mkfs_options_judge(opts, &p->opts, err);
	if (!ret)
		ret = judge_size(device, &p->opts, &total, err);
	if (!ret)
		ret = make_uuids(p, err);
	if (ret)
		return ret;
	mkfs_layout(&p->opts, total, &p->layout);
	p->judge = (struct node_judge){ .csum = csum_kind_find(0),
					.nodesize = p->opts.nodesize,
					.sectorsize = p->opts.sectorsize };
	memcpy(p->judge.fsid, p->fsid, sizeof(p->judge.fsid));
	p->items = (struct item_ctx){ .sectorsize = p->opts.sectorsize,
				      .nodesize = p->opts.nodesize,
				      .csum_type = p->judge.csum->type,
				      .csum_size = p->judge.csum->size,
				      .incompat = p->opts.incompat,
				      .compat_ro = p->opts.compat_ro,
				      .generation = p->generation };
	return mkfs_plan_make(p, err);
}

static int write_zeros(struct btrkit_io *device, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	static const uint8_t zeros[65536];
	int ret = 0;

	while (!ret && from < to) {
		size_t n = to - from < sizeof(zeros) ? to - from : sizeof(zeros);

		ret = btrkit_io_write(device, from, zeros, n, err);
		from += n;
	}
	return ret;
}

/* What lies behind the bytes asked for is somebody else's, unless it is a copy of a superblock. */
static int disown_copy(struct btrkit_io *device, const struct mkfs_plan *p, unsigned mirror, struct btrkit_error *err)
{
	uint64_t at = super_offset(mirror);
	struct disk_super d;
	int ret;

	if (device->size < at + SUPER_SIZE)
		return 0;
	if (p->layout.total_bytes < at + SUPER_SIZE) {
		ret = btrkit_io_read(device, at, &d, sizeof(d), err);
		if (ret || le64_get(d.magic) != SUPER_MAGIC)
			return ret;
	}
	return write_zeros(device, at, at + SUPER_SIZE, err);
}

/*
 * Room for all that will be written, before anything is: on a full disk the old contents of a sparse file stay as they
 * are.
 */
static int reserve_all(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret;

	ret = btrkit_io_reserve(device, 0, HEAD_BYTES, err);
	if (!ret && !p->opts.byte_count)
		ret = btrkit_io_reserve(device, device->size - TAIL_BYTES, TAIL_BYTES, err);
	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (p->layout.total_bytes >= super_offset(mirror) + SUPER_SIZE)
			ret = btrkit_io_reserve(device, super_offset(mirror), SUPER_SIZE, err);
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++) {
		const struct mkfs_group *g = &p->layout.groups[i];
		uint64_t used = mkfs_group_used(p, g), end;

		if (!used)
			continue;
		end = mkfs_group_block(g, p->opts.nodesize, used - 1) + p->opts.nodesize - g->logical;
		for (unsigned copy = 0; !ret && copy < g->copies; copy++)
			ret = btrkit_io_reserve(device, g->physical[copy], end, err);
	}
	return ret;
}

/* Old superblocks go, and only they: until they have gone for good, the old filesystem is whole. */
static int disown(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned mirror = 0; !ret && mirror < SUPER_MIRRORS; mirror++)
		ret = disown_copy(device, p, mirror, err);
	return ret ? ret : btrkit_io_flush(device, err);
}

/* What the filesystem will not use is not its to discard. */
static int discard_all(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &p->opts;
	uint64_t total = p->layout.total_bytes, step = total / DISCARD_STEPS;
	int ret;

	/* Whole units: a device leaves alone what is no whole block of it. */
	step = step < DISCARD_UNIT ? DISCARD_UNIT : step - step % DISCARD_UNIT;
	for (uint64_t at = 0; at < total; at += step) {
		if (step > total - at)
			step = total - at;
		if (o->progress) {
			ret = o->progress(o->progress_ctx, at, total);
			if (ret)
				return err_system(err, ret, "discarding was ended");
		}
		ret = btrkit_io_discard(device, at, step, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Signatures of other filesystems, at either end of the device; but what lies behind a part of it stays. */
static int wipe_ends(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret = write_zeros(device, 0, HEAD_BYTES, err);

	return ret || p->opts.byte_count ? ret : write_zeros(device, device->size - TAIL_BYTES, device->size, err);
}

struct tree_writer {
	const struct mkfs_plan *plan;
	const struct mkfs_tree *tree;
	struct io_batch *batch;
};

static int place_block(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	const struct tree_writer *w = ctx;

	if (index >= w->tree->blocks[level])
		return err_set(err, BTRKIT_NO_SPACE, "tree %" PRIu64 " outgrew its plan", w->tree->owner);
	*bytenr = mkfs_group_block(mkfs_tree_group(w->plan, w->tree), w->plan->opts.nodesize,
				   mkfs_tree_slot(w->tree, level, index));
	return 0;
}

static int write_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	const struct tree_writer *w = ctx;
	const struct mkfs_group *g = mkfs_tree_group(w->plan, w->tree);
	int ret = 0;

	for (unsigned copy = 0; !ret && copy < g->copies; copy++)
		ret = io_batch_write(w->batch, g->physical[copy] + (bytenr - g->logical), block, w->plan->opts.nodesize,
				     err);
	return ret;
}

static int write_tree(struct tree_writer *w, struct btrkit_error *err)
{
	const struct mkfs_plan *p = w->plan;
	const struct bulk_config config = {
		.judge = &p->judge,
		.items = &p->items,
		.chunk_tree_uuid = p->chunk_tree_uuid,
		.owner = w->tree->owner,
		.generation = p->generation,
		.place = place_block,
		.write = write_block,
		.ctx = w,
	};
	struct tree_root root;
	int ret;

	ret = mkfs_tree_run(p, w->tree, &config, &root, NULL, err);
	if (!ret && (root.bytenr != mkfs_tree_root(p, w->tree) || root.level != mkfs_tree_level(w->tree)))
		ret = err_set(err, BTRKIT_INVALID, "tree %" PRIu64 " did not come out as planned", w->tree->owner);
	return ret;
}

static int write_trees(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	struct tree_writer w = { .plan = p };
	int ret;

	ret = io_batch_create(device, BATCH_BYTES, &w.batch, err);
	if (ret)
		return ret;
	for (unsigned i = 0; !ret && i < p->num_trees; i++) {
		w.tree = &p->trees[i];
		ret = write_tree(&w, err);
	}
	if (!ret)
		ret = io_batch_drain(w.batch, err);
	io_batch_destroy(w.batch);
	return ret ? ret : btrkit_io_flush(device, err);
}

/* The roots of the one commit there is; the other slots stay empty. */
static void fill_backup(const struct mkfs_plan *p, struct disk_root_backup *d)
{
	le64 gen = le64_put(p->generation);
	const struct mkfs_tree *tree;
#define BACKUP(field, id)                             \
	tree = mkfs_plan_tree(p, id);                 \
	d->field = le64_put(mkfs_tree_root(p, tree)); \
	d->field##_gen = gen;                         \
	d->field##_level = mkfs_tree_level(tree)

	BACKUP(tree_root, OID_ROOT_TREE);
	BACKUP(chunk_root, OID_CHUNK_TREE);
	BACKUP(extent_root, OID_EXTENT_TREE);
	BACKUP(fs_root, OID_FS_TREE);
	BACKUP(dev_root, OID_DEV_TREE);
	BACKUP(csum_root, OID_CSUM_TREE);
#undef BACKUP
	d->total_bytes = le64_put(p->layout.total_bytes);
	d->bytes_used = le64_put(mkfs_plan_bytes_used(p));
	d->num_devices = le64_put(1);
}

static void fill_super(const struct mkfs_plan *p, struct disk_super *d)
{
	const struct mkfs_tree *roots = mkfs_plan_tree(p, OID_ROOT_TREE), *chunks = mkfs_plan_tree(p, OID_CHUNK_TREE);
	const struct mkfs_group *system = mkfs_system_group(&p->layout);
	const struct disk_key key = key_put(&KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, system->logical));

	*d = (struct disk_super){
		.flags = le64_put(HEADER_FLAG_WRITTEN),
		.magic = le64_put(SUPER_MAGIC),
		.generation = le64_put(p->generation),
		.root = le64_put(mkfs_tree_root(p, roots)),
		.chunk_root = le64_put(mkfs_tree_root(p, chunks)),
		.total_bytes = le64_put(p->layout.total_bytes),
		.bytes_used = le64_put(mkfs_plan_bytes_used(p)),
		.root_dir_objectid = le64_put(OID_ROOT_TREE_DIR),
		.num_devices = le64_put(1),
		.sectorsize = le32_put(p->opts.sectorsize),
		.nodesize = le32_put(p->opts.nodesize),
		.leafsize = le32_put(p->opts.nodesize),
		.stripesize = le32_put(p->opts.sectorsize),
		.chunk_root_generation = le64_put(p->generation),
		.compat_ro_flags = le64_put(p->opts.compat_ro),
		.incompat_flags = le64_put(p->opts.incompat),
		.csum_type = le16_put(p->judge.csum->type),
		.root_level = mkfs_tree_level(roots),
		.chunk_root_level = mkfs_tree_level(chunks),
		.dev_item = mkfs_dev_item(p),
		/* There is no v1 cache, which must not be looked for. */
		.cache_generation = le64_put(p->opts.compat_ro & COMPAT_RO_FREE_SPACE_TREE ? 0 : UINT64_MAX),
	};
	memcpy(d->fsid, p->fsid, sizeof(d->fsid));
	if (p->opts.label)
		memcpy(d->label, p->opts.label, strlen(p->opts.label));
	memcpy(d->sys_chunk_array, &key, sizeof(key));
	d->sys_chunk_array_size =
		le32_put((uint32_t)sizeof(key) + mkfs_chunk_item(p, system, d->sys_chunk_array + sizeof(key)));
	fill_backup(p, &d->backups[0]);
}

static int write_super(struct btrkit_io *device, const struct mkfs_plan *p, struct disk_super *d, unsigned mirror,
		       struct btrkit_error *err)
{
	struct super judged;
	int ret;

	d->bytenr = le64_put(super_offset(mirror));
	p->judge.csum->compute(d->fsid, SUPER_SIZE - sizeof(d->csum), d->csum);
	ret = super_decode(d, super_offset(mirror), &judged, err);
	return ret ? ret : btrkit_io_write(device, super_offset(mirror), d, sizeof(*d), err);
}

static int write_supers(struct btrkit_io *device, const struct mkfs_plan *p, struct btrkit_error *err)
{
	struct disk_super d;
	int ret;

	fill_super(p, &d);
	ret = write_super(device, p, &d, 0, err);
	if (!ret)
		ret = btrkit_io_flush(device, err);
	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (p->layout.total_bytes >= super_offset(mirror) + SUPER_SIZE)
			ret = write_super(device, p, &d, mirror, err);
	return ret ? ret : btrkit_io_flush(device, err);
}

static void tell_result(const struct mkfs_plan *p, struct btrkit_mkfs_result *r)
{
	*r = (struct btrkit_mkfs_result){
		.nodesize = p->opts.nodesize,
		.sectorsize = p->opts.sectorsize,
		.total_bytes = p->layout.total_bytes,
		.incompat = p->opts.incompat,
		.compat_ro = p->opts.compat_ro,
		.num_groups = p->layout.num_groups,
	};
	memcpy(r->fsid, p->fsid, sizeof(r->fsid));
	memcpy(r->device_uuid, p->device_uuid, sizeof(r->device_uuid));
	for (unsigned i = 0; i < p->layout.num_groups; i++) {
		const struct mkfs_group *g = &p->layout.groups[i];

		r->groups[i] = (struct btrkit_mkfs_group){ g->type, g->logical, g->length };
	}
}

int btrkit_mkfs_min_size(const struct btrkit_mkfs_options *opts, uint64_t *ret, struct btrkit_error *err)
{
	struct btrkit_mkfs_options o;
	int r = mkfs_options_judge(opts, &o, err);

	if (!r)
		*ret = mkfs_layout_min_size(&o);
	return r;
}

int btrkit_mkfs(struct btrkit_io *device, const struct btrkit_mkfs_options *opts, struct btrkit_mkfs_result *result,
		struct btrkit_error *err)
{
	struct mkfs_plan p;
	int ret;

	ret = make_plan(device, opts, &p, err);
	if (!ret)
		ret = reserve_all(device, &p, err);
	if (!ret)
		ret = disown(device, &p, err);
	if (!ret && p.opts.flags & BTRKIT_MKFS_DISCARD)
		ret = discard_all(device, &p, err);
	if (!ret)
		ret = wipe_ends(device, &p, err);
	if (!ret)
		ret = write_trees(device, &p, err);
	if (!ret)
		ret = write_supers(device, &p, err);
	if (!ret && result)
		tell_result(&p, result);
	mkfs_plan_release(&p);
	return ret;
}
