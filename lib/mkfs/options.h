/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_OPTIONS_H
#define BTRKIT_MKFS_OPTIONS_H

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

/*
 * Checks the options for @n devices, fills in the defaults and applies the dependencies between features.
 * @return 0; -EINVAL; -EOPNOTSUPP: a feature is not supported (the message names it)
 */
int mkfs_options_check(const struct btrkit_mkfs_options *given, size_t n, struct btrkit_mkfs_options *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
