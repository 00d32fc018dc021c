/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_LOG_H
#define BTRKIT_USAGE_LOG_H

#include "lib/usage/state.h"

/* Reads the log trees. */
int usage_load_logs(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
