// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_add(char *buf, size_t size, const char *fmt, ...)
{
	const size_t len = strlen(buf);
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf + len, size - len, fmt, args);
	va_end(args);
}
