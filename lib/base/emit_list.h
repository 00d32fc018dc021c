/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EMIT_LIST_H
#define BTRKIT_BASE_EMIT_LIST_H

/* Common beginning and end of printed lists. */

#include <btrkit/error.h>

#include "lib/base/emit.h"

/* @return 0; -EINVAL: unknown format; -ENOMEM */
int list_begin(struct emit *e, enum btrkit_format format, const char *command, btrkit_write_fn write, void *ctx,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finishes the list and free @e. If the list failed with @ret, output that has not been written yet is discarded,
 * because a truncated list would look complete.
 * @return @ret, or an error of the write function
 */
int list_end(struct emit *e, int ret) BTRKIT_MUST_CHECK;

#endif
