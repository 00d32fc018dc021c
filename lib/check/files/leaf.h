/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LEAF_H
#define BTRKIT_CHECK_LEAF_H

#include "lib/check/files/leaves.h"

/* Reads the first @n leaves of reader.wanted, which are in address order. */
void leaves_read(struct reader *r, size_t n);
/*
 * Takes an idle reader, or creates one, until leaves_put_reader(). There are never more than threads.
 * @return NULL: check_fail() was called
 */
struct reader *leaves_take_reader(struct leaves *l);
void leaves_put_reader(struct leaves *l, struct reader *r);
void leaves_free_readers(struct leaves *l);

#endif
