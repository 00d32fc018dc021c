// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/check/codes.h"

#include <btrkit/check.h>

#define CODE(id, name, severity, meaning) { "BTR-" name, BTRKIT_CHECK_##severity, meaning },

const struct btrkit_check_code *btrkit_check_codes(size_t *n)
{
	static const struct btrkit_check_code codes[] = { CHECK_CODES(CODE) };

	*n = CHECK_NUM_CODES;
	return codes;
}

const char *btrkit_check_severity_name(enum btrkit_check_severity severity)
{
	static const char *const names[] = { "refused", "misbehaves", "leftover" };

	return (unsigned)severity < BTRKIT_CHECK_SEVERITIES ? names[severity] : NULL;
}
