/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_FAILURE_H
#define BTRKIT_TREE_FAILURE_H

/*
 * Whether the changes of a handle have failed half way. Then nothing may be committed any more, and each later
 * operation reports the first error, because any of them may be the first whose caller passes it on. This is the only
 * place where that is recorded; any thread may ask at any time, without a lock.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <btrkit/error.h>
#include <btrkit/transaction.h>

struct failure {
	atomic_bool failed;
	pthread_mutex_t lock; /* for the following; taken after all others */
	struct btrkit_error first;
	bool of_commit; /* a commit failed: @first tells the state, too */
	enum btrkit_commit_state state;
};

void failure_init(struct failure *f);
void failure_destroy(struct failure *f);

/*
 * Returns whether an operation that fails with this error may have been half done. Errors that it returns before it
 * changes anything, because of what it was asked to do or for want of space, are not fatal. All others are: memory,
 * damage, devices (-ENXIO: a device is too short), and another program that writes to the filesystem (-EBUSY).
 * What fails with a harmless error although something has changed calls failure_note() instead of asking this.
 */
bool failure_is_fatal(int ret);

static inline bool failure_is_set(const struct failure *f)
{
	return atomic_load(&f->failed);
}

/*
 * Records that a change was half done. @err: its error, which may be NULL; the first one is reported from now on. An
 * error that is recorded again with more of its location, by a layer above, replaces itself. @return @ret
 */
int failure_note(struct failure *f, int ret, const struct btrkit_error *err);

/* Does that if @ret is not 0. @return @ret */
static inline int failure_note_any(struct failure *f, int ret, const struct btrkit_error *err)
{
	return ret ? failure_note(f, ret, err) : 0;
}

/* Does that if @ret is fatal. @return @ret */
static inline int failure_note_fatal(struct failure *f, int ret, const struct btrkit_error *err)
{
	return ret && failure_is_fatal(ret) ? failure_note(f, ret, err) : ret;
}

/* Records that a commit failed, with the state that it reported. Its error replaces that of a change. @return @ret */
int failure_note_commit(struct failure *f, int ret, const struct btrkit_error *err, enum btrkit_commit_state state);

/* Reports the first error, if there is one. @return 0; <0: its errno */
int failure_check(struct failure *f, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @return whether a commit has failed; then @state, which may be NULL, is what it left */
bool failure_of_commit(struct failure *f, enum btrkit_commit_state *state);
/* Forgets the failure of changes that were dropped. A failed commit is not forgotten. */
void failure_forget(struct failure *f);

#endif
