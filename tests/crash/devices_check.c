// SPDX-License-Identifier: LGPL-2.1-or-later
#include "devices_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/btrkit.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"
#include "lib/format/super.h"
#include "lib/tree/cursor.h"
#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"
#include "tests/audit/audit.h"

static void digest_add(uint64_t *digest, const void *data, size_t len)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < len; i++)
		*digest = (*digest ^ at[i]) * 0x100000001b3ull;
}

static int take_text(void *ctx, const void *data, size_t len)
{
	digest_add(ctx, data, len);
	return 0;
}

/* Data of all extents, sector by sector. */
static int read_data(struct btrkit_fs *fs, uint64_t *digest, struct btrkit_error *err)
{
	const uint32_t sector = fs->geometry.sectorsize;
	uint8_t *buf = malloc(sector);
	struct tree_root root;
	struct cursor c;
	int ret = fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, err);

	if (!buf)
		exit(99);
	if (ret) {
		free(buf);
		return ret;
	}
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		for (uint64_t at = 0; !ret && c.item.key.type == KEY_EXTENT_ITEM && at < c.item.key.offset;
		     at += sector) {
			ret = volume_read_any(fs->volume, c.item.key.objectid + at, buf, sector, err);
			digest_add(digest, buf, ret ? 0 : sector);
		}
		if (ret)
			break;
	}
	cursor_release(&c);
	free(buf);
	return ret < 0 ? ret : 0;
}

static int open_mask(const struct disks *disks, unsigned mask, unsigned flags, struct btrkit_fs **fs,
		     struct btrkit_error *err)
{
	const struct btrkit_open_options o = { .flags = flags };
	struct btrkit_io *io[DISKS_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < disks->n; i++)
		if (mask >> i & 1)
			io[n++] = sparse_io(disks->at[i]);
	return btrkit_fs_open(io, n, &o, fs, err);
}

/* Reads everything. @known: findings AUDIT_* that do not matter */
static bool read_all(const struct disks *disks, unsigned mask, unsigned known, struct committed *ret, char *why)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	int r = open_mask(disks, mask, 0, &fs, &err);

	*ret = (struct committed){ .members = mask, .digest = 0xcbf29ce484222325ull };
	if (!r) {
		ret->generation = fs->super.generation;
		digest_add(&ret->digest, &fs->super.disk.total_bytes, sizeof(fs->super.disk.total_bytes));
		digest_add(&ret->digest, &fs->super.disk.num_devices, sizeof(fs->super.disk.num_devices));
		r = audit(fs, known, NULL, &err);
		if (!r)
			r = btrkit_dump_tree(fs, NULL, take_text, &ret->digest, &err);
		if (!r)
			r = read_data(fs, &ret->digest, &err);
		btrkit_fs_close(fs);
	}
	if (r)
		btrkit_error_format(&err, why, WHY_SIZE);
	return !r;
}

static bool decode(const struct devices_check *j, const struct disks *disks, unsigned device, unsigned mirror,
		   struct super *ret)
{
	struct disk_super d;

	if (super_offset(mirror) + SUPER_SIZE > sparse_io(disks->at[device])->size)
		return false;
	sparse_read(disks->at[device], super_offset(mirror), &d, sizeof(d));
	return !super_decode(&d, super_offset(mirror), ret, NULL) && !memcmp(ret->fsid, j->fsid, sizeof(j->fsid));
}

static int state_of(const struct devices_check *j, uint64_t generation)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->states[i].generation == generation)
			return (int)i;
	return -1;
}

int devices_claim(const struct devices_check *j, const struct disks *disks, unsigned device)
{
	struct super s;
	int newest = -1;

	if (decode(j, disks, device, 0, &s))
		return state_of(j, s.generation);
	for (unsigned mirror = 1; mirror < SUPER_MIRRORS; mirror++)
		if (decode(j, disks, device, mirror, &s) && state_of(j, s.generation) > newest)
			newest = state_of(j, s.generation);
	return newest;
}

/* Each copy on each member is of this commit, and no other device has any. */
static bool check_supers(const struct devices_check *j, const struct disks *disks, const struct committed *c, char *why)
{
	for (unsigned i = 0; i < disks->n; i++) {
		for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
			const bool room = super_offset(mirror) + SUPER_SIZE <= sparse_io(disks->at[i])->size;
			const bool wanted = room && c->members >> i & 1;
			struct super s;
			const bool has = decode(j, disks, i, mirror, &s);

			if (has != wanted || (has && s.generation != c->generation)) {
				snprintf(why, WHY_SIZE, "superblock %u of device %u is not that of the commit",
					 mirror, i + 1);
				return false;
			}
		}
	}
	return true;
}

bool devices_check_add(struct devices_check *j, const struct disks *disks, unsigned members, char why[WHY_SIZE])
{
	struct committed *c = &j->states[j->n];

	if (!read_all(disks, members, 0, c, why))
		return false;
	if (!check_supers(j, disks, c, why))
		return false;
	j->n++;
	return true;
}

/* The devices of @mask must be committed state @i. */
static bool is_state(const struct devices_check *j, const struct disks *state, unsigned mask, int i, char *why)
{
	struct committed found;
	char what[WHY_SIZE];
	bool good = read_all(state, mask, AUDIT_SUPERS, &found, what);

	if (good && found.digest != j->states[i].digest) {
		snprintf(what, sizeof(what), "not the committed state of generation %llu",
			 (unsigned long long)found.generation);
		good = false;
	}
	if (!good)
		snprintf(why, WHY_SIZE, "devices 0x%x, state %d: %.500s", mask, i, what);
	return good;
}

int devices_check_state(struct devices_check *j, const struct disks *state, size_t durable, char why[WHY_SIZE])
{
	int claims[DISKS_MAX], newest = -1;
	unsigned mask = 0;

	for (unsigned i = 0; i < state->n; i++) {
		claims[i] = devices_claim(j, state, i);
		newest = claims[i] > newest ? claims[i] : newest;
		mask |= claims[i] >= 0 ? 1u << i : 0;
	}
	if (newest < (int)durable) {
		snprintf(why, WHY_SIZE, "commit %zu has returned, but the newest superblock is of %d", durable, newest);
		return -1;
	}
	if (!is_state(j, state, mask, newest, why))
		return -1;
	for (int i = 0; i < newest; i++) {
		bool whole = true;

		for (unsigned d = 0; d < state->n; d++)
			whole &= !(j->states[i].members >> d & 1) || claims[d] == i;
		if (!whole)
			continue;
		j->alone++;
		if (!is_state(j, state, j->states[i].members, i, why))
			return -1;
	}
	return newest;
}
