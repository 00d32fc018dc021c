// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/entries.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

uint32_t entry_room(const struct op *op)
{
	return leaf_room(op->txn->fs->super.nodesize) - (uint32_t)sizeof(struct disk_item);
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

int entry_append(struct op *op, const struct item *item, const void *data, uint32_t size, struct btrkit_error *err)
{
	uint8_t *all = malloc(item->size + size);
	int ret;

	if (!all)
		return err_nomem(err);
	memcpy(all, item->data, item->size);
	memcpy(all + item->size, data, size);
	ret = delayed_replace(op->t, &item->key, all, item->size + size, err);
	free(all);
	return ret;
}

int entry_cut(struct op *op, const struct item *item, uint32_t offset, uint32_t size, struct btrkit_error *err)
{
	uint8_t *rest;
	int ret;

	if (size == item->size)
		return delayed_delete(op->t, &item->key, err);
	rest = malloc(item->size - size);
	if (!rest)
		return err_nomem(err);
	memcpy(rest, item->data, offset);
	memcpy(rest + offset, item->data + offset + size, item->size - offset - size);
	ret = delayed_replace(op->t, &item->key, rest, item->size - size, err);
	free(rest);
	return ret;
}
