/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_ATTRIBUTES_H
#define BTRKIT_CHECK_ATTRIBUTES_H

#include "lib/check/files/span.h"

/* Checks the value of an extended attribute. */
void span_attribute(struct span_reader *r, const struct item *item, const struct dir_entry *e);

#endif
