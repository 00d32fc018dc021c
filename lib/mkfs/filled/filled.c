// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates a filesystem with files. Contents are placed and written while they are read. When all are written, the trees
 * are counted, placed after them and written. The superblocks are written last.
 */
#include "lib/mkfs/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/compression/encode.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/io/device_range.h"
#include "lib/io/file.h"
#include "lib/mkfs/filled/digest.h"
#include "lib/mkfs/filled/fill.h"
#include "lib/mkfs/filled/fsid.h"
#include "lib/mkfs/prepare.h"
#include "lib/mkfs/filled/sort.h"
#include "lib/mkfs/filled/units.h"
#include "lib/mkfs/verify/verify.h"
#include "lib/mkfs/write.h"

#define SYMLINK_MAX 4095u /* limit of Linux */

struct filling {
	struct mkfs_plan *plan;
	struct mkfs_compact compact;
	struct mkfs_fill fill;
	struct units *units;
	struct mkfs_sort *sort; /* NULL: no sort file */
	uint32_t *sorted, num_sorted; /* files in the order of the sort file */
	struct btrkit_mkfs_so_far so_far;
	struct source_target *targets;
	bool cleared;	/* old contents of the devices were cleared */
};

static uint32_t inline_max(const struct btrkit_mkfs_options *o)
{
	return mkfs_item_room(o) - FILE_EXTENT_INLINE_START;
}

static int check_plan(const struct mkfs_plan *p, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &p->opts;

	if (mkfs_profile(o->data)->parity || mkfs_profile(o->metadata)->parity)
		return err_set(err, BTRKIT_UNSUPPORTED, "filling a filesystem with RAID5 or RAID6 is not supported");
	if (o->incompat & INCOMPAT_SIMPLE_QUOTA)
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "filling a filesystem with the feature simple-quota is not supported");
	if (o->flags & BTRKIT_MKFS_VERIFY && o->source->kind == BTRKIT_SOURCE_ARCHIVE && !digest_available())
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "verifying the contents of an archive needs libxxhash, which this build lacks");
	if (o->flags & BTRKIT_MKFS_DETERMINISTIC && !digest_available())
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "a deterministic filesystem needs libxxhash, which this build lacks");
	return 0;
}

static int read_source(struct filling *f, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &f->plan->opts;
	const struct source_limits limits = {
		.symlink = inline_max(o) < SYMLINK_MAX ? inline_max(o) : SYMLINK_MAX,
		.xattr = mkfs_item_room(o) - (uint32_t)sizeof(struct disk_dir_item),
	};

	return source_create(o->source, &limits, &f->fill.source, err);
}

/* Tells the source which files are the target, so that they are not read. */
static int find_targets(struct filling *f, struct btrkit_error *err)
{
	const struct mkfs_plan *p = f->plan;
	struct device_ranges device_ranges;
	size_t n = 0;

	f->targets = calloc(p->num_devices, DEVICE_RANGES_MAX * sizeof(*f->targets));
	if (!f->targets)
		return err_nomem(err);
	for (unsigned d = 0; d < p->num_devices; d++) {
		if (!io_file_places(p->devices[d].io, &device_ranges))
			continue;
		for (size_t i = 0; i < device_ranges.n; i++)
			f->targets[n++] = (struct source_target){ device_ranges.at[i].dev,
								  device_ranges.at[i].block ? 0 :
											      device_ranges.at[i].ino };
	}
	source_set_targets(f->fill.source, f->targets, n);
	return 0;
}

/* Reads everything but contents. If this fails, the devices are unchanged. */
static int read_names(struct filling *f, struct btrkit_error *err)
{
	int ret = find_targets(f, err);

	if (!ret)
		ret = source_check(f->fill.source, err);
	if (ret || source_streams(f->fill.source))
		return ret;
	ret = source_read(f->fill.source, NULL, err);
	return ret || !f->sort ? ret : mkfs_sort_files(f->sort, f->fill.source, &f->sorted, &f->num_sorted, err);
}

static int tell_progress(void *ctx, uint64_t bytes, uint64_t files)
{
	struct filling *f = ctx;
	const struct btrkit_mkfs_options *o = &f->plan->opts;

	f->so_far.bytes = bytes;
	f->so_far.files = files;
	return o->filling ? o->filling(o->progress_ctx, &f->so_far) : 0;
}

