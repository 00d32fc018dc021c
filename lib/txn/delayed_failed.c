// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reports the first failure of a transaction from all later operations, since any of them may be the first to pass it
 * on.
 */
#include <errno.h>

#include "lib/base/err.h"
#include "lib/txn/delayed.h"

/* Requires the lock. */
static void note(struct delayed_failure *f, int ret, const struct btrkit_error *err)
{
	if (err && err->err == ret)
		f->first = *err;
	else
		err_system(&f->first, ret, "an earlier change failed");
	/* From a later operation, these errors would have another meaning. */
	if (ret == -ENOENT || ret == -EEXIST) {
		f->first.code = BTRKIT_INVALID;
		f->first.err = -EINVAL;
	}
}

int delayed_fail(struct delayed *d, int ret, const struct btrkit_error *err)
{
	pthread_mutex_lock(&d->failure.lock);
	if (!atomic_load(&d->failed))
		note(&d->failure, ret, err);
	atomic_store(&d->failed, true);
	pthread_mutex_unlock(&d->failure.lock);
	return ret;
}

int delayed_fail_commit(struct delayed *d, int ret, const struct btrkit_error *err, enum btrkit_commit_state state)
{
	pthread_mutex_lock(&d->failure.lock);
	if (!d->failure.of_commit) {
		/* It has repeated an earlier failure, and added the state. */
		note(&d->failure, ret, err);
		d->failure.of_commit = true;
		d->failure.state = state;
	}
	atomic_store(&d->failed, true);
	pthread_mutex_unlock(&d->failure.lock);
	return ret;
}

int delayed_judge(struct delayed *d, struct btrkit_error *err)
{
	int ret;

	if (!atomic_load(&d->failed))
		return 0;
	pthread_mutex_lock(&d->failure.lock);
	ret = d->failure.first.err;
	if (err)
		*err = d->failure.first;
	pthread_mutex_unlock(&d->failure.lock);
	return ret;
}

bool delayed_commit_failed(struct delayed *d, enum btrkit_commit_state *state)
{
	bool failed;

	pthread_mutex_lock(&d->failure.lock);
	failed = d->failure.of_commit;
	if (failed)
		*state = d->failure.state;
	pthread_mutex_unlock(&d->failure.lock);
	return failed;
}
