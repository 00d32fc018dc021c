/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_PLAIN_H
#define BTRKIT_FORMAT_ITEMS_PLAIN_H

#include "lib/format/item.h"

/* Items whose information is all in the key. Their data, if any, is not validated. */

extern const struct item_type item_type_verity_merkle;	/* fs-verity's Merkle tree, beginning at offset key.offset */
extern const struct item_type item_type_orphan;		/* key.offset: an inode or a root to be deleted */
extern const struct item_type item_type_old_csum;	/* obsolete type, of which only the name is known */
extern const struct item_type item_type_extent_ref_v0;	/* written by Linux before 2.6.31 */
extern const struct item_type item_type_identity_remap;	/* a range of a remapped chunk that was not moved */
extern const struct item_type item_type_qgroup_relation;	/* key in both directions: member, parent */

#endif
