/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_NAMES_JUDGE_H
#define BTRKIT_CHECK_NAMES_JUDGE_H

#include "lib/check/files/names.h"

/* Compares the facts with each other. */
void names_judge(struct names *n);

#endif
