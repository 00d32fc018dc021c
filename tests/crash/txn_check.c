// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/dump.h>

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"
#include "file_trees.h"

enum {
	NOTHING = -2,
	BAD = -1
};

/* A way to look at the filesystem: which devices are present, and which superblock copy is used. */
struct view {
	unsigned mask;
	int mirror;	/* BAD: the primary, or a mirror if that is not valid */
	unsigned first; /* device that is passed first */
};

/* A page of a device. */
struct place {
	unsigned device;
	uint64_t number;
};

/*
 * A result together with all pages that were read for it, except superblocks. It holds for all states with these pages.
 */
struct verdict {
	unsigned mask;
	size_t commit;
	size_t n;
	struct place *places;
	uint8_t *bytes;
	bool whole;
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
	/* The dump continues after a damaged item; the audit does not. */
	return 0;
}

/* Everything that is available for a piece: each copy, and what parity yields for each strip. */
struct sight {
	size_t len;
	unsigned n;
	bool differs;
	struct digest digest;
};

static int see(void *ctx, const void *buf, struct btrkit_error *err)
{
	struct sight *sight = ctx;
	struct digest one = { 0, 0 };

	(void)err;
	digest_add(&one, buf, sight->len);
	if (!sight->n++)
		sight->digest = one;
	sight->differs |= memcmp(&sight->digest, &one, sizeof(one)) != 0;
	/* Reject each copy, so that the next one is offered. */
	return -EUCLEAN;
}

static int read_piece(struct btrkit_fs *fs, uint64_t logical, size_t len, uint8_t *buf, struct digest *d,
		      struct btrkit_error *err)
{
	struct sight sight = { .len = len };
	int ret = volume_read(fs->volume, logical, buf, len, see, &sight, err);

	if (!sight.n)
		return ret;
	if (sight.differs) {
		err_corrupt(err, NULL, "the copies differ");
		err_at_logical(err, logical);
		return -EUCLEAN;
	}
	digest_add(d, &sight.digest, sizeof(sight.digest));
	return 0;
}

/* Reads piece by piece, none of which spans two strips: a different device may be missing for each strip. */
static int read_extent(struct btrkit_fs *fs, const struct extent_item *ei, const struct kept_space *kept,
		       struct digest *d, struct btrkit_error *err)
{
	uint8_t *buf = must(malloc(fs->geometry.nodesize));
	struct copy copy;
	int ret = 0;

	for (uint64_t at = 0; !ret && at < ei->num_bytes; at += copy.length) {
		const uint64_t left = ei->num_bytes - at, most = kept ? fs->geometry.sectorsize : fs->geometry.nodesize;

		ret = volume_map(fs->volume, ei->bytenr + at, left < most ? left : most, 0, &copy, err);
		if (!ret && !(kept && kept_space_has(kept, ei->bytenr + at, copy.length)))
			ret = read_piece(fs, ei->bytenr + at, (size_t)copy.length, buf, d, err);
	}
	free(buf);
	return ret;
}

static int read_extents(struct btrkit_fs *fs, const struct kept_space *kept, struct digest *d, struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	int ret = fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, err);

	if (ret)
		return ret;
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		struct extent_item ei;
		bool some;

		if (c.item.key.type != KEY_EXTENT_ITEM && c.item.key.type != KEY_METADATA_ITEM)
			continue;
		ret = extent_item_decode(&fs->items, &c.item, &ei, err);
		/* Few extents contain preallocated space. */
		some = kept && !ret && kept_space_touches(kept, ei.bytenr, ei.num_bytes);
		if (!ret)
			ret = read_extent(fs, &ei, some ? kept : NULL, d, err);
		if (ret)
			break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int read_files(struct btrkit_fs *fs, struct digest *d, struct btrkit_error *err)
{
	struct kept_space kept;
	int ret = file_trees_check(fs, err);

	if (ret)
		return ret;
	ret = kept_space_find(fs, &kept, err);
	if (!ret)
		ret = read_extents(fs, &kept, d, err);
	kept_space_release(&kept);
	return ret;
}

static int open_view(const struct disks *disks, const struct view *v, struct btrkit_fs **ret,
		     struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = v->mirror < 0 ? 0 : BTRKIT_OPEN_SUPER_MIRROR,
						  .super_mirror = v->mirror < 0 ? 0 : (unsigned)v->mirror };
	struct btrkit_io *io[DISKS_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < disks->n; i++) {
		const unsigned device = (v->first + i) % disks->n;

		if (v->mask >> device & 1)
			io[n++] = sparse_io(disks->at[device]);
	}
	return btrkit_fs_open(io, n, &opts, ret, err);
}

