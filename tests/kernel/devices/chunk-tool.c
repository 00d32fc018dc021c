// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates and removes chunks, adds, removes and resizes devices, and repairs single copies, for comparisons with Linux.
 * Usage: chunk-tool DEVICE[,...] STEP...
 *
 * Each step is a transaction of its own, or up to a `commit` in a single one:
 *
 *	TYPE[:PROFILE]		create a chunk; TYPE is data, metadata or system, PROFILE single, dup, raid1 etc.
 *	NUMBER			remove the chunk at that address
 *	add=DEVICE,UUID		add a device; UUID has 32 hexadecimal digits
 *	remove=DEVID		remove a device
 *	resize=DEVID:SIZE	change its size
 *	ro=NUMBER		make the group at that address read-only, for the following steps
 *	mirror=AT:LENGTH:FROM:TO	write copy TO of a range with what copy FROM has
 *	strip=AT:N		with RAID5, write strip N of the full stripe with what follows from the others
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/format/raid.h"
#include "lib/reserve/devices.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume_write.h"

#define DEVICES_MAX 16

static int fail(const char *what, const struct btrkit_error *err)
{
	char line[512];

	fprintf(stderr, "chunk-tool: %s: %s\n", what, btrkit_error_format(err, line, sizeof(line)));
	return 1;
}

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !strncasecmp(at, word, len);
}

/* TYPE, up to a colon or the end. @return 0: there is no such type */
static uint64_t type_of(const char *name)
{
	const size_t len = strcspn(name, ":");

	return is_word(name, len, "data") ? BG_DATA : is_word(name, len, "metadata") ? BG_METADATA :
	       is_word(name, len, "system") ? BG_SYSTEM :
					      0;
}

/* @return the profile; BG_PROFILE_MASK: there is none of that name */
static uint64_t profile_of(const char *name)
{
	for (uint64_t bit = 1; bit <= BG_PROFILE_MASK; bit <<= 1)
		if (bit & BG_PROFILE_MASK && is_word(name, strlen(name), raid_profile_find(bit)->name))
			return bit;
	return strcasecmp(name, "single") ? BG_PROFILE_MASK : 0;
}

/* @paths: separated by commas */
static int open_devices(char *paths, struct btrkit_fs **fs, struct btrkit_error *err)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io[DEVICES_MAX];
	size_t n = 0;
	int ret = 0;

	opts.flags = BTRKIT_OPEN_WRITE;
	for (char *path = strtok(paths, ","); !ret && path && n < DEVICES_MAX; path = strtok(NULL, ","))
		ret = btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io[n++], err);
	return ret ? ret : btrkit_fs_open(io, n, &opts, fs, err);
}

static void print(const struct chunk_plan *plan)
{
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64, plan->logical, plan->length, plan->type);
	for (unsigned i = 0; i < plan->num_stripes; i++)
		printf(" %" PRIu64 ":%" PRIu64, plan->stripes[i].devid, plan->stripes[i].physical);
	printf("\n");
}

static int create(struct btrkit_txn *txn, const char *what, struct btrkit_error *err)
{
	const char *profile = strchr(what, ':');
	const uint64_t type = type_of(what);
	struct chunk_plan plan;
	struct space_group *g;
	int ret;

	ret = profile ? chunk_plan_profile(txn->space, type, profile_of(profile + 1), &plan, err) :
			chunk_plan(txn->space, type, &plan, err);
	if (!ret)
		ret = chunk_create(txn->space, &plan, &txn->super, &g, err);
	if (!ret)
		print(&plan);
	return ret;
}

/* @what: DEVICE,UUID */
static int add(struct btrkit_txn *txn, const char *what, struct btrkit_error *err)
{
	const char *comma = strchr(what, ',');
	struct btrkit_io *io;
	char path[4096];
	uint8_t uuid[16];
	uint64_t devid;
	int ret;

	if (!comma || strlen(comma) != 33)
		return -1;
	snprintf(path, sizeof(path), "%.*s", (int)(comma - what), what);
	for (unsigned i = 0; i < sizeof(uuid); i++)
		if (sscanf(comma + 1 + 2 * i, "%2hhx", &uuid[i]) != 1)
			return -1;
	ret = btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, err);
	if (ret)
		return ret;
	ret = txn_add_device(txn, io, uuid, &devid, err);
	if (ret)
		btrkit_io_close(io);
	else
		printf("device %" PRIu64 "\n", devid);
	return ret;
}

