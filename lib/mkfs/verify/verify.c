// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the new filesystem again and compares it with the source. Threads receive several hundred inodes at a time, and
 * large files in parts. The results are processed in order, so that the messages do not depend on the number of
 * threads.
 */
#include "lib/mkfs/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/pipeline.h"
#include "lib/fs/file.h"
#include "lib/mkfs/verify/compare.h"
#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"

#define BATCH_INODES 256u

/* Consecutive inodes of source.in_order, or a part of one file or group. */
struct batch {
	struct compare compare;
	uint32_t first, count;
	uint64_t bytes;	 /* of the contents or of the part */
	uint64_t offset; /* of the part: file offset or logical address */
	bool is_part;
	const struct mkfs_group *group; /* group that the part belongs to, or NULL */
};

struct verifier {
	const struct mkfs_plan *plan;
	const struct source *source;
	struct compare all; /* combined results */
	struct batch *batches;
	void **slots;
	unsigned num_batches;
	struct pipeline *pipeline;
	struct batch *open;
	uint64_t contents;	   /* total size of all files */
	uint64_t given_out, total; /* bytes to compare */
	/* Of the file whose parts are being combined. */
	uint64_t digest;
	bool unread;
};

static uint64_t contents_size(const struct source_inode *n)
{
	return S_ISREG(n->mode) ? n->size : 0;
}

static int compare_file(struct verifier *v, struct compare *c, uint32_t inode, struct btrkit_error *err)
{
	const uint64_t size = contents_size(&v->source->inodes[inode]);
	uint64_t digest = 0;
	int ret;

	ret = compare_inode(c, inode, err);
	if (ret || !size)
		return ret;
	ret = compare_contents(c, inode, 0, size, err);
	if (ret || c->unread || !source_streams(v->source))
		return ret;
	for (unsigned i = 0; i < c->num_units; i++)
		digest = digest_fold(digest, c->units[i].offset, c->units[i].digest);
	compare_digest(c, inode, digest);
	return 0;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct verifier *v = ctx;
	struct batch *b = slot;
	int ret = 0;

	if (b->group)
		return compare_copies(&b->compare, v->plan, b->group, b->offset, b->bytes, err);
	if (b->is_part) {
		const uint32_t inode = v->source->in_order[b->first];

		ret = b->offset ? 0 : compare_inode(&b->compare, inode, err);
		return ret ? ret : compare_contents(&b->compare, inode, b->offset, b->bytes, err);
	}
	for (uint32_t i = 0; !ret && i < b->count; i++)
		ret = compare_file(v, &b->compare, v->source->in_order[b->first + i], err);
	return ret;
}

static void take_lines(struct compare *to, const struct compare *from)
{
	for (unsigned i = 0; i < COMPARE_LINES && i < from->differences; i++)
		if (to->differences + i < COMPARE_LINES)
			memcpy(to->lines[to->differences + i], from->lines[i], sizeof(to->lines[0]));
	to->differences += from->differences;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct verifier *v = ctx;
	const struct batch *b = slot;
	const uint32_t inode = v->source->in_order[b->first];

	(void)err;
	take_lines(&v->all, &b->compare);
	if (!b->is_part || !source_streams(v->source))
		return 0;
	if (!b->offset) {
		v->digest = 0;
		v->unread = false;
	}
	v->unread |= b->compare.unread;
	for (unsigned i = 0; i < b->compare.num_units; i++)
		v->digest = digest_fold(v->digest, b->compare.units[i].offset, b->compare.units[i].digest);
	if (b->offset + b->bytes == v->source->inodes[inode].size && !v->unread)
		compare_digest(&v->all, inode, v->digest);
	return 0;
}

static void submit(struct verifier *v)
{
	if (v->open)
		pipeline_submit(v->pipeline);
	v->open = NULL;
}

static int next_batch(struct verifier *v, uint32_t first, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &v->plan->opts;
	struct batch *b;
	void *slot;
	int ret;

	submit(v);
	ret = o->verifying ? o->verifying(o->progress_ctx, v->given_out, v->total) : 0;
	if (ret)
		return err_system(err, ret, "interrupted");
	ret = pipeline_next(v->pipeline, &slot, err);
	if (ret)
		return ret;
	b = slot;
	b->compare.differences = 0;
	b->first = first;
	b->count = 0;
	b->bytes = b->offset = 0;
	b->is_part = false;
	b->group = NULL;
	v->open = b;
	return 0;
}

/* State for skipping holes. If the source can be queried, both files must have the hole. */
struct holes {
	struct btrkit_file *file;
	int fd;
	uint64_t size;
};

