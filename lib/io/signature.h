/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SIGNATURE_H
#define BTRKIT_IO_SIGNATURE_H

/* What lies on a device, as libblkid knows it and as it cannot: see also <btrkit/io.h>. */

#include <btrkit/error.h>
#include <btrkit/io.h>

/*
 * Calls @fn with the path of each block device that has a btrfs filesystem with that fsid, until it returns something
 * else than 0. @probe: all devices are looked at now, instead of libblkid's cache, of which nothing is believed before
 * one has looked. Without libblkid there are none.
 * @return what @fn returned last, or 0; -ENOMEM
 */
int io_cached_devices(const uint8_t fsid[16], bool probe, int (*fn)(void *ctx, const char *path), void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the primary superblock is the mark of an undo that has not come to its end: see super_undo_mark(). */
bool io_undo_is_unfinished(struct btrkit_io *io);

#endif
