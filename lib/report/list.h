/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_LIST_H
#define BTRKIT_REPORT_LIST_H

/* What lists that are printed begin and end with. */

#include <btrkit/device.h>

#include "lib/base/emit.h"

/* @return 0; -EINVAL: no such format; -ENOMEM */
int list_begin(struct emit *e, enum btrkit_format format, const char *command, btrkit_write_fn write, void *ctx,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Frees @e. Of a list that failed with @ret nothing is printed that was not handed out yet, so that a short one does
 * not look like one that is whole. @return @ret, or what the write function returned
 */
int list_end(struct emit *e, int ret) BTRKIT_MUST_CHECK;

#endif
