// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/failure.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"

void failure_init(struct failure *f)
{
	*f = (struct failure){ .of_commit = false };
	pthread_mutex_init(&f->lock, NULL);
}

void failure_destroy(struct failure *f)
{
	pthread_mutex_destroy(&f->lock);
}

bool failure_is_fatal(int ret)
{
	return ret == -ENOMEM || ret == -EUCLEAN || ret == -EIO || ret == -ENXIO || ret == -EBUSY;
}

/* Whether this is the first error, with locations that the first one does not have. Requires the lock. */
static bool says_more(const struct failure *f, int ret, const struct btrkit_error *err)
{
	return err && !f->of_commit && ret == f->first.err && err->places & ~f->first.places &&
	       !(f->first.places & ~err->places) && !strcmp(err->message, f->first.message);
}

/* Requires the lock. */
static void take(struct failure *f, int ret, const struct btrkit_error *err)
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

int failure_note(struct failure *f, int ret, const struct btrkit_error *err)
{
	pthread_mutex_lock(&f->lock);
	if (!failure_is_set(f) || says_more(f, ret, err))
		take(f, ret, err);
	atomic_store(&f->failed, true);
	pthread_mutex_unlock(&f->lock);
	return ret;
}

int failure_note_commit(struct failure *f, int ret, const struct btrkit_error *err, enum btrkit_commit_state state)
{
	pthread_mutex_lock(&f->lock);
	if (!f->of_commit) {
		/* It has repeated an earlier failure, and added the state. */
		take(f, ret, err);
		f->of_commit = true;
		f->state = state;
	}
	atomic_store(&f->failed, true);
	pthread_mutex_unlock(&f->lock);
	return ret;
}

int failure_check(struct failure *f, struct btrkit_error *err)
{
	int ret;

	if (!failure_is_set(f))
		return 0;
	pthread_mutex_lock(&f->lock);
	ret = f->first.err;
	if (err)
		*err = f->first;
	pthread_mutex_unlock(&f->lock);
	return ret;
}

bool failure_of_commit(struct failure *f, enum btrkit_commit_state *state)
{
	bool failed;

	pthread_mutex_lock(&f->lock);
	failed = f->of_commit;
	if (failed && state)
		*state = f->state;
	pthread_mutex_unlock(&f->lock);
	return failed;
}

void failure_forget(struct failure *f)
{
	pthread_mutex_lock(&f->lock);
	if (!f->of_commit)
		atomic_store(&f->failed, false);
	pthread_mutex_unlock(&f->lock);
}
