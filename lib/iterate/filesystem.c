// SPDX-License-Identifier: LGPL-2.1-or-later
/* Iterators over what a filesystem as a whole has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/iterate/iterate.h"

static int more_subvolumes(struct btrkit_iter *it, struct btrkit_error *err)
{
	struct btrkit_subvolume s;
	int ret = btrkit_subvolume_next(it->fs, it->position, &s, err);

	it->ended = ret == 1;
	if (ret)
		return ret < 0 ? ret : 0;
	it->position = s.id;
	return iterate_result(it, iterate_add(it, &s) ? -ENOMEM : iterate_enough(it), err);
}

int btrkit_iter_subvolumes(struct btrkit_fs *fs, uint64_t after, struct btrkit_iter **ret, struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.position = after,
					.more = more_subvolumes,
					.row_size = sizeof(struct btrkit_subvolume) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_subvolume(struct btrkit_iter *it, const struct btrkit_subvolume **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, more_subvolumes, &row, err);

	if (!r)
		*ret = row;
	return r;
}

static int add_device(void *ctx, const struct btrkit_device *device)
{
	struct btrkit_iter *it = ctx;
	struct btrkit_device row = *device;

	if (device->name)
		row.name = iterate_copy(it, device->name, strlen(device->name) + 1);
	return (device->name && !row.name) || iterate_add(it, &row) ? -ENOMEM : 0;
}

static int all_devices(struct btrkit_iter *it, struct btrkit_error *err)
{
	return iterate_result(it, btrkit_devices(it->fs, add_device, it, err), err);
}

int btrkit_iter_devices(struct btrkit_fs *fs, struct btrkit_iter **ret, struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.all = true,
					.more = all_devices,
					.row_size = sizeof(struct btrkit_device) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_device(struct btrkit_iter *it, const struct btrkit_device **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, all_devices, &row, err);

	if (!r)
		*ret = row;
	return r;
}

static int add_chunk(void *ctx, const struct btrkit_chunk *chunk)
{
	struct btrkit_iter *it = ctx;
	struct btrkit_chunk row = *chunk;

	row.stripes = iterate_copy(it, chunk->stripes, chunk->num_stripes * sizeof(*chunk->stripes));
	return !row.stripes || iterate_add(it, &row) ? -ENOMEM : 0;
}

static int all_chunks(struct btrkit_iter *it, struct btrkit_error *err)
{
	return iterate_result(it, btrkit_chunks(it->fs, add_chunk, it, err), err);
}

int btrkit_iter_chunks(struct btrkit_fs *fs, struct btrkit_iter **ret, struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.all = true,
					.more = all_chunks,
					.row_size = sizeof(struct btrkit_chunk) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_chunk(struct btrkit_iter *it, const struct btrkit_chunk **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, all_chunks, &row, err);

	if (!r)
		*ret = row;
	return r;
}

/* The iterator takes the place of the finding callback; the caller's others are called with the caller's context. */
struct finding_sink {
	struct btrkit_iter *it;
	const struct btrkit_check_options *opts;
};

static int add_finding(void *ctx, const struct btrkit_finding *f)
{
	const struct finding_sink *sink = ctx;
	struct btrkit_finding row = *f;

	if (f->path)
		row.path = iterate_copy(sink->it, f->path, strlen(f->path) + 1);
	return (f->path && !row.path) || iterate_add(sink->it, &row) ? -ENOMEM : 0;
}

static int tell_more(void *ctx, const struct btrkit_check_code *code, uint64_t n)
{
	const struct finding_sink *sink = ctx;

	return sink->opts->more(sink->opts->ctx, code, n);
}

static int tell_fold(void *ctx, const struct btrkit_check_fold *f)
{
	const struct finding_sink *sink = ctx;

	return sink->opts->fold(sink->opts->ctx, f);
}

/* All findings are there from the beginning. */
static int no_more_findings(struct btrkit_iter *it, struct btrkit_error *err)
{
	(void)err;
	it->ended = true;
	return 0;
}

int btrkit_iter_findings(struct btrkit_fs *fs, const struct btrkit_check_options *opts,
			 struct btrkit_check_result *result, struct btrkit_iter **ret, struct btrkit_error *err)
{
	static const struct btrkit_check_options defaults = BTRKIT_CHECK_OPTIONS_INIT;
	const struct btrkit_iter like = { .fs = fs,
					  .all = true,
					  .more = no_more_findings,
					  .row_size = sizeof(struct btrkit_finding) };
	struct btrkit_check_options own = opts ? *opts : defaults;
	struct finding_sink sink = { .opts = opts };
	int r = iterate_begin(&like, &sink.it, err);

	if (r)
		return r;
	own.finding = add_finding;
	own.more = own.more ? tell_more : NULL;
	own.fold = own.fold ? tell_fold : NULL;
	own.ctx = &sink;
	r = iterate_result(sink.it, btrkit_check(fs, &own, result, err), err);
	if (r)
		btrkit_iter_free(sink.it);
	else
		*ret = sink.it;
	return r;
}

int btrkit_iter_next_finding(struct btrkit_iter *it, const struct btrkit_finding **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, no_more_findings, &row, err);

	if (!r)
		*ret = row;
	return r;
}
