/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_DEVICES_KINDS_H
#define BTRKIT_TESTS_CRASH_DEVICES_KINDS_H

/* What happens to the devices in each kind of trial. */

#include <btrkit/btrkit.h>

#include "lib/commit/txn.h"
#include "devices_check.h"
#include "log.h"

/* What a kind works with. */
struct work {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct btrkit_io *io[DISKS_MAX]; /* all devices, whether they belong to the filesystem or not */
	unsigned owned; /* bit mask of the devices that the filesystem closes */
	struct log *log;		  /* NULL: nothing is recorded */
	struct btrkit_error err;
	bool random_uuids; /* Linux must be able to tell the devices apart */
};

struct kind {
	const char *name;
	unsigned made;	 /* devices of the new filesystem, which are the first */
	unsigned before; /* bit mask of those after @prepare */
	enum btrkit_profile profile;
	int (*prepare)(struct work *w);
	int (*does)(struct work *w);
	unsigned after[COMMITS_MAX]; /* bit masks of devices after each commit; 0: no more */
};

/* Starts a transaction. @return 0; <0 */
int work_start(struct work *w);

extern const struct kind kinds[];
extern const size_t num_kinds;

#endif
