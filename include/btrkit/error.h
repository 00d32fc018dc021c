/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_ERROR_H
#define BTRKIT_ERROR_H

/**
 * @file
 * Error codes, and the details of a failure.
 *
 * Every function that can fail returns 0 or a negative errno. A function that can report details takes a struct
 * btrkit_error of the caller as its last parameter, which may be NULL. The library keeps no error state of its own, so
 * threads do not overwrite each other's errors. Read the struct only after a call has failed: a call that succeeds may
 * leave the details of a failure there from which it recovered. When a callback of the caller stops a call, the struct
 * may be left unchanged.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/** Kinds of failure. Each but BTRKIT_SYSTEM stands for one errno. Since: 0.1 */
enum btrkit_code {
	BTRKIT_OK = 0,
	BTRKIT_NOT_BTRFS,	/**< -EMEDIUMTYPE: not a btrfs filesystem */
	BTRKIT_UNSUPPORTED,	/**< -EOPNOTSUPP: valid, but not supported by this library */
	BTRKIT_CORRUPT,		/**< -EUCLEAN: the bytes contradict the format */
	BTRKIT_TRUNCATED,	/**< -ENXIO, before 0.2 -ENODATA: the device ends before the data */
	BTRKIT_IO,		/**< -EIO */
	BTRKIT_NO_SPACE,	/**< -ENOSPC */
	BTRKIT_BUSY,		/**< -EBUSY: mounted, locked or in use */
	BTRKIT_INVALID,		/**< -EINVAL: an invalid argument */
	BTRKIT_NOT_FOUND,	/**< -ENOENT: no such tree, path or item */
	BTRKIT_NO_MEMORY,	/**< -ENOMEM */
	BTRKIT_SYSTEM,		/**< any other errno */
	BTRKIT_NO_ATTRIBUTE	/**< -ENODATA: no such extended attribute. Since: 0.2 */
};

/**
 * Why a call failed, for programs that decide by it: messages may change, these do not. The location members of struct
 * btrkit_error say which device, address or tree it is about, as far as that is known. More may follow, so treat an
 * unknown one like BTRKIT_CAUSE_OTHER. Since: 0.2
 */
enum btrkit_cause {
	BTRKIT_CAUSE_OTHER = 0,	      /**< none of the following: decide by the code */
	BTRKIT_CAUSE_NO_SUPERBLOCK,   /**< there is no superblock: the device has no filesystem, or not there */
	BTRKIT_CAUSE_UNDO_UNFINISHED, /**< btrkit_undo() was interrupted on the device, and has to be run again */
	BTRKIT_CAUSE_FEATURE,	      /**< the filesystem has a feature or state that is not supported for this */
	BTRKIT_CAUSE_LOG_TREE,	      /**< there is a log tree, which Linux replays when it mounts the filesystem */
	BTRKIT_CAUSE_DEVICE_MISSING,  /**< a device was not given */
	BTRKIT_CAUSE_DEVICE_STALE,    /**< a device has an older generation than the filesystem */
	BTRKIT_CAUSE_IN_USE,	      /**< the kernel uses the device: it is mounted, or part of another device */
	BTRKIT_CAUSE_LOCKED,	      /**< another program holds a lock on the device */
	BTRKIT_CAUSE_UNMAPPED,	      /**< no chunk contains the logical address */
	BTRKIT_CAUSE_CSUM,	      /**< a superblock, tree block or data does not match its checksum */
	BTRKIT_CAUSE_FSID,	      /**< a tree block belongs to another filesystem */
	BTRKIT_CAUSE_BYTENR,	      /**< a superblock or tree block has the address of another one */
	BTRKIT_CAUSE_OWNER,	      /**< a tree block belongs to another tree */
	BTRKIT_CAUSE_LEVEL,	      /**< a tree block has another level than its parent says */
	BTRKIT_CAUSE_GENERATION,      /**< a tree block has another generation than its parent says */
	BTRKIT_CAUSE_FIRST_KEY	      /**< a tree block begins with another key than its parent says */
};

/** Which location members of struct btrkit_error are set. Since: 0.1 */
enum btrkit_error_place {
	BTRKIT_AT_DEVID = 1 << 0,
	BTRKIT_AT_PHYSICAL = 1 << 1,
	BTRKIT_AT_LOGICAL = 1 << 2,
	BTRKIT_AT_TREE = 1 << 3,
	BTRKIT_AT_KEY = 1 << 4,
	BTRKIT_AT_SLOT = 1 << 5
};

/** Details of a failure. Initialise with BTRKIT_ERROR_INIT. Since: 0.1 */
struct btrkit_error {
	enum btrkit_code code;
	int err;		/**< the negative errno that the call returned */
	unsigned places;	/**< BTRKIT_AT_*: which of the following location members are set */
	enum btrkit_cause cause; /**< why, if it is one of those that programs decide by. Since: 0.2 */
	uint64_t devid;		/**< number of the device within its filesystem */
	uint64_t physical;	/**< bytes from the start of the device, or of the part that holds the filesystem */
	uint64_t logical;	/**< logical address */
	uint64_t tree;		/**< objectid of the tree */
	struct btrkit_key key;
	uint32_t slot;
	char field[40];		/**< name of the field at fault; empty if there is none */
	char message[200];	/**< one line that describes the failure, without its location */
	/**
	 * When all copies of a block or of data failed: how each copy after the first failed, and what rebuilding from
	 * parity gave, each with device and physical address. Otherwise empty. The other members describe the first
	 * copy.
	 */
	char copies[512];
	/**
	 * Of BTRKIT_CAUSE_DEVICE_STALE, if it is known: types and profiles, as in struct btrkit_chunk and with bit 48
	 * for single, of the chunks on that device that cannot be read without stale devices. A scrub by Linux repairs
	 * all others. Since: 0.2
	 */
	uint64_t unmirrored;
	uint64_t reserved[3];	/**< 0 */
};

#define BTRKIT_ERROR_INIT BTRKIT_ZEROS

/**
 * Returns the name of a cause in text and JSON, such as "device-missing".
 *
 * @param cause	the cause
 * @return a constant string; NULL: no such cause
 * Since: 0.2
 */
const char *btrkit_cause_name(enum btrkit_cause cause);

/** Buffer size that holds any line of btrkit_error_format(), in bytes. Since: 0.1 */
#define BTRKIT_ERROR_LINE 4096

/**
 * Formats a failure as one line: the message, each location that is set, and then the other copies. Control characters
 * in names, which may come from a disk, are escaped as in C, in octal.
 *
 * @param err	the failure; not NULL
 * @param buf	receives the line, terminated, and truncated to @p size
 * @param size	size of @p buf in bytes; BTRKIT_ERROR_LINE is always enough
 * @return @p buf
 * Since: 0.1
 */
const char *btrkit_error_format(const struct btrkit_error *err, char *buf, size_t size);

BTRKIT_END_DECLS

#endif
