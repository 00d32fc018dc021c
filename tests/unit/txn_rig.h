/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_TXN_RIG_H
#define BTRKIT_TESTS_TXN_RIG_H

/* A filesystem on several devices in memory, whose writes are checked and can be made to fail. */

#include <pthread.h>

#include <btrkit/btrkit.h>

#include "lib/commit/txn.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"

#define RIG_DEVICES_MAX 6

/* A row of a test: the profiles, and the devices with their sizes in MiB. */
struct rig_kind {
	const char *name;
	enum btrkit_profile data, metadata;
	bool mixed;
	uint32_t nodesize;
	unsigned spare; /* number of devices that may be lost */
	unsigned n, mib[RIG_DEVICES_MAX];
	bool without_cache; /* without free space tree */
	bool quotas;
};

struct rig {
	struct sparse *at[RIG_DEVICES_MAX];
	unsigned n;
	pthread_mutex_t lock; /* for the devices */
	uint64_t calls;	  /* writes and flushes so far */
	uint64_t fail_at; /* number of the call that fails */
	unsigned failed;  /* the device, counted from 1, of the call that failed */
	uint64_t mirrors; /* writes of superblock mirrors */
	/* For each device a bitmap of the 4-KiB units that must not be written, or NULL. */
	uint8_t *held[RIG_DEVICES_MAX];
	uint64_t num_held; /* bits that are set */
	uint64_t rows_checked;
};

void rig_make(struct rig *r, const struct rig_kind *kind);
/* Makes a copy; later writes to either do not affect the other, but @from must live as long as the copy. */
void rig_clone(struct rig *r, const struct rig *from);
void rig_destroy(struct rig *r);

/* Opens the filesystem with BTRKIT_OPEN_* @flags, without the devices in the bit mask @lost. */
struct btrkit_fs *rig_open(struct rig *r, unsigned flags, unsigned lost);
/* Like rig_open(), if it may fail. */
int rig_try_open(struct rig *r, unsigned flags, unsigned lost, struct btrkit_fs **fs, struct btrkit_error *err);

/*
 * From now on, writes to anything that belongs to the current state fail the test: to a block or, with parity, to any
 * strip of a row that has one. Superblocks are exempt.
 */
void rig_hold(struct rig *r);

/*
 * Everything must be consistent, except for items of unknown types: the structures, all devices, and parity. This state
 * is then protected as by rig_hold().
 */
void rig_verify(struct rig *r);
/* Like rig_verify(), but the findings AUDIT_* @known are allowed instead of AUDIT_ITEMS. */
void rig_check_but(struct rig *r, unsigned known);

/* Fails the test with the message of the error if @ret is not 0. */
void rig_check(int ret, const struct btrkit_error *err);
/* Fails if @ret is not @wanted. It may be called in any thread, so it ends the process. */
void rig_expect(int ret, int wanted, const struct btrkit_error *err);

#endif
