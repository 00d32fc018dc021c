/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_USAGE_HTML_H
#define BTRKIT_REPORT_USAGE_HTML_H

/* The page of html/, as the build embeds it: the data go between its halves. */

#include <stddef.h>
#include <stdint.h>

extern const uint8_t usage_html_head[], usage_html_tail[];
extern const size_t usage_html_head_size, usage_html_tail_size;

#endif
