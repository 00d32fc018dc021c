/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_TEXT_H
#define BTRKIT_BASE_TEXT_H

#include <stddef.h>

#include <btrkit/types.h>

/* Appends to the string in @buf, which has room for @size bytes; text that does not fit is cut off. */
void text_add(char *buf, size_t size, const char *fmt, ...) BTRKIT_PRINTF(3, 4);

/*
 * Like text_add(), for a string that may have names in it: control characters, also those of Unicode, are escaped in
 * octal.
 */
void text_add_printable(char *buf, size_t size, const char *s);

#endif
