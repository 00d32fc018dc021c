/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_HASH_H
#define BTRKIT_BASE_HASH_H

/*
 * uthash, configured not to exit when memory runs out: HASH_ADD sets hh.tbl of an element that it could not add to
 * NULL.
 */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>
#include <utlist.h>

#endif
