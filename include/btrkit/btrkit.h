/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BTRKIT_H
#define BTRKIT_BTRKIT_H

/**
 * @file
 * libbtrkit reads the btrfs on-disk format without mounting it.
 *
 * A device is a struct btrkit_io (io.h). One or more of them make a filesystem, struct btrkit_fs (filesystem.h), which
 * the reports take: directories and inodes (listing.h), extents with their sharedness (fiemap.h), who owns which space
 * (usage.h) and where it lies (usage_paths.h), the files that have an extent (reference.h), superblocks and trees as
 * text or JSON (dump.h), subvolumes, the sizes of trees and what differs between them (inspect.h), free space and the
 * caches of it (space.h). Files are read (file.h), or brought to a directory
 * or into an archive (extract.h).
 *
 * The library prints nothing, never exits, has no global state and uses no ioctl of a filesystem. Every byte that
 * comes from a device is checked before it is used. Handles for reading may be used by many threads at once.
 */

#include <btrkit/check.h>
#include <btrkit/device.h>
#include <btrkit/dump.h>
#include <btrkit/error.h>
#include <btrkit/extract.h>
#include <btrkit/feature.h>
#include <btrkit/file.h>
#include <btrkit/fiemap.h>
#include <btrkit/filesystem.h>
#include <btrkit/inode.h>
#include <btrkit/inspect.h>
#include <btrkit/io.h>
#include <btrkit/listing.h>
#include <btrkit/mkfs.h>
#include <btrkit/modify.h>
#include <btrkit/reference.h>
#include <btrkit/space.h>
#include <btrkit/subvolume.h>
#include <btrkit/subvolume_modify.h>
#include <btrkit/transaction.h>
#include <btrkit/types.h>
#include <btrkit/undo.h>
#include <btrkit/usage.h>
#include <btrkit/usage_paths.h>
#include <btrkit/version.h>

#endif
