/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_FILES_H
#define BTRKIT_CHECK_LOG_FILES_H

#include "lib/check/log/log_state.h"
#include "lib/sweep/log.h"

/* Called at the start and end of a log, and for each invalid item. */
void log_files_begin(struct log *l, uint64_t subvolume);
void log_files_doubt(struct log *l, const struct item *item);
void log_files_end(struct log *l);
/* Checks what all items have in common. @return whether it is one that its own event should see */
bool log_files_item(struct log *l, const struct node *leaf, const struct item *item);
/* Events of lib/sweep/log.h; @ctx is the struct log. */
int log_files_inode(void *ctx, const struct sweep_log_item *at, const struct inode_item *inode,
		    struct btrkit_error *err);
int log_files_ref(void *ctx, const struct sweep_log_item *at, const struct inode_ref *ref, struct btrkit_error *err);
int log_files_entry(void *ctx, const struct sweep_log_item *at, unsigned number, const struct dir_entry *e,
		    struct btrkit_error *err);
int log_files_range(void *ctx, const struct sweep_log_item *at, uint64_t first, uint64_t last,
		    struct btrkit_error *err);

#endif
