// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/check/audit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"

void *audit_list_add(struct audit_list *list, size_t size)
{
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		void *more = reallocarray(list->at, room, size);

		if (!more)
			return NULL;
		list->at = more;
		list->room = room;
	}
	return (uint8_t *)list->at + list->n++ * size;
}

static int judge_used(const struct audit *a, struct btrkit_error *err)
{
	uint64_t used = 0;

	for (size_t i = 0; i < a->groups.n; i++)
		used += a->groups.at[i].used;
	if (used == a->fs->super.bytes_used)
		return 0;
	return err_corrupt(err, "bytes_used", "superblock says %" PRIu64 " bytes are used, the block groups %" PRIu64,
			   a->fs->super.bytes_used, used);
}

static void release(struct audit *a)
{
	struct audit_block *block, *next;

	HASH_ITER(hh, a->blocks, block, next)
	{
		HASH_DEL(a->blocks, block);
		free(block);
	}
	block_groups_release(&a->groups);
	free(a->extents.at);
	free(a->found.at);
	free(a->made.at);
	free(a->roots.at);
	free(a->devices.at);
	free(a->stripes.at);
	free(a->dev_extents.at);
}

int audit(struct btrkit_fs *fs, struct audit_counts *ret, struct btrkit_error *err)
{
	static int (*const parts[])(struct audit * a, struct btrkit_error * err) = {
		audit_load_extents, audit_walk_trees, audit_compare_refs, audit_compare_volume, audit_compare_space,
	};
	struct audit a = { .fs = fs };
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(parts) / sizeof(parts[0]); i++)
		r = parts[i](&a, err);
	if (!r)
		r = judge_used(&a, err);
	if (!r && ret)
		*ret = a.counts;
	release(&a);
	return r;
}
