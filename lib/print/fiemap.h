/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_FIEMAP_H
#define BTRKIT_PRINT_FIEMAP_H

/* Prints listings of extents. */

#include <btrkit/fiemap.h>

#include "lib/print/format.h"

/** Formats a listing. */
struct fiemap_printer;

/** Flags of fiemap_printer_create(). */
enum fiemap_printer_flags {
	PRINT_FIEMAP_OWNERS = 1 << 0	/**< also print all references to each extent */
};

/**
 * Creates a printer for listings of @p fs.
 *
 * @param flags	enum fiemap_printer_flags
 * @param ret	receives the printer; free it with fiemap_printer_finish() before @p fs is closed
 * @return 0; -EINVAL: unknown format or flag; -ENOMEM
 */
int fiemap_printer_create(struct btrkit_fs *fs, enum btrkit_format format, unsigned flags, btrkit_write_fn write,
				 void *ctx, struct fiemap_printer **ret,
				 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Returns the sink that formats a listing.
 *
 * @return a sink for btrkit_fiemap_path() or btrkit_fiemap_all(), owned by the printer
 */
const struct btrkit_fiemap_sink *fiemap_printer_sink(struct fiemap_printer *printer);

/**
 * Ends the current file without what would follow its last row in a text, because its listing failed.
 */
void fiemap_printer_break_off(struct fiemap_printer *printer);

/**
 * Writes the remaining output and frees the printer. NULL is allowed.
 *
 * @param complete	false after a failure: omits what would end the last file of a text, and the header of an empty
 *		JSON listing
 * @return 0, or what the write callback returned
 */
int fiemap_printer_finish(struct fiemap_printer *printer, bool complete);

#endif
