/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_SPOOL_H
#define BTRKIT_IO_SPOOL_H

/* Buffers data to be read again later: in memory up to a limit, and beyond that in an unnamed temporary file. */

#include <btrkit/error.h>

struct spool;

/* @memory: the maximum number of bytes to keep in memory. @return 0 or -ENOMEM */
int spool_create(size_t memory, struct spool **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @s may be NULL. */
struct spool *spool_destroy(struct spool *s);

/* Appends data. If a file is needed, it is created in the directory $TMPDIR, or in /var/tmp. @return 0; <0 */
int spool_append(struct spool *s, const void *data, size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The number of bytes appended so far. */
uint64_t spool_size(const struct spool *s);
/* Reads from the appended data. @return 0; -ENXIO: past the end; <0 */
int spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