static struct units_config units_config(struct filling *f)
{
	const struct btrkit_mkfs_options *o = &f->plan->opts;

	return (struct units_config){
		.source = f->fill.source,
		.contents = f->fill.contents,
		.compact = &f->compact,
		.csum = csum_kind_find((uint16_t)o->csum),
		.sectorsize = o->sectorsize,
		.inline_max = inline_max(o),
		.compression = (uint8_t)(o->flags & BTRKIT_MKFS_SHARE ? BTRKIT_COMPRESSION_NONE : o->compression),
		.level = o->compression_level,
		.threads = o->threads,
		.digest = o->flags & BTRKIT_MKFS_DETERMINISTIC,
		.file_digests = o->flags & BTRKIT_MKFS_VERIFY && source_streams(f->fill.source),
		.progress = tell_progress,
		.progress_ctx = f,
	};
}

/* Reads the files in the order of the sort file. */
static int read_sorted(struct filling *f, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < f->num_sorted; i++)
		ret = units_add_file(f->units, f->sorted[i], err);
	return ret;
}

/* Counts the nonempty files and adds up their sizes, including holes. */
static void count_files(struct filling *f)
{
	const struct source *s = f->fill.source;

	f->so_far.total_bytes = f->so_far.total_files = 0;
	for (uint32_t i = 0; i < s->num_inodes; i++) {
		if (!S_ISREG(s->inodes[i].mode) || s->inodes[i].contents != i)
			continue;
		f->so_far.total_bytes += s->inodes[i].size;
		f->so_far.total_files += s->inodes[i].size != 0;
	}
}

/* Reads the files in the order of their inodes, unless there is a sort file. */
static int read_files(struct filling *f, struct btrkit_error *err)
{
	const struct source *s = f->fill.source;
	int ret = 0;

	count_files(f);
	if (f->sort)
		return read_sorted(f, err);
	for (uint32_t i = 0; !ret && i < s->num_inodes; i++) {
		const uint32_t number = s->in_order[i];

		if (S_ISREG(s->inodes[number].mode) && s->inodes[number].contents == number)
			ret = units_add_file(f->units, number, err);
	}
	return ret;
}

static int read_all(struct filling *f, struct btrkit_error *err)
{
	const struct units_config config = units_config(f);
	struct source_sink sink;
	int ret;

	if (f->plan->opts.flags & BTRKIT_MKFS_SHARE && !f->compact.dry)
		f->fill.contents->shares = f->fill.source;
	ret = units_create(&config, &f->units, err);
	if (ret)
		return ret;
	sink = units_sink(f->units);
	ret = source_streams(f->fill.source) ? source_read(f->fill.source, &sink, err) : read_files(f, err);
	if (!ret)
		ret = units_finish(f->units, err);
	f->units = units_destroy(f->units);
	if (!ret) {
		count_files(f);
		ret = tell_progress(f, f->so_far.total_bytes, f->so_far.total_files);
		if (ret)
			return err_system(err, ret, "interrupted");
	}
	return ret;
}

static int make_uuids(struct filling *f, struct btrkit_error *err)
{
	const uint8_t *fsid = f->plan->opts.fsid;
	uint8_t derived[16];
	int ret = 0;

	if (!fsid && f->plan->opts.flags & BTRKIT_MKFS_DETERMINISTIC) {
		ret = mkfs_derive_fsid(f->plan, &f->fill, f->compact.grow, derived, err);
		fsid = derived;
	}
	return ret ? ret : mkfs_make_uuids(f->plan, fsid, err);
}

static void decide_times(struct filling *f)
{
	struct btrkit_mkfs_options *o = &f->plan->opts;
	const struct source *s = f->fill.source;

	f->fill.clamp = o->flags & (BTRKIT_MKFS_CLAMP_TIMES | BTRKIT_MKFS_DETERMINISTIC);
	if (o->flags & BTRKIT_MKFS_DETERMINISTIC && !(o->flags & BTRKIT_MKFS_CLAMP_TIMES)) {
		o->time = INT64_MIN;
		for (uint32_t i = 0; i < s->num_inodes; i++)
			if (s->inodes[i].mtime.sec + !!s->inodes[i].mtime.nsec > o->time)
				o->time = s->inodes[i].mtime.sec + !!s->inodes[i].mtime.nsec;
	}
	f->fill.time = o->time;
}

