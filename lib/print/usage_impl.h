/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_USAGE_IMPL_H
#define BTRKIT_PRINT_USAGE_IMPL_H

/* Internals shared by the parts of the printer. */

#include <btrkit/subvolume.h>
#include <btrkit/usage.h>

#include "lib/base/emit.h"
#include "lib/print/usage.h"

#define LABEL_BYTES 40
#define SIZE_BYTES 32

/* Identifies an owner in the output. */
struct label {
	enum btrkit_usage_kind kind;
	uint64_t id;
};

struct usage_printer {
	struct emit emit;
	struct btrkit_fs *fs;
	const struct btrkit_usage *usage;
	struct usage_printer_options opts;
	bool begun; /* the header was printed */
	struct label *labels;
	size_t num_owners;
	int width;	/* of a size column in text */
	/* The last path that was looked up, with a leading slash. */
	char *path;
	size_t path_len;
	/* The owners of the last printed set. */
	uint32_t *members;
	size_t set, num_members;
};

/* In usage.c: */
/* Prints the header with the first row: alone it would look like an empty report. */
struct emit *usage_print_begin(struct usage_printer *p);

/* Formats a size for humans, or in bytes with USAGE_PRINTER_BYTES. */
const char *usage_size_text(const struct usage_printer *p, uint64_t bytes, char to[SIZE_BYTES]);
void usage_emit_size(struct usage_printer *p, const char *words, uint64_t bytes);
/* Prints the members of a space, each after @words in text. */
void usage_emit_space(struct emit *e, const char *words, const struct btrkit_usage_space *s);

/* Formats an owner: the number of a subvolume (being deleted or not), which is a number in JSON too, or a name. */
const char *usage_label_text(const struct label *l, char to[LABEL_BYTES]);
void usage_emit_label(struct emit *e, const char *key, const char *words, const struct label *l);
/* Prints owners separated by commas. @words are printed even if there are none. */
void usage_emit_labels(struct usage_printer *p, const char *key, const char *words, const uint32_t *owners,
		       size_t n);

/* In usage_rows.c: */
/*
 * Finds out what prevents deletion of those owners that are subvolumes, in their order, if all of them were to be
 * deleted. @owners: indexes of owners; NULL: the first @n
 * @holds: freed by the caller in any case; empty if damage was reported
 * @return 0; <0
 */
int usage_find_holds(struct usage_printer *p, const uint32_t *owners, size_t n,
		     struct btrkit_subvolume_deletion **holds, size_t *num_holds,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Indexed by enum btrkit_usage_kind and enum btrkit_subvolume_hold. */
extern const char *const usage_kind_names[], *const usage_hold_names[];

/* In usage.c: */
/*
 * Looks up the path of a subvolume and keeps it in @p; empty if it has none. @return 0, also if damage was reported; <0
 */
int usage_find_path(struct usage_printer *p, const struct label *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_emit_path(struct usage_printer *p, const char *words);

/* Reports damage to the caller, who may ignore it. @return 0: continue; <0 */
int usage_tell_damage(struct usage_printer *p, int ret, const struct btrkit_error *what,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