static int open_holes(const struct verifier *v, uint32_t inode, struct holes *h, struct btrkit_error *err)
{
	const struct source_inode *n = &v->source->inodes[inode];

	*h = (struct holes){ NULL, -1, n->size };
	if (!source_streams(v->source)) {
		h->fd = source_file_open(v->source, n->contents, err);
		if (h->fd < 0)
			return h->fd;
	}
	/* If it cannot be opened, the comparison will report it. */
	if (btrkit_file_open(v->all.fs, mkfs_fill_root(n), mkfs_fill_objectid(n), &h->file, NULL))
		h->file = NULL;
	return 0;
}

static void close_holes(struct holes *h)
{
	btrkit_file_close(h->file);
	if (h->fd >= 0)
		close(h->fd);
}

/* Returns the start of the first unit from @at on that is not entirely a hole, or of the last unit. */
static uint64_t skip_holes(const struct holes *h, uint64_t at)
{
	const uint64_t last = (h->size - 1) - (h->size - 1) % DIGEST_UNIT;
	uint64_t next = at;

	if (!h->file || file_next_data(h->file, at, &next, NULL))
		return at;
	if (h->fd >= 0) {
		const off_t data = lseek(h->fd, (off_t)at, SEEK_DATA);

		if (data < 0 && errno != ENXIO)
			return at;
		if (data >= 0 && (uint64_t)data < next)
			next = (uint64_t)data;
	}
	next -= next % DIGEST_UNIT;
	return next < last ? next : last;
}

static int give_parts(struct verifier *v, uint32_t position, struct btrkit_error *err)
{
	const uint32_t inode = v->source->in_order[position];
	const uint64_t size = v->source->inodes[inode].size;
	struct holes h;
	int ret;

	ret = open_holes(v, inode, &h, err);
	for (uint64_t at = 0, len; !ret && at < size; at += len) {
		const uint64_t data = at ? skip_holes(&h, at) : 0;

		v->given_out += data - at;
		at = data;
		len = size - at < COMPARE_BYTES ? size - at : COMPARE_BYTES;
		ret = next_batch(v, position, err);
		if (ret)
			break;
		v->open->is_part = true;
		v->open->offset = at;
		v->open->bytes = len;
		v->given_out += len;
	}
	close_holes(&h);
	submit(v);
	return ret;
}

/* Returns whether a group is compared by itself: it has several copies, or tree blocks. */
static bool has_more(const struct mkfs_group *g)
{
	return g->role != MKFS_DATA || raid_copies(&g->shape) > 1;
}

/* Submits a used range of a group. */
static int give_range(struct verifier *v, const struct mkfs_group *g, uint64_t from, uint64_t end,
		      struct btrkit_error *err)
{
	int ret = 0;

	for (uint64_t at = from, len; !ret && at < end; at += len) {
		len = end - at < COMPARE_BYTES ? end - at : COMPARE_BYTES;
		ret = next_batch(v, 0, err);
		if (ret)
			break;
		v->open->group = g;
		v->open->offset = at;
		v->open->bytes = len;
		v->given_out += len;
	}
	return ret;
}

static int give_groups(struct verifier *v, struct btrkit_error *err)
{
	const struct mkfs_layout *l = &v->plan->layout;
	int ret = 0;

	for (unsigned i = 0; !ret && i < l->num_groups; i++) {
		const struct mkfs_group *g = &l->groups[i];
		const uint64_t end = mkfs_group_end(v->plan, g);
		struct mkfs_range gap;

		for (uint64_t from = g->logical; !ret && has_more(g) && from < end; from = gap.start + gap.length) {
			if (!mkfs_group_next_free(g, end, from, &gap) || gap.start > end)
				gap = (struct mkfs_range){ end, 0 };
			ret = give_range(v, g, from, gap.start, err);
		}
	}
	submit(v);
	return ret;
}

static void count_all(struct verifier *v)
{
	const struct mkfs_layout *l = &v->plan->layout;
	const struct source *s = v->source;

	for (uint32_t i = 0; i < s->num_inodes; i++)
		v->contents += contents_size(&s->inodes[i]);
	v->total = v->contents;
	for (unsigned i = 0; i < l->num_groups; i++)
		v->total += has_more(&l->groups[i]) ? mkfs_group_used(v->plan, &l->groups[i]) : 0;
}

