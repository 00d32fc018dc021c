// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates a filesystem: old superblocks are invalidated first, then all trees are written and flushed, and the new
 * superblocks are written last. In between, there is no superblock at all.
 */
#include <btrkit/mkfs.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/io/zone.h"
#include "lib/mkfs/make.h"
#include "lib/mkfs/options.h"
#include "lib/mkfs/prepare.h"
#include "lib/mkfs/write.h"
#include "lib/volume/parity.h"

#define GENERATION 1

int mkfs_make_uuid(const struct mkfs_plan *p, enum mkfs_uuid_kind kind, uint64_t number, uint8_t to[16],
		   struct btrkit_error *err)
{
	const struct {
		le32 kind;
		le64 number;
	} name = { le32_put(kind), le64_put(number) };

	if (p->opts.flags & BTRKIT_MKFS_REPRODUCIBLE)
		return base_uuid_derive(p->fsid, &name, sizeof(name), to, err);
	return base_uuid_random(to, err);
}

int mkfs_make_uuids(struct mkfs_plan *p, const uint8_t *fsid, struct btrkit_error *err)
{
	int ret = 0;

	if (fsid)
		memcpy(p->fsid, fsid, sizeof(p->fsid));
	else
		ret = base_uuid_random(p->fsid, err);
	for (unsigned d = 0; !ret && d < p->num_devices; d++)
		ret = mkfs_make_uuid(p, MKFS_UUID_DEVICE, d + 1, p->devices[d].uuid, err);
	if (!ret && p->opts.device_uuid)
		memcpy(p->devices[0].uuid, p->opts.device_uuid, sizeof(p->devices[0].uuid));
	if (!ret)
		ret = mkfs_make_uuid(p, MKFS_UUID_CHUNK_TREE, 0, p->chunk_tree_uuid, err);
	return ret ? ret : mkfs_make_uuid(p, MKFS_UUID_SUBVOLUME, OID_FS_TREE, p->subvolume_uuid, err);
}

static int check_zone(const struct mkfs_device *d, struct btrkit_error *err)
{
	struct btrkit_zone zone;
	const int ret = d->io->size ? io_zone(d->io, 0, &zone, err) : 1;

	return ret ? (ret < 0 ? ret : 0) : err_set(err, BTRKIT_UNSUPPORTED, "zoned devices are not supported");
}

/*
 * Determines how much of the device the filesystem uses, in full sectors. Only the first device must have byte_count
 * bytes; others may be smaller.
 */
static int check_size(struct mkfs_plan *p, unsigned device, uint64_t min, struct btrkit_error *err)
{
	struct mkfs_device *d = &p->devices[device];
	uint64_t total = p->opts.byte_count ? p->opts.byte_count : d->io->size;

	if (total > d->io->size && !device)
		return err_set(err, BTRKIT_INVALID, "%" PRIu64 " bytes are requested, the device has %" PRIu64, total,
			       d->io->size);
	if (total > d->io->size)
		total = d->io->size;
	total -= total % p->opts.sectorsize;
	if (total < min)
		return err_set(err, BTRKIT_INVALID, "too small: %" PRIu64 " bytes, at least %" PRIu64 " are needed",
			       total, min);
	d->total_bytes = total;
	return 0;
}

/* Checks the devices. @min: minimum size of each; not checked if the size follows from the contents */
static int check_devices(struct mkfs_plan *p, uint64_t min, struct btrkit_error *err)
{
	const bool fit = p->opts.flags & (BTRKIT_MKFS_FIT | BTRKIT_MKFS_DRY);
	uint64_t all = 0;
	int ret = 0;

	for (unsigned d = 0; !ret && d < p->num_devices; d++) {
		ret = check_zone(&p->devices[d], err);
		if (!ret && !fit)
			ret = check_size(p, d, min, err);
		if (!ret && __builtin_add_overflow(all, p->devices[d].total_bytes, &all))
			ret = err_set(err, BTRKIT_INVALID, "the total size of the devices is too large");
		if (ret && p->num_devices > 1)
			err_at_devid(err, d + 1u);
	}
	return ret;
}

static int check_sizes(struct mkfs_plan *p, struct btrkit_error *err)
{
	uint64_t min = mkfs_layout_min_device(&p->opts);
	const int ret = p->num_devices == 1 ? mkfs_layout_min_size(&p->opts, 1, &min, err) : 0;

	return ret ? ret : check_devices(p, min, err);
}

static int check_layout(const struct mkfs_layout *l, struct btrkit_error *err)
{
	for (unsigned i = 0; i < l->num_groups; i++) {
		const struct raid_shape *s = &l->groups[i].shape;

		if (raid_profile_find(s->type)->parity && raid_data_stripes(s) > PARITY_STRIPS_MAX)
			return err_set(err, BTRKIT_INVALID, "profile %s does not support %u stripes",
				       raid_profile_find(s->type)->name, s->num_stripes);
	}
	return 0;
}

