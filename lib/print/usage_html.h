/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_USAGE_HTML_H
#define BTRKIT_PRINT_USAGE_HTML_H

/* Prints space usage as a page for a browser. */

#include "lib/print/usage.h"

/**
 * Prints a complete HTML page with a map of exclusive and shared space, the usage of each subvolume, and a selection of
 * subvolumes for which it tells, to the byte, what deleting them would free (see btrkit_usage_freed()). The page needs
 * no network and loads nothing. Equal filesystems give equal pages.
 *
 * @param u	the result for @p fs
 * @param paths	of usage_paths.h: adds a map of the 20,000 directories whose deletion would free the most; NULL: none
 * @param opts	flags and format must be 0; NULL: all defaults
 * @param write	receives the page in pieces; if it fails, the page is incomplete
 * @return 0; -EINVAL: flags or format are set; -ENOMEM; or as usage_printer_owners()
 */
int print_usage_html(struct btrkit_fs *fs, const struct btrkit_usage *u, const struct btrkit_usage_paths *paths,
			    const struct usage_printer_options *opts, btrkit_write_fn write, void *ctx,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
