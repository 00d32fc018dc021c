/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_DATA_H
#define BTRKIT_CHECK_LOG_DATA_H

#include "lib/check/log/log_state.h"
#include "lib/sweep/log.h"

/* Events, and called at the end of a tree. */
int log_data_extent(void *ctx, const struct sweep_log_item *at, const struct file_extent *fe, struct btrkit_error *err);
int log_data_csums(void *ctx, const struct sweep_log_item *at, uint64_t start, uint64_t length, const uint8_t *csums,
		   struct btrkit_error *err);
void log_data_end(struct log *l);
/* Called at the end of all log trees: merges their data. */
void log_data_join(struct log *l);

#endif