void mkfs_set_check(struct mkfs_plan *p)
{
	p->rules = (struct node_rules){ .csum = csum_kind_find((uint16_t)p->opts.csum),
					.nodesize = p->opts.nodesize,
					.sectorsize = p->opts.sectorsize };
	memcpy(p->rules.fsid, p->fsid, sizeof(p->rules.fsid));
	p->items = (struct item_ctx){ .sectorsize = p->opts.sectorsize,
				      .nodesize = p->opts.nodesize,
				      .csum_type = p->rules.csum->type,
				      .csum_size = p->rules.csum->size,
				      .incompat = p->opts.incompat,
				      .compat_ro = p->opts.compat_ro,
				      .generation = p->generation };
}

static int make_plan(struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret;

	ret = check_sizes(p, err);
	if (!ret)
		ret = mkfs_make_uuids(p, p->opts.fsid, err);
	if (!ret)
		ret = mkfs_layout(&p->opts, p->devices, p->num_devices, &p->layout, err);
	if (!ret)
		ret = check_layout(&p->layout, err);
	if (ret)
		return ret;
	mkfs_set_check(p);
	return mkfs_plan_make(p, err);
}

int mkfs_clear_devices(const struct mkfs_plan *p, struct btrkit_error *err)
{
	int ret = mkfs_disown(p, err);

	if (!ret && p->opts.flags & BTRKIT_MKFS_DISCARD)
		ret = mkfs_discard(p, err);
	return ret ? ret : mkfs_wipe_ends(p, err);
}

/* Writes the filesystem. All memory is allocated, and all space reserved, before anything is written. */
static int execute(const struct mkfs_plan *p, struct btrkit_error *err)
{
	struct mkfs_writer *w;
	int ret;

	ret = mkfs_writer_create(p, &w, err);
	if (ret)
		return ret;
	ret = mkfs_reserve(p, err);
	if (!ret)
		ret = mkfs_clear_devices(p, err);
	if (!ret)
		ret = mkfs_write_trees(w, err);
	mkfs_writer_destroy(w);
	return ret ? ret : mkfs_write_supers(p, err);
}

/* The contents are not known yet, so no device is too small so far. */
static int fill(struct mkfs_plan *p, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	const int ret = check_devices(p, 0, err);

	return ret ? ret : mkfs_make_filled(p, result, err);
}

/* Adds a group to the result. Adjacent groups of the same type are combined. */
static void tell_group(struct btrkit_mkfs_result *r, const struct mkfs_group *g)
{
	struct btrkit_mkfs_group *last = r->num_groups ? &r->groups[r->num_groups - 1] : NULL;

	if (last && last->type == g->shape.type)
		last->length += g->length;
	else
		r->groups[r->num_groups++] = (struct btrkit_mkfs_group){ g->shape.type, g->logical, g->length };
}

static void tell_result(const struct mkfs_plan *p, struct btrkit_mkfs_result *r)
{
	r->nodesize = p->opts.nodesize;
	r->csum_name = p->rules.csum->name;
	r->sectorsize = p->opts.sectorsize;
	r->total_bytes = p->layout.total_bytes;
	r->incompat = p->opts.incompat;
	r->compat_ro = p->opts.compat_ro;
	r->metadata_bytes = p->opts.nodesize * (mkfs_slots_used(p, MKFS_CHUNK_TREE) + mkfs_slots_used(p, MKFS_TREES));
	memcpy(r->fsid, p->fsid, sizeof(r->fsid));
	memcpy(r->device_uuid, p->devices[0].uuid, sizeof(r->device_uuid));
	for (unsigned i = 0; i < p->layout.num_groups; i++) {
		tell_group(r, &p->layout.groups[i]);
		r->data_bytes += p->layout.groups[i].used;
	}
}

static void tell_devices(const struct mkfs_plan *p, struct btrkit_mkfs_device *made)
{
	for (unsigned d = 0; made && d < p->num_devices; d++) {
		made[d].total_bytes = p->devices[d].total_bytes;
		memcpy(made[d].uuid, p->devices[d].uuid, sizeof(made[d].uuid));
	}
}

int btrkit_mkfs_min_size(const struct btrkit_mkfs_options *opts, size_t n, uint64_t *ret, struct btrkit_error *err)
{
	struct btrkit_mkfs_options o;
	int r = mkfs_options_check(opts, n, &o, err);

	return r ? r : mkfs_layout_min_size(&o, (unsigned)n, ret, err);
}

int btrkit_mkfs(struct btrkit_io *const *devices, size_t n, const struct btrkit_mkfs_options *opts,
		struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct mkfs_plan p = { .generation = GENERATION };
	struct btrkit_mkfs_result told = { 0 };
	int ret;

	ret = mkfs_options_check(opts, n, &p.opts, err);
	if (ret)
		return ret;
	p.num_devices = (unsigned)n;
	p.devices = calloc(n, sizeof(*p.devices));
	if (!p.devices)
		return err_nomem(err);
	for (unsigned d = 0; d < p.num_devices; d++)
		p.devices[d].io = devices[d];
	if (p.opts.source) {
		ret = fill(&p, &told, err);
	} else {
		ret = make_plan(&p, err);
		if (!ret)
			ret = execute(&p, err);
	}
	if (!ret)
		tell_result(&p, &told);
	if (!ret && result)
		*result = told;
	if (!ret)
		tell_devices(&p, p.opts.made);
	mkfs_plan_release(&p);
	free(p.devices);
	return ret;
}
