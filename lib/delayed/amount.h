/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DELAYED_AMOUNT_H
#define BTRKIT_DELAYED_AMOUNT_H

/* Amounts of delayed items: what is reserved for them, and what they take. */

#include <stdint.h>

struct delayed_amount {
	int64_t items, bytes;
	int64_t leaves; /* leaves of the items that are in a tree, plus one for each other item */
};

static inline void delayed_amount_add(struct delayed_amount *to, const struct delayed_amount *a)
{
	to->items += a->items;
	to->bytes += a->bytes;
	to->leaves += a->leaves;
}

static inline void delayed_amount_subtract(struct delayed_amount *from, const struct delayed_amount *a)
{
	from->items -= a->items;
	from->bytes -= a->bytes;
	from->leaves -= a->leaves;
}

#endif
