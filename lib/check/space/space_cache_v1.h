/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPACE_CACHE_V1_H
#define BTRKIT_CHECK_SPACE_CACHE_V1_H

#include "lib/check/state.h"

void space_check_caches(struct check *c);

#endif
