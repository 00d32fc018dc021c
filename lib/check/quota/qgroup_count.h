/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_QGROUP_COUNT_H
#define BTRKIT_CHECK_QGROUP_COUNT_H

#include "lib/check/quota/quota.h"

/* Counts for full quotas, by what each subvolume reaches. @return 0; 1: cannot be determined; <0 */
int check_qgroup_count(struct check_quota *q);

#endif
