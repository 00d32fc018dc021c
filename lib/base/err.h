/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ERR_H
#define BTRKIT_BASE_ERR_H

/* Functions that fill in a struct btrkit_error. All of them accept err == NULL. */

#include <errno.h>
#include <stdarg.h>

#include <btrkit/error.h>

/* The errno of a code, as a negative number. BTRKIT_SYSTEM has no fixed errno: use err_system(). */
int err_errno(enum btrkit_code code);

/* Overwrites @err and returns the negative errno of @code. */
int err_set(struct btrkit_error *err, enum btrkit_code code, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/* Reports an errno of the operating system, positive or negative; its text is appended. Returns the negative errno. */
int err_system(struct btrkit_error *err, int errnum, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/* Report that memory ran out. */
int err_nomem(struct btrkit_error *err);

/*
 * Copies @own, which holds the error of the last of several attempts, to @err if @ret says that it failed. @return @ret
 */
int err_pass(struct btrkit_error *err, const struct btrkit_error *own, int ret);

/*
 * Report that data on disk is invalid. All corruption is reported through this function, so it is the place for a
 * breakpoint. @field names the invalid field, or is NULL. Returns -EUCLEAN.
 */
int err_corrupt(struct btrkit_error *err, const char *field, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/*
 * Makes the constant return value visible to the compiler in every caller. Otherwise it warns about output that is only
 * set on success.
 */
static inline int err_uclean(int ret)
{
	(void)ret;
	return -EUCLEAN;
}
#define err_corrupt(err, field, ...) err_uclean(err_corrupt(err, field, __VA_ARGS__))

/*
 * Adds the cause to an error that was just filled in, as in err_because(err, BTRKIT_CAUSE_CSUM, err_corrupt(err, ...)).
 * The functions above remove the cause of an earlier failure. @return @ret
 */
static inline int err_because(struct btrkit_error *to, enum btrkit_cause cause, int ret)
{
	if (to)
		to->cause = cause;
	return ret;
}

/* Prefix the message with "NAME: ". */
void err_name(struct btrkit_error *err, const char *name);

/* Adds a location to an error as it passes a layer that knows the location. A location that is already set is kept. */
void err_at_device(struct btrkit_error *err, uint64_t devid, uint64_t physical);
void err_at_devid(struct btrkit_error *err, uint64_t devid);
void err_at_logical(struct btrkit_error *err, uint64_t logical);
void err_at_tree(struct btrkit_error *err, uint64_t tree);
void err_at_item(struct btrkit_error *err, uint32_t slot, const struct btrkit_key *key);
void err_at_key(struct btrkit_error *err, const struct btrkit_key *key);

#endif
