// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices join, leave and change their size in a transaction. */
#include "lib/reserve/devices.h"

#include "lib/reserve/reserve.h"
#include "lib/space/space_device.h"

int txn_add_device(struct btrkit_txn *txn, struct btrkit_io *io, const uint8_t uuid[16], uint64_t *devid,
		   struct btrkit_error *err)
{
	int ret = txn_reserve_chunk_tree(txn, TXN_CHUNKS, err);

	return ret ? ret : space_device_add(txn->space, io, uuid, &txn->super, devid, err);
}

int txn_remove_device(struct btrkit_txn *txn, uint64_t devid, struct btrkit_error *err)
{
	int ret = txn_reserve_chunk_tree(txn, TXN_CHUNKS, err);

	return ret ? ret : space_device_remove(txn->space, devid, &txn->super, err);
}

int txn_resize_device(struct btrkit_txn *txn, uint64_t devid, uint64_t total, struct btrkit_error *err)
{
	int ret = txn_reserve_chunk_tree(txn, TXN_CHUNKS, err);

	return ret ? ret : space_device_resize(txn->space, devid, total, &txn->super, err);
}
