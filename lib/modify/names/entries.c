// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/names/entries.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

uint32_t entry_room(const struct op *op)
{
	return leaf_room(op->txn->fs->geometry.nodesize) - (uint32_t)sizeof(struct disk_item);
}

int entry_find(const struct item *item, const char *name, size_t len, struct dir_entry *ret, uint32_t *offset,
	       struct btrkit_error *err)
{
	struct dir_iter it = dir_first(item);
	int r;

	for (;;) {
		*offset = (uint32_t)(it.pos - item->data);
		r = dir_next(&it, ret, err);
		if (r || (ret->name_len == len && !memcmp(ret->name, name, len)))
			return r;
	}
}

int entry_swap(struct op *op, const struct item *item, uint32_t offset, uint32_t size, const void *data,
	       uint32_t data_size, struct btrkit_error *err)
{
	const uint32_t rest = item->size - size;
	uint8_t *all = malloc(rest + data_size);
	int ret;

	if (!all)
		return err_nomem(err);
	memcpy(all, item->data, offset);
	memcpy(all + offset, item->data + offset + size, rest - offset);
	memcpy(all + rest, data, data_size);
	ret = delayed_replace(op->t, &item->key, all, rest + data_size, err);
	free(all);
	return ret;
}

int entry_append(struct op *op, const struct item *item, const void *data, uint32_t size, struct btrkit_error *err)
{
	return entry_swap(op, item, item->size, 0, data, size, err);
}

int entry_cut(struct op *op, const struct item *item, uint32_t offset, uint32_t size, struct btrkit_error *err)
{
	if (size == item->size)
		return delayed_delete(op->t, &item->key, err);
	return entry_swap(op, item, offset, size, "", 0, err);
}