/* Hashes the superblock without the fields that differ between copies and devices. */
static void digest_super(struct digest *d, const struct disk_super *of)
{
	struct disk_super super = *of;

	memset(super.csum, 0, sizeof(super.csum));
	memset(&super.dev_item, 0, sizeof(super.dev_item));
	super.bytenr = le64_put(0);
	digest_add(d, &super, sizeof(super));
}

static unsigned all_of(const struct disks *disks)
{
	return (1u << disks->n) - 1;
}

/* Reads everything reachable. @known: findings that the audit ignores. @return whether it is intact; @why if not */
static bool read_all(const struct txn_check *j, const struct disks *disks, const struct view *v, unsigned known,
		     struct committed *ret, char *why)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	int r;

	*ret = (struct committed){ .disks = *disks };
	r = open_view(disks, v, &fs, &err);
	if (!r) {
		digest_super(&ret->all, &fs->super.disk);
		ret->generation = fs->super.generation;
		r = audit(fs, known | (v->mask == all_of(disks) ? 0 : AUDIT_MISSING), NULL, &err);
		if (!r)
			r = audit_backups(fs, &err);
		if (!r && !known)
			r = audit_root_bytes(fs, &ret->inexact, &err);
		/* The dump would show blocks of half-deleted subvolumes, which may have been reused. */
		if (!r && !j->files)
			r = btrkit_dump_tree(fs, NULL, take_text, &ret->all, &err);
		if (!r)
			r = j->files ? read_files(fs, &ret->all, &err) : read_extents(fs, NULL, &ret->all, &err);
		btrkit_fs_close(fs);
	}
	if (r)
		btrkit_error_format(&err, why, WHY_SIZE);
	return !r;
}

/* Whether few enough devices are missing for nothing to be lost. */
static bool suffices(const struct txn_check *j, const struct disks *disks, unsigned mask)
{
	unsigned missing = disks->n;

	for (unsigned i = 0; i < disks->n; i++)
		missing -= mask >> i & 1;
	return mask && missing <= j->spare;
}

static void tell_without(char *why, unsigned mask, const struct disks *disks, const char *what)
{
	char line[WHY_SIZE];
	int n = snprintf(line, sizeof(line), "%.500s", what);

	for (unsigned i = 0; i < disks->n; i++)
		if (!(mask >> i & 1))
			n += snprintf(line + n, sizeof(line) - (size_t)n, " (without device %u)", i + 1);
	memcpy(why, line, sizeof(line));
}

static bool is_committed(const struct txn_check *j, const struct committed *c)
{
	for (size_t i = 0; i < j->n; i++)
		if (!memcmp(&j->states[i].all, &c->all, sizeof(c->all)))
			return true;
	return false;
}

bool txn_check_whole(struct txn_check *j, const struct disks *disks, unsigned known, uint64_t *generation,
		     char why[WHY_SIZE])
{
	struct committed found, other;

	if (!read_all(j, disks, &(struct view){ all_of(disks), 0, 0 }, known, &found, why))
		return false;
	if (generation)
		*generation = found.generation;
	for (unsigned mask = 1; mask < all_of(disks); mask++) {
		if (!suffices(j, disks, mask))
			continue;
		if (!read_all(j, disks, &(struct view){ mask, 0, 0 }, known, &other, why)) {
			tell_without(why, mask, disks, why);
			return false;
		}
		/* If nothing was left to do, a device may still have the previous superblock. */
		if (memcmp(&found.all, &other.all, sizeof(found.all)) &&
		    (other.generation == found.generation || !is_committed(j, &other))) {
			tell_without(why, mask, disks, "not what it is with all devices");
			return false;
		}
	}
	return true;
}

/* All copies of the superblock on all devices must agree. */
static bool verify_supers(const struct txn_check *j, const struct committed *c, char *why)
{
	const unsigned all = all_of(&c->disks);

	for (unsigned device = 0; device < c->disks.n; device++) {
		struct sparse *s = c->disks.at[device];
		struct committed found;

		for (unsigned mirror = 0; mirror < supers_of(s); mirror++) {
			const uint8_t *page = sparse_page(s, super_offset(mirror) / SPARSE_PAGE);
			struct super checked;

			if (super_decode((const struct disk_super *)page, super_offset(mirror), &checked, NULL) ||
			    checked.generation != c->generation) {
				snprintf(why, WHY_SIZE, "superblock %u of device %u is not that of the commit", mirror,
					 device + 1);
				return false;
			}
			if (!mirror && !device)
				continue;
			if (!read_all(j, &c->disks, &(struct view){ all, (int)mirror, device }, 0, &found,
				      why))
				return false;
			if (memcmp(&found.all, &c->all, sizeof(found.all))) {
				snprintf(why, WHY_SIZE, "superblock %u of device %u differs", mirror, device + 1);
				return false;
			}
		}
	}
	return true;
}

