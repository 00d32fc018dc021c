/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_VOLUME_WRITE_H
#define BTRKIT_VOLUME_VOLUME_WRITE_H

/*
 * Writes a single copy: one mirror of a range, or one strip of a full stripe with parity. For repairs, which put the
 * right bytes over the wrong ones of one device and leave all others alone.
 *
 * Whoever calls this is responsible for the bytes: nothing is read, verified or computed. After strip 1 of a full
 * stripe was written with new contents, for example, its P and Q no longer match. Nothing is flushed. Both functions
 * may be called by many threads at a time, for different ranges, but not while devices join or leave.
 *
 * Both return 0; -EIO: the device is missing; -EINVAL: a superblock is at that place, which no extent can be; -EUCLEAN:
 * the range is in no chunk; or the error of the device. An error has the device and the place on it. A range that
 * extends over several strips may have been written in part.
 */

#include "lib/volume/volume.h"

/*
 * Writes copy @mirror (from 0) of a range in one chunk, wherever volume_map() says that it is. With parity, the only
 * one is the data itself, and the parity is not updated. Also returns 1: there is no such copy.
 */
int volume_write_mirror(const struct volume *v, uint64_t logical, const void *buf, size_t len, unsigned mirror,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * With parity: writes @len bytes, from @offset on, of strip @strip in the full stripe that contains @logical. The data
 * strips come first, in the order of their addresses; then P, and with RAID6 Q. In a RAID6 chunk on five devices, for
 * example, 0 to 2 are data, 3 is P and 4 is Q, whatever devices these are on in this full stripe. @offset + @len is at
 * most CHUNK_STRIPE_LEN. Also returns 1: there is no such strip, or the chunk has no parity.
 */
int volume_write_strip(const struct volume *v, uint64_t logical, unsigned strip, uint32_t offset, const void *buf,
		       size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
