/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_FORMAT_H
#define BTRKIT_PRINT_FORMAT_H

#include <btrkit/types.h>

/*
 * A format that only some printers have, beside those of the library: tab-separated values, one record per line,
 * without a header.
 */
#define PRINT_FORMAT_TSV ((enum btrkit_format)2)

#endif
