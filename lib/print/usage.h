/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_USAGE_H
#define BTRKIT_PRINT_USAGE_H

/* Prints space usage. */

#include <btrkit/usage_paths.h>

#include "lib/print/format.h"

/** Flags of struct usage_printer_options. */
enum usage_printer_flags {
	USAGE_PRINTER_BYTES = 1 << 0	/**< sizes in bytes in text too; other formats always have bytes */
};

/** Options of usage_printer_create(). Initialise with USAGE_PRINTER_OPTIONS_INIT. */
struct usage_printer_options {
	unsigned flags;				/**< enum usage_printer_flags; unknown ones are refused */
	enum btrkit_format format;
	/**
	 * Called if the path of a subvolume, or what prevents its deletion, cannot be determined: that is left out.
	 * Not called again for damage that btrkit_usage_load() reported. A value other than 0, a negative errno, stops
	 * the work. NULL: the first such failure stops it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define USAGE_PRINTER_OPTIONS_INIT BTRKIT_ZEROS

/** Formats a result. Only one thread at a time may use it. */
struct usage_printer;

/**
 * Creates a printer.
 *
 * @param u	a result for @p fs; both must outlive the printer
 * @param ret	receives the printer; free it with usage_printer_finish()
 * @return 0; -EINVAL: unknown flags or format; -ENOMEM
 */
int usage_printer_create(struct btrkit_fs *fs, const struct btrkit_usage *u,
				const struct usage_printer_options *opts, btrkit_write_fn write, void *ctx,
				struct usage_printer **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints all owners, and the totals.
 *
 * @return 0; -ENOMEM; what a callback in the options returned; -EUCLEAN, -EIO, -ENXIO without a damage callback; or
 *	   what the write callback returned
 */
int usage_printer_owners(struct usage_printer *printer, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In usage_rows.c: */
/**
 * Prints what deleting exactly these owners would free, and which of them Linux would refuse to delete.
 *
 * @param owners	@p n numbers, ascending and without duplicates
 * @param n	number of elements
 * @return as btrkit_usage_freed(), or as usage_printer_owners()
 */
int usage_printer_freed(struct usage_printer *printer, const uint32_t *owners, size_t n,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints what each pair of owners shares. @return 0; -ENOMEM; or what the write callback returned. */
int usage_printer_matrix(struct usage_printer *printer, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints data by storage type. @return 0, or what the write callback returned. */
int usage_printer_types(struct usage_printer *printer) BTRKIT_MUST_CHECK;

/** Prints each data extent with its owners. @return 0, or what the write callback returned. */
int usage_printer_extents(struct usage_printer *printer) BTRKIT_MUST_CHECK;

/* In usage_paths.c: */
/**
 * Prints all directories with their paths.
 *
 * @param paths	of the same result as the printer
 * @return 0; -ENOMEM; or what the write callback returned
 */
int usage_printer_paths(struct usage_printer *printer, const struct btrkit_usage_paths *paths,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In usage.c: */
/**
 * Writes the remaining output and frees the printer. NULL is allowed.
 *
 * @return 0, or what the write callback returned
 */
int usage_printer_finish(struct usage_printer *printer);

#endif
