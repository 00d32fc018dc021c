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

/* @return length of the control character at @s, which may be one of Unicode that takes two bytes; 0: it is none */
static size_t control_len(const unsigned char *s)
{
	if (s[0] < ' ' || s[0] == 0x7f)
		return 1;
	return s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

void text_add_printable(char *buf, size_t size, const char *s)
{
	size_t n = strlen(buf);

	while (*s && n + 1 < size) {
		size_t control = control_len((const unsigned char *)s);

		if (!control)
			buf[n++] = *s++;
		for (; control && n + 4 < size; control--)
			n += (size_t)snprintf(buf + n, size - n, "\\%03o", (unsigned)(unsigned char)*s++);
		if (control)
			break;
	}
	buf[n] = 0;
}