static int resize(struct btrkit_txn *txn, const char *what, struct btrkit_error *err)
{
	char *end;
	const uint64_t devid = strtoull(what, &end, 10);

	return *end == ':' ? txn_resize_device(txn, devid, strtoull(end + 1, NULL, 10), err) : -1;
}

/* @what: AT:LENGTH:FROM:TO */
static int repair_mirror(const struct volume *v, const char *what, struct btrkit_error *err)
{
	static uint8_t buf[1 << 20];
	uint64_t at, len;
	unsigned from, to;
	struct copy copy;
	int ret = 0;

	if (sscanf(what, "%" SCNu64 ":%" SCNu64 ":%u:%u", &at, &len, &from, &to) != 4 || len > sizeof(buf))
		return -1;
	for (uint64_t done = 0; !ret && done < len; done += copy.length) {
		ret = volume_map(v, at + done, len - done, from, &copy, err);
		if (!ret)
			ret = btrkit_io_read(copy.io, copy.physical, buf + done, copy.length, err);
	}
	return ret ? ret : volume_write_mirror(v, at, buf, len, to, err);
}

/* @what: AT:N. The sum of all strips of RAID5 is zero. */
static int repair_strip(const struct volume *v, const char *what, struct btrkit_error *err)
{
	static uint8_t sum[CHUNK_STRIPE_LEN], buf[CHUNK_STRIPE_LEN];
	const struct volume_chunk *c;
	struct raid_shape shape;
	uint64_t at, number;
	unsigned strip;
	int ret = 0;

	if (sscanf(what, "%" SCNu64 ":%u", &at, &strip) != 2)
		return -1;
	c = volume_chunk(v, volume_chunk_from(v, at));
	shape = (struct raid_shape){ c->type, c->num_stripes };
	number = (at - c->logical) / CHUNK_STRIPE_LEN / raid_data_stripes(&shape);
	memset(sum, 0, sizeof(sum));
	for (unsigned i = 0; !ret && i < c->num_stripes; i++) {
		const struct volume_stripe *s = &c->stripes[raid_strip_stripe(&shape, number, i)];

		if (i == strip)
			continue;
		ret = btrkit_io_read(volume_device(v, s->device).io, s->physical + number * CHUNK_STRIPE_LEN, buf,
				     sizeof(buf), err);
		for (size_t k = 0; k < sizeof(sum); k++)
			sum[k] ^= buf[k];
	}
	return ret ? ret : volume_write_strip(v, at, strip, 0, sum, sizeof(sum), err);
}

static int step(struct btrkit_txn *txn, const char *what, struct btrkit_error *err)
{
	struct space_group *g;

	if (type_of(what))
		return create(txn, what, err);
	if (!strncmp(what, "add=", 4))
		return add(txn, what + 4, err);
	if (!strncmp(what, "remove=", 7))
		return txn_remove_device(txn, strtoull(what + 7, NULL, 10), err);
	if (!strncmp(what, "resize=", 7))
		return resize(txn, what + 7, err);
	if (!strncmp(what, "mirror=", 7))
		return repair_mirror(txn->fs->volume, what + 7, err);
	if (!strncmp(what, "strip=", 6))
		return repair_strip(txn->fs->volume, what + 6, err);
	g = space_group_of(txn->space, strtoull(!strncmp(what, "ro=", 3) ? what + 3 : what, NULL, 10));
	if (!g)
		return -1;
	return *what == 'r' ? txn_inc_ro(txn, g, err) : chunk_remove(txn->space, g, &txn->super, err);
}

static int run(char **args, int n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = NULL;
	struct btrkit_fs *fs;
	bool together = false;

	if (open_devices(args[0], &fs, &err))
		return fail(args[0], &err);
	for (int i = 1; i < n; i++)
		together |= !strcmp(args[i], "commit");
	for (int i = 1; i < n; i++) {
		const bool commit = !strcmp(args[i], "commit");

		if (!txn && btrkit_txn_start(fs, &txn, &err))
			return fail("start", &err);
		if (!commit && step(txn, args[i], &err))
			return fail(args[i], &err);
		if (together && !commit)
			continue;
		if (btrkit_txn_commit(txn, NULL, &err))
			return fail("commit", &err);
		txn = NULL;
	}
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3)
		return run(argv + 1, argc - 1);
	fprintf(stderr, "chunk-tool: bad usage\n");
	return 2;
}