bool txn_check_add(struct txn_check *j, struct disks disks, char why[WHY_SIZE])
{
	struct committed *c;

	j->states = must(reallocarray(j->states, j->n + 1, sizeof(*j->states)));
	c = &j->states[j->n];
	if (!read_all(j, &disks, &(struct view){ all_of(&disks), 0, 0 }, 0, c, why)) {
		disks_free(&disks);
		return false;
	}
	j->n++;
	if (j->n > 1 && c->inexact > j->states[0].inexact) {
		snprintf(why, WHY_SIZE, "the root item of a tree has a wrong number of blocks");
		return false;
	}
	if (j->n > 1 && c->generation != c[-1].generation + 1) {
		snprintf(why, WHY_SIZE, "not the next generation");
		return false;
	}
	return verify_supers(j, c, why);
}

void txn_check_release(struct txn_check *j)
{
	while (j->n)
		disks_free(&j->states[--j->n].disks);
	free(j->states);
	while (j->verdicts) {
		struct verdict *v = j->verdicts;

		j->verdicts = v->next;
		free(v->places);
		free(v->bytes);
		free(v);
	}
	j->states = NULL;
}

static bool rests_on(const struct verdict *v, const struct disks *state)
{
	for (size_t i = 0; i < v->n; i++)
		if (memcmp(sparse_page(state->at[v->places[i].device], v->places[i].number), v->bytes + i * SPARSE_PAGE,
			   SPARSE_PAGE))
			return false;
	return true;
}

static bool is_super(uint64_t number)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		if (super_offset(mirror) / SPARSE_PAGE == number)
			return true;
	return false;
}

static uint64_t pages_of(struct sparse *s)
{
	return (sparse_io(s)->size + SPARSE_PAGE - 1) / SPARSE_PAGE;
}

/* Keeps the pages of a device that were read. */
static void keep_pages(struct verdict *v, unsigned device, struct sparse *s, const uint8_t *trace)
{
	const uint64_t bytes = pages_of(s) / 8 + 1;
	size_t n = v->n;

	for (uint64_t i = 0; i < bytes; i++)
		for (unsigned byte = trace[i]; byte; byte &= byte - 1)
			n++;
	v->places = must(reallocarray(v->places, n + 1, sizeof(*v->places)));
	v->bytes = must(reallocarray(v->bytes, n + 1, SPARSE_PAGE));
	for (uint64_t i = 0; v->n < n && i < 8 * bytes; i += trace[i / 8] ? 1 : 8 - i % 8) {
		if (!(trace[i / 8] >> i % 8 & 1))
			continue;
		if (is_super(i)) {
			n--;
			continue;
		}
		v->places[v->n] = (struct place){ device, i };
		memcpy(v->bytes + v->n++ * SPARSE_PAGE, sparse_page(s, i), SPARSE_PAGE);
	}
}

static struct verdict *check_anew(struct txn_check *j, const struct disks *state, const struct view *view,
				  size_t commit)
{
	struct verdict *v = must(calloc(1, sizeof(*v)));
	uint8_t *traces[DISKS_MAX];
	struct committed found;

	v->mask = view->mask;
	v->commit = commit;
	for (unsigned i = 0; i < state->n; i++) {
		traces[i] = must(calloc(1, pages_of(state->at[i]) / 8 + 1));
		sparse_trace(state->at[i], traces[i]);
	}
	/* Superblocks are compared separately, byte by byte. */
	v->whole = read_all(j, state, view, AUDIT_SUPERS, &found, v->why);
	if (v->whole && memcmp(&j->states[commit].all, &found.all, sizeof(found.all))) {
		v->whole = false;
		snprintf(v->why, WHY_SIZE, "not the committed state of generation %llu",
			 (unsigned long long)found.generation);
	}
	for (unsigned i = 0; i < state->n; i++) {
		sparse_trace(state->at[i], NULL);
		keep_pages(v, i, state->at[i], traces[i]);
		free(traces[i]);
	}
	v->next = j->verdicts;
	j->verdicts = v;
	j->checked++;
	return v;
}

/* Whether opening chooses the right superblock. */
static bool check_choice(const struct txn_check *j, const struct disks *state, const struct view *view, size_t commit,
			 char *why)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	bool good;

	if (open_view(state, view, &fs, &err)) {
		btrkit_error_format(&err, why, WHY_SIZE);
		return false;
	}
	good = fs->super.generation == j->states[commit].generation;
	if (!good)
		snprintf(why, WHY_SIZE, "opened at generation %llu, but the newest superblock has %llu",
			 (unsigned long long)fs->super.generation, (unsigned long long)j->states[commit].generation);
	btrkit_fs_close(fs);
	return good;
}

