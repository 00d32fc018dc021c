/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_TXN_RIG_H
#define BTRKIT_TESTS_TXN_RIG_H

/* A filesystem on several devices in memory, whose writes are watched and can be made to fail. */

#include <pthread.h>

#include <btrkit/btrkit.h>

#include "lib/txn/txn.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"

#define RIG_DEVICES_MAX 6

/* A row of a test: profiles, and the devices with their MiB. */
struct rig_kind {
	const char *name;
	enum btrkit_profile data, metadata;
	bool mixed;
	uint32_t nodesize;
	unsigned spare; /* devices that may be lost */
	unsigned n, mib[RIG_DEVICES_MAX];
	bool without_cache; /* of free space */
	bool quotas;
};

struct rig {
	struct sparse *at[RIG_DEVICES_MAX];
	unsigned n;
	pthread_mutex_t lock; /* of the devices */
	uint64_t calls;	  /* writes and flushes so far */
	uint64_t fail_at; /* the one that fails */
	unsigned failed;  /* the device, counted from 1, that it was of */
	uint64_t mirrors; /* writes of superblocks that are not the primary */
	/* Of each device a bit for every 4 KiB that is not to be written, or NULL. */
	uint8_t *held[RIG_DEVICES_MAX];
	uint64_t num_held; /* bits, so far */
	uint64_t rows_judged;
};

void rig_make(struct rig *r, const struct rig_kind *kind);
/* What is written to one does not appear in the other, which must live as long. */
void rig_clone(struct rig *r, const struct rig *from);
void rig_destroy(struct rig *r);

/* A handle, of BTRKIT_OPEN_* @flags, without the devices of which @lost has the bit. */
struct btrkit_fs *rig_open(struct rig *r, unsigned flags, unsigned lost);
/* The same when it may fail. */
int rig_try_open(struct rig *r, unsigned flags, unsigned lost, struct btrkit_fs **fs, struct btrkit_error *err);

/*
 * From here on a write fails the test that touches what the filesystem has now: a block, or with parity any strip of a
 * row that has one. Superblocks aside.
 */
void rig_hold(struct rig *r);

/*
 * Everything agrees, items of unknown types aside: with itself, on every device, and every parity with what it was made
 * of. Holds that state.
 */
void rig_judge(struct rig *r);
/* The same but for AUDIT_* @known, not AUDIT_ITEMS. */
void rig_judge_but(struct rig *r, unsigned known);

/* Fails the test with the error's line if @ret is one. */
void rig_check(int ret, const struct btrkit_error *err);
/* The same if it is not what is expected; in any thread, so it ends the program. */
void rig_expect(int ret, int wanted, const struct btrkit_error *err);

#endif
