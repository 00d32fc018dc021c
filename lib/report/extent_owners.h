/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EXTENT_OWNERS_H
#define EXTENT_OWNERS_H

#include "lib/backref/references.h"

/* All that refers to one extent after another, also around damage. Starts zeroed. */
struct extent_owners {
	struct references refs; /* those that were found */
	bool go_on;		/* around damage */
	int ret;		/* why owners are known of no extent; 0: they are */
	struct btrkit_error why;
	bool missing;		/* owners of the last extent are, because of what */
	struct btrkit_error what;
};

/* @go_on: otherwise the first damage is a failure. @return 0; <0 */
int extent_owners_init(struct extent_owners *o, struct btrkit_fs *fs, bool go_on, struct btrkit_error *err);
void extent_owners_release(struct extent_owners *o);
/* Loads o->refs for the extent at @bytenr; if its own item is lost, none. @return 0; 1: some are missing; <0 */
int extent_owners_load(struct extent_owners *o, uint64_t bytenr, struct btrkit_error *err);

#endif
