/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_PLAIN_H
#define BTRKIT_FORMAT_ITEMS_PLAIN_H

#include "lib/format/item.h"

/* Items of which the key says all, and whose bytes, if any, nobody judges. */

extern const struct item_type item_type_verity_merkle;	/* bytes of fs-verity's own, from offset key.offset of them */
extern const struct item_type item_type_orphan;		/* key.offset: an inode or a root to be deleted */
extern const struct item_type item_type_old_csum;	/* a type of which nothing is left but the name */
extern const struct item_type item_type_extent_ref_v0;	/* written by Linux before 2.6.31 */
extern const struct item_type item_type_identity_remap;	/* a range of a remapped chunk that stayed in its place */
extern const struct item_type item_type_qgroup_relation;	/* both ways round: member and group */

#endif
