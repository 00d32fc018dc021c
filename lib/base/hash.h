/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_HASH_H
#define BTRKIT_BASE_HASH_H

/*
 * uthash, told not to end the program when memory runs out: an element that HASH_ADD could not add has hh.tbl NULL
 * after it.
 */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>
#include <utlist.h>

#endif
