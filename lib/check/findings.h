/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_FINDINGS_H
#define BTRKIT_CHECK_FINDINGS_H

/* How all parts of a check report what they find, and how the check ends early. */

#include "lib/check/codes.h"
#include "lib/check/state.h"

/* Appends an element of @size bytes. @return it; NULL: out of memory, and check_fail() was called */
void *check_list_add(struct check *c, struct array *list, size_t size);

/*
 * Reports a finding. @what: message, field and location, as filled in by err_corrupt() and err_at_*(). May be called
 * by any thread. If the finding cannot be stored, the check ends; the caller need not handle that.
 */
void check_report(struct check *c, enum check_code code, const struct btrkit_error *what);
/* Returns the code for an item with invalid contents, which are worse if Linux validates items of its type. */
enum check_code check_code_of_invalid(const struct btrkit_key *key);
/* Reports a finding with the value found and the value expected. */
void check_report_values(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t found,
			 uint64_t expected);
/*
 * Inserts a finding into a list, which keeps the first @most by location. The caller holds the lock.
 * @return whether it is new; false, too, after check_fail()
 */
bool check_insert_finding(struct check *c, struct check_findings *l, size_t most, const struct check_finding *f);
/* Withdraws a finding with the same message and location whose two values differ by @apart. */
void check_withdraw(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t apart);
/* Reports a finding with a new message and the location in @at, whose unused fields are 0 or NULL. */
struct check_location {
	uint64_t tree, logical;
	const struct btrkit_key *key;
	const char *field;
	uint64_t devid, physical; /* devid 0: no device; physical 0: no address on it */
	const uint64_t *values;	  /* found and expected, or NULL */
	enum btrkit_cause cause;
};
void check_report_at(struct check *c, enum check_code code, const struct check_location *at, const char *fmt, ...)
	BTRKIT_PRINTF(4, 5);

/*
 * Ends the check: out of memory, an I/O error on the spill file, or a callback that asked to stop.
 * @return @ret, or the error that ended the check earlier
 */
int check_fail(struct check *c, int ret, const struct btrkit_error *err);
/* Whether check_fail() was called. Long loops poll this. */
bool check_failed(struct check *c);
/* Adds @n tree blocks to the progress. */
void check_progress(struct check *c, uint64_t n);
/* Reports a cursor error as a finding at the block or item that caused it. */
void check_report_unreadable(struct check *c, uint64_t tree, int ret, const struct btrkit_error *what);

#endif
