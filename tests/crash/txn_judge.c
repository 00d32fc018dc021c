// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/dump.h>

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"

enum {
	NOTHING = -2,
	BAD = -1
};

/* What a superblock's bytes and those of all pages that were read come to. A judgement depends on nothing else. */
struct verdict {
	unsigned mirror;
	uint8_t super[SUPER_SIZE];
	size_t n;
	uint64_t *numbers;
	uint8_t *bytes;
	int holds;
	char why[WHY_SIZE];
	struct verdict *next;
};

static void *must(void *memory)
{
	if (!memory)
		exit(99);
	return memory;
}

unsigned supers_of(struct sparse *device)
{
	unsigned n = 0;

	while (n < SUPER_MIRRORS && super_offset(n) + SUPER_SIZE <= sparse_io(device)->size)
		n++;
	return n;
}

static void digest_add(struct digest *d, const void *data, size_t len)
{
	const uint8_t *at = data;
	uint64_t word;

	for (; len; at += word < 8 ? word : 8, len -= word < 8 ? word : 8) {
		le64 raw = { { 0 } };

		word = len < 8 ? len : 8;
		memcpy(raw.b, at, word);
		d->a = (d->a ^ le64_get(raw)) * 0x9e3779b97f4a7c15ull;
		d->a ^= d->a >> 29;
		d->b = (d->b + le64_get(raw) + word) * 0xc2b2ae3d27d4eb4full;
		d->b ^= d->b >> 31;
	}
}

static int take_text(void *ctx, const void *data, size_t len)
{
	digest_add(ctx, data, len);
	/* The dump goes on after a damaged item; the audit does not. */
	return 0;
}

/* A piece of an extent, as all copies have it: those of a tree block are equal. */
static int read_piece(struct btrkit_fs *fs, uint64_t logical, size_t len, bool data, uint8_t *buf, struct digest *d,
		      struct btrkit_error *err)
{
	struct digest first = { 0, 0 };
	int ret = 0;

	for (unsigned mirror = 0; !ret; mirror++) {
		struct digest one = { 0, 0 };
		struct copy copy;

		ret = volume_map(fs->volume, logical, len, mirror, &copy, err);
		if (!ret)
			ret = btrkit_io_read(copy.io, copy.physical, buf, len, err);
		if (ret)
			break;
		digest_add(data ? d : &one, buf, len);
		if (!mirror)
			first = one;
		else if (memcmp(&first, &one, sizeof(one)))
			ret = err_corrupt(err, NULL, "the copies of a tree block differ");
	}
	if (ret < 0)
		err_at_logical(err, logical);
	return ret < 0 ? ret : 0;
}

static int read_extent(struct btrkit_fs *fs, const struct extent_item *ei, struct digest *d, struct btrkit_error *err)
{
	const size_t step = fs->items.nodesize;
	uint8_t *buf = must(malloc(step));
	int ret = 0;

	for (uint64_t at = 0; !ret && at < ei->num_bytes; at += step)
		ret = read_piece(fs, ei->bytenr + at, ei->num_bytes - at < step ? (size_t)(ei->num_bytes - at) : step,
				 ei->flags & EXTENT_FLAG_DATA, buf, d, err);
	free(buf);
	return ret;
}

static int read_extents(struct btrkit_fs *fs, struct digest *d, struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	int ret = fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, err);

	if (ret)
		return ret;
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		struct extent_item ei;

		if (c.item.key.type != KEY_EXTENT_ITEM && c.item.key.type != KEY_METADATA_ITEM)
			continue;
		ret = extent_item_decode(&fs->items, &c.item, &ei, err);
		if (!ret)
			ret = read_extent(fs, &ei, d, err);
		if (ret)
			break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Everything that one superblock reaches. @return whether it is whole; @why if not */
static bool read_all(struct sparse *state, unsigned mirror, struct committed *ret, char *why)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_SUPER_MIRROR, .super_mirror = mirror };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(state);
	struct disk_super super;
	struct btrkit_fs *fs;
	int r;

	*ret = (struct committed){ .device = state };
	r = btrkit_fs_open(&io, 1, &opts, &fs, &err);
	if (!r) {
		super = fs->super.disk;
		memset(super.csum, 0, sizeof(super.csum));
		super.bytenr = le64_put(0);
		digest_add(&ret->all, &super, sizeof(super));
		ret->generation = fs->super.generation;
		r = audit(fs, &ret->counts, &err);
		if (!r)
			r = audit_backups(fs, &err);
		if (!r)
			r = btrkit_dump_tree(fs, NULL, take_text, &ret->all, &err);
		if (!r)
			r = read_extents(fs, &ret->all, &err);
		btrkit_fs_close(fs);
	}
	if (r)
		btrkit_error_format(&err, why, WHY_SIZE);
	return !r;
}

