/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_CHECK_H
#define BTRKIT_PRINT_CHECK_H

/* Prints the findings of a check. */

#include <btrkit/check.h>

/**
 * Checks a filesystem and prints the findings: one line for each finding, one for each code whose further findings were
 * only counted, and a summary. The finding and more callbacks in @p opts are not called.
 *
 * JSON Lines: a header, then objects of kind "finding" and "more", and finally "summary".
 *
 * @param ret	receives statistics; may be NULL
 * @return as btrkit_check(), or what @p write returned; -EINVAL: also an unknown format
 */
int print_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, enum btrkit_format format,
		       btrkit_write_fn write, void *ctx, struct btrkit_check_result *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints all codes, one per line. @return 0, -EINVAL, -ENOMEM or what @p write returned. */
int print_check_codes(enum btrkit_format format, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
