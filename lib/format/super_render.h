/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_SUPER_RENDER_H
#define BTRKIT_FORMAT_SUPER_RENDER_H

/* Renders a superblock, valid or not, as text or as members of a JSON object. */

#include <btrkit/error.h>

#include "lib/base/emit.h"
#include "lib/format/disk.h"

/*
 * @full: also render the system chunk array and the backup roots. @flags: RENDER_HIDE_NAMES
 * @return 0; -EUCLEAN: the system chunk array cannot be parsed; everything else was rendered
 */
int super_render(struct emit *e, const struct disk_super *d, bool full, unsigned flags,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
