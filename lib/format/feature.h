/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_FEATURE_H
#define BTRKIT_FORMAT_FEATURE_H

/* The one table of features, and the judgement of a superblock by it. */

#include <btrkit/error.h>
#include <btrkit/feature.h>

#include "lib/format/super.h"

/* A flag of the superblock. */
struct super_flag {
	uint64_t bit;
	const char *name;	/* as in dump-super */
	const char *refused;	/* why a filesystem that has it is not read; NULL: it is read */
	const char *unwritten;	/* why it is read, and not written; NULL: it is written too */
};

const struct super_flag *super_flags(size_t *count);

/*
 * Whether the filesystem can be read. As in Linux, unknown bits of compat and compat_ro do not stand against reading,
 * any incompat bit that is not read does, and so does an unknown flag.
 * @return 0; -EOPNOTSUPP with the names of what is not read
 */
int features_check_read(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether no flag says that a conversion was left half done. @return 0; -EOPNOTSUPP, likewise */
int features_check_done(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same for who shows what there is. @list of @size bytes gets the names. @return whether there are any */
bool features_half_done(const struct super *s, char *list, size_t size);
#define FEATURES_TEXT ((size_t)128)

/*
 * Whether a filesystem that is read can be written too, as far as its superblock tells: no unknown bit of compat_ro, no
 * flag that is read only, mixed-backref, no log tree. @return 0; -EOPNOTSUPP with the names of what is not written
 */
int features_check_write(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the extent tree alone tells what is allocated, and chunks where that lies: no bit that is unknown or only
 * read, no log tree, of which the extent tree does not know, no half conversion. @return 0; -EOPNOTSUPP, likewise
 */
int features_check_allocation(const struct super *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Says that the feature of @bit is refused, and why. @return -EOPNOTSUPP */
int features_refuse(enum btrkit_feature_set set, uint64_t bit, const char *why, struct btrkit_error *err);

#endif
