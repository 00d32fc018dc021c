/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SIGNATURE_H
#define BTRKIT_IO_SIGNATURE_H

/* Detects contents of a device: those known to libblkid, and others. See also <btrkit/io.h>. */

#include <btrkit/error.h>
#include <btrkit/io.h>

/*
 * Calls @fn with the path of each block device with a btrfs filesystem of that fsid, until it returns nonzero. @probe:
 * probe all devices now, instead of using libblkid's cache, whose entries the caller has to verify. Without libblkid no
 * devices are found.
 * @return the last result of @fn, or 0; -ENOMEM
 */
int io_cached_devices(const uint8_t fsid[16], bool probe, int (*fn)(void *ctx, const char *path), void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the primary superblock is the mark of an unfinished undo: see super_undo_mark(). */
bool io_undo_is_unfinished(struct btrkit_io *io);

#endif
