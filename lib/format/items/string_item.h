/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_STRING_ITEM_H
#define BTRKIT_FORMAT_ITEMS_STRING_ITEM_H

#include "lib/format/item.h"

/* A string for debugging, without fixed contents. */
extern const struct item_type item_type_string;

#endif