/* The committed state that each superblock stands for, or NOTHING or BAD. */
struct claims {
	int of[DISKS_MAX][SUPER_MIRRORS];
};

/* The superblock of a device that is used in a view. */
static int claim_of(const struct claims *c, unsigned device, int mirror)
{
	int newest = NOTHING;

	if (mirror >= 0 || c->of[device][0] >= 0)
		return c->of[device][mirror < 0 ? 0 : mirror];
	for (unsigned i = 1; i < SUPER_MIRRORS; i++)
		if (c->of[device][i] > newest)
			newest = c->of[device][i];
	return newest;
}

/*
 * Checks the devices of @mask as a set, by the superblock copy @mirror.
 * @return the committed state; NOTHING: too few devices have a superblock; BAD
 */
static int check_mirror(struct txn_check *j, const struct disks *state, const struct claims *claims, unsigned mask,
			int mirror, char *why)
{
	struct view view = { 0, mirror, 0 };
	const struct verdict *v = NULL;
	int newest = NOTHING;
	char what[WHY_SIZE];
	bool good;

	for (unsigned i = 0; i < state->n; i++) {
		const int claim = mask >> i & 1 ? claim_of(claims, i, mirror) : NOTHING;

		view.mask |= claim >= 0 ? 1u << i : 0;
		newest = claim > newest ? claim : newest;
	}
	if (!suffices(j, state, view.mask))
		return NOTHING;
	j->removed += mask != all_of(state);
	good = check_choice(j, state, &view, (size_t)newest, what);
	for (v = j->verdicts; good && v; v = v->next)
		if (v->mask == view.mask && v->commit == (size_t)newest && rests_on(v, state))
			break;
	if (good && !v)
		v = check_anew(j, state, &view, (size_t)newest);
	if (good && v->whole)
		return newest;
	tell_without(why, view.mask, state, good ? v->why : what);
	return BAD;
}

static int read_claim(const struct txn_check *j, const struct disks *state, unsigned device, unsigned mirror,
		      size_t floor, char *why)
{
	const uint64_t number = super_offset(mirror) / SPARSE_PAGE;
	const uint8_t *page = sparse_page(state->at[device], number);
	struct super checked;
	size_t k = 0;

	while (k < j->n && memcmp(page, sparse_page(j->states[k].disks.at[device], number), SUPER_SIZE))
		k++;
	if (k == j->n) {
		if (super_decode((const struct disk_super *)page, super_offset(mirror), &checked, NULL))
			return NOTHING;
		snprintf(why, WHY_SIZE, "superblock %u of device %u is not one that was committed", mirror, device + 1);
		return BAD;
	}
	if (k < floor || k > floor + 1 + (j->behind && !floor)) {
		snprintf(why, WHY_SIZE, "superblock %u of device %u is that of commit %zu, where %zu were durable",
			 mirror, device + 1, k, floor);
		return BAD;
	}
	return (int)k;
}

/* Checks with devices removed, all combinations that the filesystem can do without. */
static bool check_removals(struct txn_check *j, const struct disks *state, const struct claims *claims, bool torn,
			   char *why)
{
	for (unsigned mask = 1; mask < all_of(state); mask++) {
		int holds;

		if (!suffices(j, state, mask))
			continue;
		holds = check_mirror(j, state, claims, mask, torn ? BAD : 0, why);
		if (holds == NOTHING)
			snprintf(why, WHY_SIZE, "too few devices with a superblock are left");
		if (holds < 0)
			return false;
	}
	return true;
}

int txn_check_state(struct txn_check *j, const struct disks *state, size_t floor, bool *torn, char why[WHY_SIZE])
{
	const unsigned supers = supers_of(state->at[0]);
	struct claims claims;
	int holds = NOTHING;

	*torn = false;
	for (unsigned device = 0; device < state->n; device++) {
		for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
			const int claim = mirror < supers ? read_claim(j, state, device, mirror, floor, why) : NOTHING;

			if (claim == BAD)
				return -1;
			claims.of[device][mirror] = claim;
		}
		*torn |= claims.of[device][0] == NOTHING;
	}
	for (int mirror = *torn ? BAD : 0; mirror < (int)supers; mirror++) {
		const int copy = check_mirror(j, state, &claims, all_of(state), mirror, why);

		if (copy == BAD)
			return -1;
		if (holds == NOTHING)
			holds = copy;
	}
	if (holds == NOTHING)
		snprintf(why, WHY_SIZE, "no superblock is valid");
	return holds == NOTHING || !check_removals(j, state, &claims, *torn, why) ? -1 : holds;
}