/* Sets features that depend on the contents. */
static void decide_features(struct filling *f)
{
	struct btrkit_mkfs_options *o = &f->plan->opts;

	if (o->compression == BTRKIT_COMPRESSION_LZO && f->fill.contents->compressed_from)
		o->incompat |= INCOMPAT_COMPRESS_LZO;
	if (o->compression == BTRKIT_COMPRESSION_ZSTD && f->fill.contents->compressed_from)
		o->incompat |= INCOMPAT_COMPRESS_ZSTD;
	if (mkfs_fill_default(&f->fill) != OID_FS_TREE)
		o->incompat |= INCOMPAT_DEFAULT_SUBVOL;
}

static int make_room(struct mkfs_plan *p, uint64_t blocks, struct btrkit_error *err)
{
	static const uint64_t owners[] = { OID_ROOT_TREE, OID_EXTENT_TREE, OID_CSUM_TREE, OID_FREE_SPACE_TREE,
					   OID_BLOCK_GROUP_TREE };
	struct mkfs_compact *c = p->room_ctx;

	c->global_blocks = 0;
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		const struct mkfs_tree *t = mkfs_plan_tree(p, owners[i]);

		c->global_blocks += t ? mkfs_tree_num_blocks(t) : 0;
	}
	return mkfs_compact_trees(c, blocks, err);
}

static int plan(struct filling *f, struct btrkit_error *err)
{
	struct mkfs_plan *p = f->plan;
	int ret;

	ret = mkfs_compact_end_data(&f->compact, err);
	if (ret)
		return ret;
	decide_times(f);
	decide_features(f);
	ret = make_uuids(f, err);
	if (ret)
		return ret;
	mkfs_set_check(p);
	ret = mkfs_fill_prepare(&f->fill, p, err);
	if (ret)
		return ret;
	/* Tree blocks need an address even before they are counted. */
	ret = mkfs_compact_trees(&f->compact, 1, err);
	if (ret)
		return ret;
	p->fill = &f->fill;
	p->make_room = make_room;
	p->room_ctx = &f->compact;
	return mkfs_plan_make(p, err);
}

static int write_all(struct filling *f, struct btrkit_error *err)
{
	struct mkfs_plan *p = f->plan;
	struct mkfs_writer *w;
	int ret = 0;

	for (unsigned d = 0; !ret && d < p->num_devices && f->compact.grow; d++)
		if (!p->devices[d].keeps_size)
			ret = btrkit_io_resize(p->devices[d].io, p->devices[d].total_bytes, err);
	if (ret)
		return ret;
	ret = mkfs_writer_create(p, &w, err);
	if (ret)
		return ret;
	ret = mkfs_write_trees(w, err);
	mkfs_writer_destroy(w);
	return ret ? ret : mkfs_write_supers(p, err);
}

/* Clears the devices before anything is written. */
static int clear(struct filling *f, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct mkfs_plan *p = f->plan;
	int ret = 0;

	if (f->compact.dry)
		return 0;
	for (unsigned d = 0; !ret && d < p->num_devices && f->compact.grow; d++) {
		ret = btrkit_io_resize(p->devices[d].io, 0, &own);
		p->devices[d].keeps_size = ret == -EOPNOTSUPP;
		if (p->devices[d].keeps_size) {
			p->devices[d].total_bytes = p->devices[d].io->size;
			ret = 0;
		}
		ret = err_pass(err, &own, ret);
		if (ret && p->num_devices > 1)
			err_at_devid(err, d + 1u);
	}
	if (!ret)
		ret = mkfs_compact_check(&f->compact, err);
	for (unsigned d = 0; !ret && d < p->num_devices; d++)
		if (!f->compact.grow || p->devices[d].keeps_size)
			return mkfs_clear_devices(p, err);
	return ret;
}

/* Empties image files after a failure. */
static void empty(const struct filling *f)
{
	const struct mkfs_plan *p = f->plan;

	for (unsigned d = 0; d < p->num_devices && f->compact.grow && f->cleared; d++)
		if (!p->devices[d].keeps_size && btrkit_io_resize(p->devices[d].io, 0, NULL))
			break;
}

