/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_READER_H
#define BTRKIT_CHECK_SPAN_READER_H

#include "lib/check/codes.h"
#include "lib/check/files/span.h"

/* Reports a wrong item of the leaf. The message is @words followed by @number. */
void span_report(struct span_reader *r, enum check_code code, const struct item *item, const char *field,
		 const char *words, uint64_t number);

#endif
