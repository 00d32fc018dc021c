/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_AUDIT_H
#define BTRKIT_TESTS_AUDIT_H

/*
 * What tests require of a filesystem: btrkit_check() has no findings, plus a few things that btrkit_check() ignores,
 * because Linux does without them, but that the library always writes correctly.
 */

#include <btrkit/check.h>

#include "lib/tree/filesystem.h"

/* Findings that a test expects in its filesystem, and that are not reported. */
enum audit_known {
	AUDIT_LEFTOVERS = 1 << 0, /* harmless leftovers of other programs */
	AUDIT_ITEMS = 1 << 1,	  /* items of unknown types */
	AUDIT_MIRRORS = 1 << 2,	  /* the primary superblocks were written, but not all mirrors */
	AUDIT_SUPERS = 1 << 3,	  /* superblocks are of different commits; the test checks each by itself */
	AUDIT_MISSING = 1 << 4	  /* devices are missing */
};

/*
 * @ret: the result of the check; may be NULL
 * @return 0: no findings except for @known; -EUCLEAN: the first finding, with its code and severity; what
 * btrkit_check() returns if it fails
 */
int audit(struct btrkit_fs *fs, unsigned known, struct btrkit_check_result *ret,
	  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Compares the backup roots of the current generation with the roots. Not for filesystems that were copied while
 * mounted: there Linux lets the next transaction change roots before it has written those of the last.
 * @return 0; -EUCLEAN: the first difference; <0
 */
int audit_backups(struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Counts the trees whose root item has a number of bytes that differs from their blocks: Linux is sometimes off by one
 * block. Trees that are being dropped are not counted.
 * @return 0; <0
 */
int audit_root_bytes(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* All three, for a filesystem that only the library has written. @return as audit() */
int audit_own(struct btrkit_fs *fs, unsigned known, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
