/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_LINK_H
#define BTRKIT_USAGE_PATHS_LINK_H

#include "lib/usage/paths/paths.h"

/* Links the directories with their parents and creates the nodes. */
int paths_link(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the lowest common ancestor of two nodes, which may be one of them; PATHS_NONE if there is none. */
uint32_t paths_common(const struct btrkit_usage_paths *p, uint32_t a, uint32_t b);

#endif
