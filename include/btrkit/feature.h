/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FEATURE_H
#define BTRKIT_FEATURE_H

/**
 * @file
 * Which features of the format this library reads and writes.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/** The three sets of feature bits in a superblock. Since: 0.1 */
enum btrkit_feature_set { BTRKIT_FEATURE_COMPAT, BTRKIT_FEATURE_COMPAT_RO, BTRKIT_FEATURE_INCOMPAT };

/** What the library does with a filesystem that has the feature. Since: 0.1 */
enum btrkit_support {
	BTRKIT_SUPPORT_REFUSED,		/**< neither read nor written */
	BTRKIT_SUPPORT_READ,		/**< read, not written */
	BTRKIT_SUPPORT_WRITE		/**< read and written */
};

/** A feature. Since: 0.1 */
struct btrkit_feature {
	enum btrkit_feature_set set;
	uint64_t bit;		/**< as in the superblock */
	const char *name;	/**< as mkfs.btrfs and the kernel's sysfs spell it */
	enum btrkit_support support;
	bool tried;		/**< held against Linux; false: the kernel at hand could not mount it */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Every feature that is known.
 *
 * @param count	gets how many there are
 * @return an array of @p count, a constant of the library
 * Since: 0.1
 */
const struct btrkit_feature *btrkit_features(size_t *count);

BTRKIT_END_DECLS

#endif