bool txn_judge_add(struct txn_judge *j, struct sparse *device, char why[WHY_SIZE])
{
	struct committed *c;

	j->states = must(reallocarray(j->states, j->n + 1, sizeof(*j->states)));
	c = &j->states[j->n];
	if (!read_all(device, 0, c, why)) {
		sparse_free(device);
		return false;
	}
	j->n++;
	if (j->n > 1 && c->counts.inexact_trees > j->states[0].counts.inexact_trees) {
		snprintf(why, WHY_SIZE, "the root item of a tree counts its blocks wrong");
		return false;
	}
	if (j->n > 1 && c->generation != c[-1].generation + 1) {
		snprintf(why, WHY_SIZE, "not the next generation");
		return false;
	}
	return true;
}

bool txn_judge_whole(struct sparse *device, uint64_t *generation, char why[WHY_SIZE])
{
	struct committed found;
	const bool whole = read_all(device, 0, &found, why);

	if (generation)
		*generation = found.generation;
	return whole;
}

void txn_judge_release(struct txn_judge *j)
{
	while (j->n)
		sparse_free(j->states[--j->n].device);
	free(j->states);
	while (j->verdicts) {
		struct verdict *v = j->verdicts;

		j->verdicts = v->next;
		free(v->numbers);
		free(v->bytes);
		free(v);
	}
	j->states = NULL;
}

static bool rests_on(const struct verdict *v, const struct sparse *state)
{
	for (size_t i = 0; i < v->n; i++)
		if (memcmp(sparse_page(state, v->numbers[i]), v->bytes + i * SPARSE_PAGE, SPARSE_PAGE))
			return false;
	return true;
}

/* Keeps the pages that were read. */
static void keep_pages(struct verdict *v, const struct sparse *state, const uint8_t *trace, uint64_t pages)
{
	size_t n = 0;

	for (uint64_t i = 0; i < pages; i++)
		n += trace[i / 8] >> i % 8 & 1;
	v->numbers = must(malloc(n * sizeof(*v->numbers)));
	v->bytes = must(malloc(n * SPARSE_PAGE));
	for (uint64_t i = 0; i < pages; i++) {
		if (!(trace[i / 8] >> i % 8 & 1))
			continue;
		v->numbers[v->n] = i;
		memcpy(v->bytes + v->n++ * SPARSE_PAGE, sparse_page(state, i), SPARSE_PAGE);
	}
}

static int find_committed(const struct txn_judge *j, const struct committed *found, char *why)
{
	for (size_t i = 0; i < j->n; i++)
		if (!memcmp(&j->states[i].all, &found->all, sizeof(found->all)))
			return (int)i;
	snprintf(why, WHY_SIZE, "none of the committed states, generation %llu", (unsigned long long)found->generation);
	return BAD;
}

static const struct verdict *judge_anew(struct txn_judge *j, struct sparse *state, unsigned mirror)
{
	const uint64_t pages = (sparse_io(state)->size + SPARSE_PAGE - 1) / SPARSE_PAGE;
	uint8_t *trace = must(calloc(1, pages / 8 + 1));
	struct verdict *v = must(calloc(1, sizeof(*v)));
	struct committed found;

	v->mirror = mirror;
	memcpy(v->super, sparse_page(state, super_offset(mirror) / SPARSE_PAGE), SUPER_SIZE);
	sparse_trace(state, trace);
	v->holds = read_all(state, mirror, &found, v->why) ? find_committed(j, &found, v->why) : BAD;
	sparse_trace(state, NULL);
	keep_pages(v, state, trace, pages);
	free(trace);
	v->next = j->verdicts;
	j->verdicts = v;
	j->judged++;
	return v;
}

/* By one copy of the superblock. */
static int judge_copy(struct txn_judge *j, struct sparse *state, unsigned mirror, char *why)
{
	const uint8_t *page = sparse_page(state, super_offset(mirror) / SPARSE_PAGE);
	const struct verdict *v;
	struct super judged;

	if (super_decode((const struct disk_super *)page, super_offset(mirror), &judged, NULL))
		return NOTHING;
	for (v = j->verdicts; v; v = v->next)
		if (v->mirror == mirror && !memcmp(v->super, page, SUPER_SIZE) && rests_on(v, state))
			break;
	if (!v)
		v = judge_anew(j, state, mirror);
	if (v->holds < 0)
		snprintf(why, WHY_SIZE, "%.500s (by superblock %u)", v->why, mirror);
	return v->holds;
}

int txn_judge_state(struct txn_judge *j, struct sparse *state, size_t floor, bool *torn, char why[WHY_SIZE])
{
	const unsigned supers = supers_of(state);
	int holds = NOTHING;

	for (unsigned mirror = 0; mirror < supers; mirror++) {
		int copy = judge_copy(j, state, mirror, why);

		if (!mirror)
			*torn = copy == NOTHING;
		if (copy == BAD)
			return -1;
		if (copy == NOTHING)
			continue;
		if ((size_t)copy < floor || (size_t)copy > floor + 1) {
			snprintf(why, WHY_SIZE, "superblock %u is that of commit %d, where %zu were durable", mirror,
				 copy, floor);
			return -1;
		}
		if (holds == NOTHING)
			holds = copy;
	}
	if (holds == NOTHING) {
		snprintf(why, WHY_SIZE, "no superblock is valid");
		return -1;
	}
	return holds;
}
