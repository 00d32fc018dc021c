/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SUBVOLUME_H
#define BTRKIT_SUBVOLUME_H

/**
 * @file
 * Subvolumes.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/**
 * The objectid of a subvolume, given its number, or its path from the top level (a leading slash is allowed; `/` is
 * the top level, 5). A number that names no subvolume is tried as a path.
 *
 * @return 0; -ENOENT; -EINVAL: the path is no subvolume; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_find(struct btrkit_fs *fs, const char *name, uint64_t *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
