/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_USAGE_PAGE_H
#define BTRKIT_PRINT_USAGE_PAGE_H

/* The page built from html/, embedded by the build. The data is written between its two halves. */

#include <btrkit/usage_paths.h>

#include "lib/base/emit.h"

extern const uint8_t usage_html_head[], usage_html_tail[];
extern const size_t usage_html_head_size, usage_html_tail_size;

/* In usage_html_paths.c: */
/* @return 0; -ENOMEM; write failures are stored in @e */
int usage_html_put_paths(struct emit *e, const struct btrkit_usage_paths *paths,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
