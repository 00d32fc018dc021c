/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_USAGE_PRINT_H
#define BTRKIT_REPORT_USAGE_PRINT_H

/* What the parts of the printer share. */

#include <btrkit/subvolume.h>
#include <btrkit/usage.h>

#include "lib/base/emit.h"

#define LABEL_BYTES 40
#define SIZE_BYTES 32

/* What is printed of an owner wherever it is named. */
struct label {
	enum btrkit_usage_kind kind;
	uint64_t id;
};

struct btrkit_usage_printer {
	struct emit emit;
	struct btrkit_fs *fs;
	const struct btrkit_usage *usage;
	struct btrkit_usage_print_options opts;
	bool begun; /* the header is out */
	struct label *labels;
	size_t num_owners;
	int width;	/* of a size in text */
	/* The path that was asked for last, with a slash before it. */
	char *path;
	size_t path_len;
	/* The owners of the set that was printed last. */
	uint32_t *members;
	size_t set, num_members;
};

/* The header comes with the first row: alone it would look like an empty report. */
struct emit *usage_print_begin(struct btrkit_usage_printer *p);

/* A size for people, or in bytes where they asked for that. */
const char *usage_size_text(const struct btrkit_usage_printer *p, uint64_t bytes, char to[SIZE_BYTES]);
void usage_emit_size(struct btrkit_usage_printer *p, const char *words, uint64_t bytes);
/* The members of a space, each behind @words in text. */
void usage_emit_space(struct emit *e, const char *words, const struct btrkit_usage_space *s);

/* An owner in text: a subvolume, dying or not, is its number, which is a number in JSON too. */
const char *usage_label_text(const struct label *l, char to[LABEL_BYTES]);
void usage_emit_label(struct emit *e, const char *key, const char *words, const struct label *l);
/* With commas between them. @words are printed for none too. */
void usage_emit_labels(struct btrkit_usage_printer *p, const char *key, const char *words, const uint32_t *owners,
		       size_t n);

/*
 * What would hold each of the owners that are subvolumes, in their order, if all of them were to be deleted. @owners:
 * their numbers; NULL: the first @n
 * @holds: to be freed, whatever is returned; none where the damage was told
 * @return 0; <0
 */
int usage_find_holds(struct btrkit_usage_printer *p, const uint32_t *owners, size_t n,
		     struct btrkit_subvolume_deletion **holds, size_t *num_holds,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* By enum btrkit_usage_kind, and by enum btrkit_subvolume_hold. */
extern const char *const usage_kind_names[], *const usage_hold_names[];

/* The path of a subvolume, kept in @p; nothing where there is none. @return 0, also where the damage was told; <0 */
int usage_find_path(struct btrkit_usage_printer *p, const struct label *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_emit_path(struct btrkit_usage_printer *p, const char *words);

/* Something could not be told, which who prints may pass over. @return 0 it does, <0 it does not */
int usage_tell_damage(struct btrkit_usage_printer *p, int ret, const struct btrkit_error *what,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
