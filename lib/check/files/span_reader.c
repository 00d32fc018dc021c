// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports wrong items while a span is built. */
#include "lib/check/files/span_reader.h"

#include <inttypes.h>

#include "lib/check/codes.h"
#include "lib/check/files/span.h"
#include "lib/check/findings.h"

void span_report(struct span_reader *r, enum check_code code, const struct item *item, const char *field,
		 const char *words, uint64_t number)
{
	const struct check_location at = { r->leaf->owner, r->leaf->bytenr, &item->key, field };

	check_report_at(r->c, code, &at, "%s%" PRIu64, words, number);
}
