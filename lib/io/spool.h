/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SPOOL_H
#define BTRKIT_IO_SPOOL_H

/* Bytes that are put away to be read again later: in memory, and what exceeds that in a file without a name. */

#include <btrkit/error.h>

struct spool;

/* @memory: bytes to keep in it at the most. @return 0 or -ENOMEM */
int spool_create(size_t memory, struct spool **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct spool *spool_destroy(struct spool *s);

/* Appends. The file, when there must be one, is made where TMPDIR says, or else in /var/tmp. @return 0; <0 */
int spool_append(struct spool *s, const void *data, size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Bytes that were appended. */
uint64_t spool_size(const struct spool *s);
/* Reads what was appended. @return 0; -ENODATA: so much is not there; <0 */
int spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