/* Verifies the new filesystem if requested. If it differs from the source, its superblocks are removed. */
static int verify(struct filling *f, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	int ret;

	if (!(f->plan->opts.flags & BTRKIT_MKFS_VERIFY))
		return 0;
	ret = mkfs_verify(f->plan, &f->fill, result, err);
	if (ret)
		mkfs_take_back(f->plan);
	return ret;
}

static int make(struct filling *f, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct mkfs_plan *p = f->plan;
	int ret;

	ret = mkfs_contents_create(&f->fill.contents, err);
	if (!ret)
		ret = read_source(f, err);
	if (!ret && p->opts.sort)
		ret = mkfs_sort_read(p->opts.sort, &f->sort, err);
	if (!ret)
		ret = mkfs_compact_begin(&f->compact, err);
	for (unsigned d = 0; d < p->num_devices; d++)
		p->layout.total_bytes += f->compact.grow ? 0 : p->devices[d].total_bytes;
	if (!ret)
		ret = read_names(f, err);
	if (!ret)
		ret = clear(f, err);
	f->cleared = !ret && !f->compact.dry;
	if (!ret)
		ret = read_all(f, err);
	if (!ret)
		ret = plan(f, err);
	if (ret || f->compact.dry)
		return ret;
	ret = write_all(f, err);
	return ret ? ret : verify(f, result, err);
}

static void tell(const struct filling *f, struct btrkit_mkfs_result *r)
{
	const struct mkfs_contents *c = f->fill.contents;

	r->inodes = f->fill.source->num_inodes;
	r->files = f->so_far.total_files;
	r->file_bytes = f->so_far.total_bytes;
	r->changed = source_num_changes(f->fill.source);
	r->compressed_from = c->compressed_from;
	r->compressed_to = c->compressed_to;
	if (c->compressed_from)
		r->compressor = encoder_library((uint8_t)f->plan->opts.compression);
}

static void warn_of_changes(const struct filling *f)
{
	const struct btrkit_mkfs_options *o = &f->plan->opts;
	const uint64_t n = source_num_changes(f->fill.source);
	char what[200];

	for (unsigned i = 0; i < n && i < SOURCE_CHANGES_SHOWN; i++) {
		snprintf(what, sizeof(what), "%s: changed while it was read", source_change(f->fill.source, i));
		o->warning(o->progress_ctx, what);
	}
	if (n > SOURCE_CHANGES_SHOWN) {
		snprintf(what, sizeof(what), "%" PRIu64 " more files changed while they were read",
			 n - SOURCE_CHANGES_SHOWN);
		o->warning(o->progress_ctx, what);
	}
}

static void warn(const struct filling *f)
{
	const struct btrkit_mkfs_options *o = &f->plan->opts;
	char what[128];

	if (!o->warning)
		return;
	warn_of_changes(f);
	if (!f->fill.source->cut_links)
		return;
	snprintf(what, sizeof(what), "%" PRIu64 " hard links across subvolumes became separate inodes",
		 f->fill.source->cut_links);
	o->warning(o->progress_ctx, what);
}

int mkfs_make_filled(struct mkfs_plan *p, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct filling f = {
		.plan = p,
		.compact = { .opts = &p->opts,
			     .devices = p->devices,
			     .num_devices = p->num_devices,
			     .layout = &p->layout,
			     .grow = p->opts.flags & (BTRKIT_MKFS_FIT | BTRKIT_MKFS_DRY),
			     .dry = p->opts.flags & BTRKIT_MKFS_DRY },
	};
	int ret = check_plan(p, err);

	if (!ret)
		ret = make(&f, result, err);
	if (!ret) {
		tell(&f, result);
		warn(&f);
	} else {
		empty(&f);
	}
	p->fill = NULL;
	units_destroy(f.units);
	mkfs_sort_destroy(f.sort);
	mkfs_fill_release(&f.fill);
	mkfs_contents_destroy(f.fill.contents);
	source_destroy(f.fill.source);
	free(f.targets);
	free(f.sorted);
	mkfs_compact_release(&f.compact);
	return ret;
}
