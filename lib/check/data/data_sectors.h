/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_SECTORS_H
#define BTRKIT_CHECK_DATA_SECTORS_H

#include "lib/check/data/data_progress.h"

void data_check_piece(struct data_check *d, const struct data_piece *p);

#endif
