/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DOCTOR_H
#define BTRKIT_TESTS_CRASH_TXN_DOCTOR_H

/* Mistakes in what reaches a device. Each returns false if there was no occasion for it. */

#include "log.h"

bool doctor_super_first(struct log *log, struct sparse *before);
bool doctor_mirror_early(struct log *log, struct sparse *before);
bool doctor_no_mirror(struct log *log, struct sparse *before);
bool doctor_block_missing(struct log *log, struct sparse *before);
bool doctor_copy_missing(struct log *log, struct sparse *before);
bool doctor_discard_early(struct log *log, struct sparse *before);
bool doctor_overwrite_early(struct log *log, struct sparse *before);
bool doctor_no_checksum(struct log *log, struct sparse *before);
bool doctor_wrong_backup(struct log *log, struct sparse *before);
bool doctor_stale_array(struct log *log, struct sparse *before);
bool doctor_cache_generation(struct log *log, struct sparse *before);

#endif
