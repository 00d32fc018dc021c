/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_ROOT_H
#define BTRKIT_FORMAT_ITEMS_ROOT_H

#include "lib/format/item.h"
#include "lib/format/items/inode.h"

#define ROOT_SUBVOL_RDONLY (1ull << 0)
#define ROOT_SUBVOL_DEAD (1ull << 48)

struct root_item {
	struct inode_item inode;
	uint64_t generation;
	uint64_t root_dirid;
	uint64_t bytenr;
	uint64_t byte_limit, bytes_used;
	uint64_t last_snapshot;
	uint64_t flags;
	uint32_t refs;
	struct btrkit_key drop_progress;
	uint8_t drop_level;
	uint8_t level;
	/* The rest is zero in items of before Linux 3.6 (the short form, or generation_v2 unequal generation). */
	uint64_t generation_v2;
	uint8_t uuid[16], parent_uuid[16], received_uuid[16];
	uint64_t ctransid, otransid, stransid, rtransid;
	struct disk_time ctime, otime, stime, rtime;
};

int root_item_decode(const struct item_ctx *ctx, const struct item *item, struct root_item *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* ROOT_REF and ROOT_BACKREF. */
struct root_ref {
	uint64_t dirid;
	uint64_t sequence;
	const uint8_t *name;
	uint16_t name_len;
};

int root_ref_decode(const struct item *item, struct root_ref *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_root;
extern const struct item_type item_type_root_ref;
extern const struct item_type item_type_root_backref;

#endif
