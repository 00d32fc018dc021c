// SPDX-License-Identifier: LGPL-2.1-or-later
/* File data of a transaction. Nothing refers to it before the commit, so most of it is written immediately. */
#include "lib/commit/data.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/supers.h"
#include "lib/volume/full_stripe.h"

/* Keeps data for the commit: more data may be placed in the same row, and the parity covers all of it. */
static int keep(struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len, struct btrkit_error *err)
{
	struct txn_data *d = malloc(sizeof(*d) + len);

	if (!d)
		return err_nomem(err);
	d->logical = logical;
	d->length = len;
	d->next = txn->data;
	memcpy(d->bytes, data, len);
	/* Others may be reading what is there: see txn_read_unwritten(). */
	__atomic_store_n(&txn->data, d, __ATOMIC_RELEASE);
	txn->data_bytes += sizeof(*d) + len;
	return 0;
}

/* Writes one copy, except for parts on missing devices. @return 0; 1: there is no such copy; <0 */
static int write_copy(struct btrkit_txn *txn, uint64_t logical, const uint8_t *data, size_t len, unsigned mirror,
		      struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &txn->writer->stats;
	struct copy copy;

	for (size_t done = 0; done < len; done += (size_t)copy.length) {
		int ret = volume_map(txn->fs->volume, logical + done, len - done, mirror, &copy, err);

		if (ret)
			return ret;
		if (!copy.io)
			continue;
		ret = btrkit_io_write(copy.io, copy.physical, data + done, (size_t)copy.length, err);
		if (ret) {
			err_at_device(err, copy.devid, copy.physical);
			return ret;
		}
		__atomic_fetch_add(&stats->writes, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&stats->bytes_written, copy.length, __ATOMIC_RELAXED);
	}
	return 0;
}

int txn_write_data(struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len, struct btrkit_error *err)
{
	int ret;

	if (full_stripe_wanted(txn->fs->volume, logical))
		return keep(txn, logical, data, len, err);
	/* Nothing prevents Linux from mounting an image: what was free may be in use now. */
	ret = commit_supers_check(txn->fs, err);
	if (ret)
		return ret;
	for (unsigned mirror = 0;; mirror++) {
		ret = write_copy(txn, logical, data, len, mirror, err);

		if (ret)
			return ret < 0 ? ret : 0;
	}
}

bool txn_read_unwritten(const struct btrkit_fs *fs, uint64_t logical, void *buf, size_t *len)
{
	for (const struct txn_data *d = __atomic_load_n(&fs->writer->txn->data, __ATOMIC_ACQUIRE); d; d = d->next) {
		const uint64_t offset = logical - d->logical;

		if (logical >= d->logical && offset < d->length) {
			if (*len > d->length - offset)
				*len = (size_t)(d->length - offset);
			memcpy(buf, d->bytes + offset, *len);
			return true;
		}
		if (d->logical > logical && d->logical - logical < *len)
			*len = (size_t)(d->logical - logical);
	}
	return false;
}

void txn_data_free(struct btrkit_txn *txn)
{
	for (struct txn_data *d = txn->data, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	txn->data = NULL;
	txn->data_bytes = 0;
}
