/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_ERR_H
#define BTRKIT_BASE_ERR_H

/* How the layers fill in a struct btrkit_error. All of these allow err == NULL. */

#include <errno.h>
#include <stdarg.h>

#include <btrkit/error.h>

/* The one errno of a code (BTRKIT_SYSTEM has none: use err_system). */
int err_errno(enum btrkit_code code);

/* Fills in @err from scratch and returns the negative errno of @code. */
int err_set(struct btrkit_error *err, enum btrkit_code code, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/* An errno of the operating system, positive or negative, put after the message; returns it as a negative number. */
int err_system(struct btrkit_error *err, int errnum, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/* No memory. */
int err_nomem(struct btrkit_error *err);

/* Attempts were told to @own: of these the last counts, and none if that succeeded. @return @ret */
int err_pass(struct btrkit_error *err, const struct btrkit_error *own, int ret);

/*
 * The funnel: every contradiction between bytes and format is reported through this function, which is therefore the
 * place for a breakpoint. @field is the name of the field at fault, or NULL. Returns -EUCLEAN.
 */
int err_corrupt(struct btrkit_error *err, const char *field, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/* A compiler sees in every caller what is returned, and so that what a success fills in is not read after a failure. */
static inline int err_uclean(int ret)
{
	(void)ret;
	return -EUCLEAN;
}
#define err_corrupt(err, field, ...) err_uclean(err_corrupt(err, field, __VA_ARGS__))

/* Puts "NAME: " before what a failure says. */
void err_name(struct btrkit_error *err, const char *name);

/* Add a place to a failure as it passes a layer that knows it. A place that is set already stays as it is. */
void err_at_device(struct btrkit_error *err, uint64_t devid, uint64_t physical);
void err_at_devid(struct btrkit_error *err, uint64_t devid);
void err_at_logical(struct btrkit_error *err, uint64_t logical);
void err_at_tree(struct btrkit_error *err, uint64_t tree);
void err_at_item(struct btrkit_error *err, uint32_t slot, const struct btrkit_key *key);
void err_at_key(struct btrkit_error *err, const struct btrkit_key *key);

#endif
