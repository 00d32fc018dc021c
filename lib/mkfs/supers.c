// SPDX-License-Identifier: LGPL-2.1-or-later
/* The superblocks of a new filesystem. */
#include "lib/mkfs/write.h"

#include <string.h>

#include "lib/format/feature_bits.h"
#include "lib/mkfs/parallel.h"
#include "lib/mkfs/prepare.h"
#include "lib/mkfs/streams.h"

/* Fills in a backup root for the only commit so far. The other slots stay empty. */
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
	d->num_devices = le64_put(p->num_devices);
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
		.num_devices = le64_put(p->num_devices),
		.sectorsize = le32_put(p->opts.sectorsize),
		.nodesize = le32_put(p->opts.nodesize),
		.leafsize = le32_put(p->opts.nodesize),
		.stripesize = le32_put(p->opts.sectorsize),
		.chunk_root_generation = le64_put(p->generation),
		.compat_ro_flags = le64_put(p->opts.compat_ro),
		.incompat_flags = le64_put(p->opts.incompat),
		.csum_type = le16_put(p->rules.csum->type),
		.root_level = mkfs_tree_level(roots),
		.chunk_root_level = mkfs_tree_level(chunks),
		/* There is no v1 space cache. */
		.cache_generation = le64_put(p->opts.compat_ro & COMPAT_RO_FREE_SPACE_TREE ? 0 : UINT64_MAX),
	};
	memcpy(d->fsid, p->fsid, sizeof(d->fsid));
	if (p->opts.label)
		memcpy(d->label, p->opts.label, strlen(p->opts.label));
	memcpy(d->sys_chunk_array, &key, sizeof(key));
	d->sys_chunk_array_size = le32_put((uint32_t)sizeof(key) + mkfs_chunk_item_size(system));
	mkfs_chunk_item(p, system, d->sys_chunk_array + sizeof(key));
	fill_backup(p, &d->backups[0]);
}

/* Writes one superblock copy to one device. @common: fields that all copies share */
static int write_super(const struct mkfs_plan *p, unsigned device, const struct disk_super *common, unsigned mirror,
		       struct btrkit_error *err)
{
	struct disk_super d = *common;
	struct super checked;
	int ret;

	d.dev_item = mkfs_dev_item(p, device);
	d.bytenr = le64_put(super_offset(mirror));
	p->rules.csum->compute(d.fsid, SUPER_SIZE - sizeof(d.csum), d.csum);
	ret = super_decode(&d, super_offset(mirror), &checked, err);
	return ret ? ret : btrkit_io_write(p->devices[device].io, super_offset(mirror), &d, sizeof(d), err);
}

static int write_primary(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	int ret = write_super(p, device, ctx, 0, err);

	return ret ? ret : btrkit_io_flush(p->devices[device].io, err);
}

static int write_mirrors(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (p->devices[device].total_bytes >= super_offset(mirror) + SUPER_SIZE)
			ret = write_super(p, device, ctx, mirror, err);
	return ret ? ret : btrkit_io_flush(p->devices[device].io, err);
}

int mkfs_write_supers(const struct mkfs_plan *p, struct btrkit_error *err)
{
	struct disk_super common;
	int ret;

	fill_super(p, &common);
	ret = mkfs_on_devices(p, &(struct mkfs_job){ .work = write_primary, .ctx = &common }, err);
	if (!ret)
		ret = mkfs_on_devices(p, &(struct mkfs_job){ .work = write_mirrors, .ctx = &common }, err);
	if (ret)
		mkfs_take_back(p);
	return ret;
}
