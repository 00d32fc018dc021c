/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FEATURE_H
#define BTRKIT_FEATURE_H

/**
 * @file
 * Features of the on-disk format, and which of them the library supports.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/** The three sets of feature bits in a superblock. Since: 0.1 */
enum btrkit_feature_set { BTRKIT_FEATURE_COMPAT, BTRKIT_FEATURE_COMPAT_RO, BTRKIT_FEATURE_INCOMPAT };

/** Whether a filesystem with a feature is supported. Since: 0.1 */
enum btrkit_support {
	BTRKIT_SUPPORT_REFUSED,		/**< can be neither read nor written */
	BTRKIT_SUPPORT_READ,		/**< can be read but not written */
	BTRKIT_SUPPORT_WRITE		/**< can be read and written */
};

/** A feature. Since: 0.1 */
struct btrkit_feature {
	enum btrkit_feature_set set;
	uint64_t bit;		/**< its bit in the superblock */
	const char *name;	/**< as in mkfs.btrfs and sysfs */
	enum btrkit_support support;
	bool tried;		/**< compared with Linux; false: no kernel was at hand that mounts it */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Returns all known features.
 *
 * @param count	receives the number of features
 * @return a constant array of @p count elements
 * Since: 0.1
 */
const struct btrkit_feature *btrkit_features(size_t *count);

BTRKIT_END_DECLS

#endif
