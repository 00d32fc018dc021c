// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/commit/undo_witness.h"

#include "lib/io/undo.h"
#include "lib/volume/volume.h"

#define WITNESS_EVERY (1u << 20) /* bytes of freed data */
#define WITNESS_BYTES 4096u

/* Saves all copies of a range for undo. */
static int keep_copies(struct btrkit_txn *txn, uint64_t logical, uint64_t len, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned mirror = 0; !ret; mirror++) {
		for (uint64_t done = 0; !ret && done < len;) {
			struct copy copy;

			ret = volume_map(txn->fs->volume, logical + done, len - done, mirror, &copy, err);
			if (!ret && copy.io)
				ret = undo_keep(copy.io, copy.physical, copy.length, err);
			if (!ret)
				done += copy.length;
		}
	}
	return ret < 0 ? ret : 0;
}

int undo_witness_keep(struct btrkit_txn *txn, const struct space_group *g, const struct space_change *c,
		      struct btrkit_error *err)
{
	const uint64_t end = c->range.start + c->range.length;
	int ret = 0;

	if (!(g->item.flags & BG_DATA))
		return keep_copies(txn, c->range.start, c->range.length, err);
	for (uint64_t at = c->range.start; !ret && at < end; at += WITNESS_EVERY) {
		const uint64_t piece = end - at < WITNESS_EVERY ? end - at : WITNESS_EVERY;
		const uint64_t mid = at + piece / 2 / WITNESS_BYTES * WITNESS_BYTES;

		ret = keep_copies(txn, mid, end - mid < WITNESS_BYTES ? end - mid : WITNESS_BYTES, err);
	}
	return ret;
}

bool undo_witness_wanted(const struct btrkit_txn *txn)
{
	const struct volume *v = txn->fs->volume;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		struct btrkit_io *io = volume_device(v, i).io;

		if (io)
			return undo_below(io) != io;
	}
	return false;
}
