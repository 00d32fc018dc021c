/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_SUPER_RENDER_H
#define BTRKIT_FORMAT_SUPER_RENDER_H

/* A superblock as text, or as members of an object, whatever its bytes are. */

#include <btrkit/error.h>

#include "lib/base/emit.h"
#include "lib/format/disk.h"

/*
 * @full: the system chunk array and the backup roots too. @flags: RENDER_HIDE_NAMES
 * @return 0; -EUCLEAN: the system chunk array does not parse; everything else was rendered
 */
int super_render(struct emit *e, const struct disk_super *d, bool full, unsigned flags,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
