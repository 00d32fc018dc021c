/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ENTRIES_H
#define BTRKIT_MODIFY_ENTRIES_H

/* Items with several entries, one for each name with the same hash. */

#include "lib/format/items/files/dir.h"
#include "lib/modify/op.h"

/* The maximum size of an item. */
uint32_t entry_room(const struct op *op);

/*
 * Finds the entry of a name in a DIR_ITEM or XATTR_ITEM. @offset: its position in the item. @return 0; 1: not found;
 * -EUCLEAN
 */
int entry_find(const struct item *item, const char *name, size_t len, struct dir_entry *ret, uint32_t *offset,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Appends bytes to an existing item. They must fit. */
int entry_append(struct op *op, const struct item *item, const void *data, uint32_t size,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes @size bytes at @offset from an item, and appends others to the rest. They must fit. */
int entry_swap(struct op *op, const struct item *item, uint32_t offset, uint32_t size, const void *data,
	       uint32_t data_size, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes @size bytes at @offset from an item, or deletes the item if these are all it has. */
int entry_cut(struct op *op, const struct item *item, uint32_t offset, uint32_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
