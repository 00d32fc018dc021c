/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_ERROR_H
#define BTRKIT_ERROR_H

/**
 * @file
 * What went wrong, and where.
 *
 * Every fallible function returns 0 or a negative errno. One that has a detail to tell takes a caller-owned
 * struct btrkit_error as its last parameter, which may be NULL. The library keeps no error of its own, so threads do
 * not overwrite each other's. The struct is written only when the call fails, and not always where it is a callback of
 * the caller that has ended it.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/**
 * The kinds of failure; each maps to one errno.
 *
 * Since: 0.1
 */
enum btrkit_code {
	BTRKIT_OK = 0,
	BTRKIT_NOT_BTRFS,	/**< -EMEDIUMTYPE: there is no btrfs here */
	BTRKIT_UNSUPPORTED,	/**< -EOPNOTSUPP: valid, but this library does not do it */
	BTRKIT_CORRUPT,		/**< -EUCLEAN: bytes contradict the format */
	BTRKIT_TRUNCATED,	/**< -ENODATA: the device ends before the data */
	BTRKIT_IO,		/**< -EIO */
	BTRKIT_NO_SPACE,	/**< -ENOSPC */
	BTRKIT_BUSY,		/**< -EBUSY: mounted, locked, or in use */
	BTRKIT_INVALID,		/**< -EINVAL: an argument */
	BTRKIT_NOT_FOUND,	/**< -ENOENT: no such tree, path, item */
	BTRKIT_NO_MEMORY,	/**< -ENOMEM */
	BTRKIT_SYSTEM		/**< any other errno of the operating system */
};

/** Which places of struct btrkit_error are filled in. Since: 0.1 */
enum btrkit_error_place {
	BTRKIT_AT_DEVID = 1 << 0,
	BTRKIT_AT_PHYSICAL = 1 << 1,
	BTRKIT_AT_LOGICAL = 1 << 2,
	BTRKIT_AT_TREE = 1 << 3,
	BTRKIT_AT_KEY = 1 << 4,
	BTRKIT_AT_SLOT = 1 << 5
};

/**
 * A failure in detail. Initialise with BTRKIT_ERROR_INIT.
 *
 * Since: 0.1
 */
struct btrkit_error {
	enum btrkit_code code;
	int err;		/**< the negative errno that the call returned */
	unsigned places;	/**< BTRKIT_AT_*: which of the following are set */
	uint64_t devid;		/**< the device's number within its filesystem */
	uint64_t physical;	/**< bytes from the start of the device or of the part that holds the filesystem */
	uint64_t logical;	/**< btrfs logical address */
	uint64_t tree;		/**< objectid of the tree's root item */
	struct btrkit_key key;
	uint32_t slot;
	char field[40];		/**< name of the field at fault, or empty */
	char message[200];	/**< one impersonal line, without the place */
	/**
	 * Of what several copies should have, and none has: how each copy after the first one failed, and what parity
	 * gives, each with devices and physical addresses; or empty. The rest of the struct is about the first copy.
	 */
	char copies[512];
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_ERROR_INIT BTRKIT_ZEROS

/** Room for any line of btrkit_error_format(). Since: 0.1 */
#define BTRKIT_ERROR_LINE 1024

/**
 * Writes the failure as one line, message first, then every place that is set, then the other copies, into @p buf
 * (always terminated; cut when @p size is too small: BTRKIT_ERROR_LINE bytes hold any of them).
 *
 * @return @p buf
 * Since: 0.1
 */
const char *btrkit_error_format(const struct btrkit_error *err, char *buf, size_t size);

BTRKIT_END_DECLS

#endif
