/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ENTRIES_H
#define BTRKIT_MODIFY_ENTRIES_H

/* Items that have several entries one behind the other: those of names with the same hash. */

#include "lib/format/items/dir.h"
#include "lib/modify/op.h"

/* Bytes that an item may have. */
uint32_t entry_room(const struct op *op);

/* The entry of a name in a DIR_ITEM or XATTR_ITEM; @offset: where it begins. @return 0; 1 there is none; -EUCLEAN */
int entry_find(const struct item *item, const char *name, size_t len, struct dir_entry *ret, uint32_t *offset,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Puts bytes behind those of an item that is there. There is room. */
int entry_append(struct op *op, const struct item *item, const void *data, uint32_t size,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes bytes out of an item, and puts others behind the rest. There is room. */
int entry_swap(struct op *op, const struct item *item, uint32_t offset, uint32_t size, const void *data,
	       uint32_t data_size, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes bytes out of an item; all of them: the item goes. */
int entry_cut(struct op *op, const struct item *item, uint32_t offset, uint32_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
