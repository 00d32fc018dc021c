/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_FEATURE_H
#define BTRKIT_FORMAT_FEATURE_H

/* The table of features, and checks of a superblock's feature bits and flags. */

#include <btrkit/error.h>
#include <btrkit/feature.h>

#include "lib/format/super.h"

/* A flag of the superblock. */
struct super_flag {
	uint64_t bit;
	const char *name;	/* as printed by dump-super */
	const char *refused;	/* why a filesystem with this flag is not read; NULL: it is read */
	const char *unwritten;	/* why it is read but not written; NULL: it is written too */
};

const struct super_flag *super_flags(size_t *count);

/*
 * Whether the filesystem can be read. Like in Linux, unknown compat and compat_ro bits do not prevent reading, but
 * unsupported incompat bits and unknown flags do.
 * @return 0; -EOPNOTSUPP, the message names what is not supported
 */
int features_check_read(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether no flag indicates an interrupted conversion. @return 0; -EOPNOTSUPP, the message names it */
int features_check_done(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Like features_check_done(), for callers that only display it: writes the names of interrupted conversions to @list
 * of @size bytes.
 * @return whether there are any
 */
bool features_half_done(const struct super *s, char *list, size_t size);
#define FEATURES_TEXT ((size_t)128)

/*
 * Whether a filesystem that can be read can also be written, as far as the superblock shows: no unknown compat_ro bit,
 * no read-only flag, mixed-backref set, no log tree.
 * @return 0; -EOPNOTSUPP, the message names what is not supported
 */
int features_check_write(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the extent tree alone describes what is allocated, and the chunks where it is located: no unknown or
 * read-only feature bit, no log tree (whose blocks the extent tree does not contain), no interrupted conversion.
 * @return 0; -EOPNOTSUPP, the message names what is not supported
 */
int features_check_allocation(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Report that the feature @bit is not supported, and why. @return -EOPNOTSUPP */
int features_refuse(enum btrkit_feature_set set, uint64_t bit, const char *why, struct btrkit_error *err);

#endif
