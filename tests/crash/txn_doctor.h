/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DOCTOR_H
#define BTRKIT_TESTS_CRASH_TXN_DOCTOR_H

/* Defects made by altering the write log. Each returns false if there was no occasion for it. */

#include "log.h"

bool doctor_super_first(struct log *log, const struct disks *before);
bool doctor_mirror_early(struct log *log, const struct disks *before);
bool doctor_no_mirror(struct log *log, const struct disks *before);
bool doctor_block_missing(struct log *log, const struct disks *before);
bool doctor_copy_missing(struct log *log, const struct disks *before);
bool doctor_discard_early(struct log *log, const struct disks *before);
bool doctor_overwrite_early(struct log *log, const struct disks *before);
bool doctor_no_checksum(struct log *log, const struct disks *before);
bool doctor_wrong_backup(struct log *log, const struct disks *before);
bool doctor_stale_array(struct log *log, const struct disks *before);
bool doctor_cache_generation(struct log *log, const struct disks *before);

/* For several devices. */
bool doctor_no_flush_of_one(struct log *log, const struct disks *before);
bool doctor_super_before_flush(struct log *log, const struct disks *before);
bool doctor_super_of_one_first(struct log *log, const struct disks *before);
bool doctor_copy_of_last_missing(struct log *log, const struct disks *before);
bool doctor_no_super_of_one(struct log *log, const struct disks *before);
bool doctor_copies_exchanged(struct log *log, const struct disks *before);
bool doctor_wrong_device_item(struct log *log, const struct disks *before);

#endif
