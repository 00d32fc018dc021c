/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_PARITY_H
#define BTRKIT_VOLUME_PARITY_H

/*
 * P and Q of a full stripe of strips, computed with ISA-L's erasure code. P is the sum of the data strips; Q is the sum
 * of data strip i times 2^i, in the field of RAID 6 (polynomial 0x11d).
 */

#include <btrkit/error.h>

#define PARITY_STRIPS_MAX 255u /* data strips: 2^i repeats after that */

/* Whether this build supports parity. Without it, chunks with parity can still be read as long as no strip is bad. */
bool parity_available(void);

/*
 * Computes P and, if @q is not NULL, Q of @n data strips of @len bytes.
 * @return 0; -EOPNOTSUPP: build without ISA-L; -EINVAL: too many strips; -ENOMEM
 */
int parity_generate(unsigned n, size_t len, uint8_t *const *data, uint8_t *p, uint8_t *q,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Rebuilds data strip @want from other strips. @strips has the @n data strips, then P, then Q; NULL entries are
 * unknown, and the entry of @want is ignored. Only as many strips as necessary are used, data first, then P, then Q.
 * @return 0; -ENXIO: too few strips; -EOPNOTSUPP, -EINVAL, -ENOMEM as above
 */
int parity_rebuild(unsigned n, size_t len, uint8_t *const *strips, bool has_q, unsigned want, uint8_t *to,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