static int give_inodes(struct verifier *v, struct btrkit_error *err)
{
	const struct source *s = v->source;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < s->num_inodes; i++) {
		const uint64_t size = contents_size(&s->inodes[s->in_order[i]]);

		if (size > COMPARE_BYTES) {
			ret = give_parts(v, i, err);
			continue;
		}
		if (!v->open || v->open->count == BATCH_INODES || v->open->bytes + size > COMPARE_BYTES)
			ret = next_batch(v, i, err);
		if (ret)
			break;
		v->open->count++;
		v->open->bytes += size;
		v->given_out += size;
	}
	submit(v);
	return ret;
}

static int give_out(struct verifier *v, struct btrkit_error *err)
{
	int ret;

	count_all(v);
	ret = give_inodes(v, err);
	if (!ret)
		ret = give_groups(v, err);
	return ret ? ret : pipeline_drain(v->pipeline, err);
}

static int create_batches(struct verifier *v, struct btrkit_error *err)
{
	const unsigned threads = pipeline_threads(v->plan->opts.threads);

	v->num_batches = 2 * threads;
	v->batches = calloc(v->num_batches, sizeof(*v->batches));
	v->slots = calloc(v->num_batches, sizeof(*v->slots));
	if (!v->batches || !v->slots)
		return err_nomem(err);
	for (unsigned i = 0; i < v->num_batches; i++) {
		struct compare *c = &v->batches[i].compare;

		c->fill = v->all.fill;
		c->fs = v->all.fs;
		c->found = malloc(DIGEST_UNIT);
		c->wanted = malloc(DIGEST_UNIT);
		if (!c->found || !c->wanted)
			return err_nomem(err);
		v->slots[i] = &v->batches[i];
	}
	return pipeline_create(&(struct pipeline_ops){ work, finish, v }, threads, v->slots, v->num_batches,
			       &v->pipeline, err);
}

static void release_batches(struct verifier *v)
{
	pipeline_destroy(v->pipeline);
	for (unsigned i = 0; v->batches && i < v->num_batches; i++) {
		free(v->batches[i].compare.found);
		free(v->batches[i].compare.wanted);
	}
	free(v->batches);
	free(v->slots);
}

/* Reports read errors and damage that were hidden by another copy. */
static void compare_devices(struct verifier *v)
{
	const struct volume *volume = v->all.fs->volume;

	for (size_t i = 0; i < volume_num_devices(volume); i++) {
		const struct volume_errors e = volume_errors(volume, i);

		if (e.read_errors || e.damaged)
			compare_differs(&v->all, SOURCE_NONE,
					"device %" PRIu64 ": %" PRIu64 " reads failed, %" PRIu64
					" copies are damaged",
					volume_device(volume, i).devid, e.read_errors, e.damaged);
	}
}

static int tell(const struct verifier *v, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &v->plan->opts;
	const uint64_t n = v->all.differences;
	char more[64];

	for (uint64_t i = 0; o->warning && i < n && i < COMPARE_LINES; i++)
		o->warning(o->progress_ctx, v->all.lines[i]);
	if (o->warning && n > COMPARE_LINES) {
		snprintf(more, sizeof(more), "and %" PRIu64 " more", n - COMPARE_LINES);
		o->warning(o->progress_ctx, more);
	}
	return n ? err_set(err, BTRKIT_CORRUPT, "the new filesystem differs from the source in %" PRIu64 " place%s", n,
			   n > 1 ? "s" : "") :
		   0;
}

static int open_written(const struct mkfs_plan *p, struct btrkit_fs **ret, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(p->num_devices, sizeof(struct btrkit_io *));
	int r;

	if (!ios)
		return err_nomem(err);
	for (unsigned d = 0; d < p->num_devices; d++)
		ios[d] = p->devices[d].io;
	r = btrkit_fs_open(ios, p->num_devices, NULL, ret, err);
	free(ios);
	return r;
}

int mkfs_verify(const struct mkfs_plan *p, const struct mkfs_fill *f, struct btrkit_mkfs_result *result,
		struct btrkit_error *err)
{
	struct verifier *v = calloc(1, sizeof(*v));
	int ret;

	if (!v)
		return err_nomem(err);
	v->plan = p;
	v->source = f->source;
	v->all.fill = f;
	ret = open_written(p, &v->all.fs, err);
	if (!ret)
		ret = compare_subvolumes(&v->all, err);
	if (!ret)
		ret = create_batches(v, err);
	if (!ret)
		ret = give_out(v, err);
	release_batches(v);
	if (!ret) {
		compare_devices(v);
		ret = tell(v, err);
	}
	fs_release(v->all.fs);
	if (!ret) {
		result->verified = f->source->num_inodes;
		result->verified_bytes = v->contents;
	}
	free(v);
	return ret;
}
