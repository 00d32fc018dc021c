/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_PARITY_H
#define BTRKIT_VOLUME_PARITY_H

/*
 * P and Q of a row of strips, by ISA-L's erasure code. P is the sum of the data strips, Q the sum of data strip i times
 * 2^i, in the field that RAID 6 is made in (polynomial 0x11d).
 */

#include <btrkit/error.h>

#define PARITY_STRIPS_MAX 255u /* of data: 2^i repeats after as many */

/* Whether this build can do it: without, chunks with parity are read as long as no strip is bad. */
bool parity_available(void);

/*
 * Computes P and, if it is not NULL, Q of @n data strips of @len bytes.
 * @return 0; -EOPNOTSUPP: a build without ISA-L; -EINVAL: too many strips; -ENOMEM
 */
int parity_generate(unsigned n, size_t len, uint8_t *const *data, uint8_t *p, uint8_t *q,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Rebuilds data strip @want from others. @strips are the @n data strips, then P, then Q; those that are NULL are not
 * known (the one that is wanted is not looked at). As few of the known are used as suffice, data before P before Q.
 * @return 0; -ENODATA: too few are known; -EOPNOTSUPP, -EINVAL, -ENOMEM as above
 */
int parity_rebuild(unsigned n, size_t len, uint8_t *const *strips, bool has_q, unsigned want, uint8_t *to,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
