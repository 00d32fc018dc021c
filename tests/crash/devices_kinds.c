// SPDX-License-Identifier: LGPL-2.1-or-later
#include "devices_kinds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/reserve/devices.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "lib/space/space_device.h"

#define MIB (1ull << 20)
#define TOP 5u
#define TOP_DIR 256u

int work_start(struct work *w)
{
	return btrkit_txn_start(w->fs, &w->txn, &w->err);
}

static int commit(struct work *w)
{
	int ret;

	ret = btrkit_txn_commit(w->txn, NULL, &w->err);
	w->txn = NULL;
	if (!ret && w->log)
		log_mark(w->log);
	return ret ? ret : work_start(w);
}

static int put(struct work *w, const char *name)
{
	static uint8_t bytes[200000];
	uint64_t inode;
	int ret;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4096 + (size_t)name[0]);
	ret = btrkit_txn_create(w->txn, TOP, TOP_DIR, name, strlen(name), NULL, &inode, &w->err);
	return ret ? ret : btrkit_txn_write(w->txn, TOP, inode, 0, bytes, sizeof(bytes), NULL, &w->err);
}

static int join(struct work *w, unsigned device)
{
	uint8_t uuid[16];
	uint64_t devid;
	int ret;

	memset(uuid, 0x30 + (int)device, sizeof(uuid));
	if (w->random_uuids && getentropy(uuid, sizeof(uuid)))
		exit(99);
	ret = txn_add_device(w->txn, w->io[device], uuid, &devid, &w->err);
	if (!ret)
		w->owned |= 1u << device;
	return ret;
}

/* Makes groups for data and metadata, so that both devices are used. */
static int spread(struct work *w, uint64_t profile)
{
	int ret = txn_add_chunk(w->txn, BG_DATA, profile, NULL, &w->err);

	return ret ? ret : txn_add_chunk(w->txn, BG_METADATA, profile, NULL, &w->err);
}

static int joins(struct work *w)
{
	int ret = join(w, 1);

	if (!ret)
		ret = put(w, "one");
	return ret ? ret : commit(w);
}

static int joins_and_is_used(struct work *w)
{
	int ret = join(w, 1);

	if (!ret)
		ret = spread(w, BG_RAID1);
	if (!ret)
		ret = put(w, "one");
	if (!ret)
		ret = commit(w);
	if (!ret)
		ret = put(w, "two");
	return ret ? ret : commit(w);
}

static int a_third_joins(struct work *w)
{
	int ret = join(w, 2);

	if (!ret)
		ret = spread(w, BG_RAID1C3);
	if (!ret)
		ret = put(w, "one");
	return ret ? ret : commit(w);
}

static int leaves(struct work *w)
{
	int ret = txn_remove_device(w->txn, 2, &w->err);

	if (!ret)
		ret = put(w, "two");
	if (!ret)
		ret = commit(w);
	if (!ret)
		ret = put(w, "three");
	return ret ? ret : commit(w);
}

static int joins_with_chunk(struct work *w)
{
	int ret = join(w, 1);

	if (!ret)
		ret = txn_add_chunk(w->txn, BG_DATA, BG_RAID1, NULL, &w->err);
	return ret ? ret : commit(w);
}

/* The device is emptied by the transaction in which it leaves. */
static int leaves_with_chunk(struct work *w)
{
	struct space_group *g = space_group_at(w->txn->space, space_num_groups(w->txn->space) - 1);
	int ret = chunk_remove(w->txn->space, g, &w->txn->super, &w->err);

	return ret ? ret : leaves(w);
}

static int one_for_another(struct work *w)
{
	int ret = txn_remove_device(w->txn, 2, &w->err);

	if (!ret)
		ret = join(w, 2);
	if (!ret)
		ret = spread(w, BG_RAID1);
	if (!ret)
		ret = put(w, "two");
	if (!ret)
		ret = commit(w);
	if (!ret)
		ret = put(w, "three");
	return ret ? ret : commit(w);
}

static int grows_and_shrinks(struct work *w)
{
	int ret = txn_resize_device(w->txn, 1, 280 * MIB, &w->err);

	if (!ret)
		ret = commit(w);
	if (!ret)
		ret = txn_resize_device(w->txn, 1, 300 * MIB, &w->err);
	return ret ? ret : commit(w);
}

const struct kind kinds[] = {
	{ "joins", 1, 1, BTRKIT_PROFILE_SINGLE, NULL, joins, { 3 } },
	{ "joins and is used", 1, 1, BTRKIT_PROFILE_DUP, NULL, joins_and_is_used, { 3, 3 } },
	{ "a third joins", 2, 3, BTRKIT_PROFILE_RAID1, NULL, a_third_joins, { 7 } },
	{ "leaves", 1, 3, BTRKIT_PROFILE_SINGLE, joins, leaves, { 1, 1 } },
	{ "leaves with its chunk", 1, 3, BTRKIT_PROFILE_DUP, joins_with_chunk, leaves_with_chunk, { 1, 1 } },
	{ "one for another", 1, 3, BTRKIT_PROFILE_SINGLE, joins, one_for_another, { 5, 5 } },
	{ "grows and shrinks", 1, 1, BTRKIT_PROFILE_SINGLE, NULL, grows_and_shrinks, { 1, 1 } },
};
const size_t num_kinds = sizeof(kinds) / sizeof(kinds[0]);
