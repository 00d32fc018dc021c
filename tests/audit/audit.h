/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_AUDIT_H
#define BTRKIT_TESTS_AUDIT_H

/*
 * What tests ask of a filesystem: that btrkit_check() finds nothing in it, and things that it does not ask, since Linux
 * does without them, but who writes as the library does has right.
 */

#include <btrkit/check.h>

#include "lib/tree/filesystem.h"

/* What a test knows of its filesystem, and is not to be told. */
enum audit_known {
	AUDIT_LEFTOVERS = 1 << 0, /* somebody else has left things behind that are in nobody's way */
	AUDIT_ITEMS = 1 << 1,	  /* there are items of types that nobody knows */
	AUDIT_MIRRORS = 1 << 2,	  /* the primary superblocks were written, and then not all mirrors */
	AUDIT_SUPERS = 1 << 3,	  /* superblocks are not all of one commit; the test judges each of them by itself */
	AUDIT_MISSING = 1 << 4	  /* devices were taken away */
};

/*
 * @ret: what there was; may be NULL
 * @return 0: nothing is found but what is @known; -EUCLEAN: the first finding, with its code and severity; what
 * btrkit_check() returns if it fails
 */
int audit(struct btrkit_fs *fs, unsigned known, struct btrkit_check_result *ret,
	  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Holds the backup roots of the current generation against the roots. Not of a filesystem that was copied while it was
 * mounted: there Linux lets the next transaction change roots before it writes down those of the last.
 * @return 0; -EUCLEAN: the first contradiction; <0
 */
int audit_backups(struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Counts the trees whose root item says another number of bytes than their blocks take: Linux is off by a block at
 * times. A tree that is being dropped is not counted.
 * @return 0; <0
 */
int audit_root_bytes(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* All three, of a filesystem that the library has made alone. @return as audit() */
int audit_own(struct btrkit_fs *fs, unsigned known, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
