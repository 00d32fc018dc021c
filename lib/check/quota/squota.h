/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SQUOTA_H
#define BTRKIT_CHECK_SQUOTA_H

#include "lib/check/quota/quota.h"

/* Counts for simple quotas, by the owner of each extent. @return 0; 1: cannot be determined; <0 */
int check_squota_count(struct check_quota *q);

#endif
