// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/emit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/digits.h"
#include "lib/base/emit_json.h"

#define BUFFER_SIZE (256u * 1024)
#define ROOM_MAX 4096u

int emit_init(struct emit *e, enum emit_form form, btrkit_write_fn write, void *ctx)
{
	*e = (struct emit){ .write = write, .ctx = ctx, .form = form, .size = BUFFER_SIZE };
	e->buf = malloc(BUFFER_SIZE);
	if (!e->buf) {
		e->error = -ENOMEM;
		return -ENOMEM;
	}
	return 0;
}

/* Enlarge the buffer, for output that is kept in memory. */
static int grow(struct emit *e)
{
	char *more = e->error ? NULL : realloc(e->buf, 2 * e->size);

	if (more) {
		e->buf = more;
		e->size *= 2;
	} else if (!e->error) {
		e->error = -ENOMEM;
	}
	return e->error;
}

int emit_flush(struct emit *e)
{
	if (!e->write)
		return grow(e);
	if (e->len && !e->error)
		e->error = e->write(e->ctx, e->buf, e->len);
	e->len = 0;
	return e->error;
}

void emit_abandon(struct emit *e)
{
	free(e->buf);
	e->buf = NULL;
	e->len = 0;
}

int emit_finish(struct emit *e)
{
	int ret = emit_flush(e);

	emit_abandon(e);
	return ret;
}

char *emit_room_flush(struct emit *e, size_t n)
{
	/* Flushing makes more room than @n: it empties the buffer or doubles its size. */
	if (e->size - e->len < n)
		emit_flush(e);
	return e->error ? NULL : e->buf + e->len;
}

void emit_bytes_flush(struct emit *e, const void *data, size_t len)
{
	const char *from = data;

	while (len && !e->error) {
		size_t n = e->size - e->len;

		if (n > len)
			n = len;
		memcpy(e->buf + e->len, from, n);
		e->len += n;
		from += n;
		len -= n;
		if (e->len == e->size)
			emit_flush(e);
	}
}

void emit_textf(struct emit *e, const char *fmt, ...)
{
	va_list args;
	char *to;
	int n;

	if (e->form != EMIT_TEXT)
		return;
	to = emit_room(e, ROOM_MAX);
	if (!to)
		return;
	va_start(args, fmt);
	n = vsnprintf(to, ROOM_MAX, fmt, args);
	va_end(args);
	if (n > 0)
		emit_took(e, (size_t)n < ROOM_MAX ? (size_t)n : ROOM_MAX - 1);
}

/* Writes what precedes the value. @return false: the filter drops the field */
static bool lead(struct emit *e, const char *key, const char *words)
{
	if (e->form == EMIT_JSON)
		return emit_json_lead(e, key, key ? strlen(key) : 0);
	emit_bytes(e, words, strlen(words));
	return true;
}

void emit_decimal(struct emit *e, uint64_t v)
{
	char *to = emit_room(e, DIGITS_ROOM);

	if (to)
		emit_took(e, (size_t)(digits_put(to, v) - to));
}

void emit_u64_wide(struct emit *e, const char *key, const char *words, uint64_t v, unsigned width)
{
	char *to;

	if (!lead(e, key, words))
		return;
	if (e->form == EMIT_JSON) {
		emit_decimal(e, v);
		return;
	}
	to = emit_room(e, DIGITS_WIDE_ROOM);
	if (to)
		emit_took(e, (size_t)(digits_put_wide(to, v, width) - to));
}

void emit_s64(struct emit *e, const char *key, const char *words, int64_t v)
{
	if (!lead(e, key, words))
		return;
	if (v < 0)
		emit_bytes(e, "-", 1);
	emit_decimal(e, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static const char hex_digits[] = "0123456789abcdef";

void emit_x64(struct emit *e, const char *key, const char *words, uint64_t v)
{
	char *to;

	if (!lead(e, key, words))
		return;
	if (e->form == EMIT_JSON) {
		emit_decimal(e, v);
		return;
	}
	to = emit_room(e, DIGITS_ROOM);
	if (to)
		emit_took(e, (size_t)(digits_put_hex(to, v) - to));
}

void emit_oct(struct emit *e, const char *key, const char *words, uint64_t v)
{
	char digits[24], *at = digits + sizeof(digits);

	if (!lead(e, key, words))
		return;
	if (e->form == EMIT_JSON) {
		emit_decimal(e, v);
		return;
	}
	do {
		*--at = (char)('0' + (v & 7));
		v >>= 3;
	} while (v);
	emit_bytes(e, at, (size_t)(digits + sizeof(digits) - at));
}

static char *put_hex(char *to, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		*to++ = hex_digits[data[i] >> 4];
		*to++ = hex_digits[data[i] & 15];
	}
	return to;
}

void emit_uuid(struct emit *e, const char *key, const char *words, const uint8_t uuid[16])
{
	static const uint8_t groups[] = { 4, 2, 2, 2, 6 };
	char text[38], *to = text + 1;
	const bool json = e->form == EMIT_JSON;

	if (!lead(e, key, words))
		return;
	text[0] = '"';
	for (size_t i = 0; i < sizeof(groups); i++) {
		if (i)
			*to++ = '-';
		to = put_hex(to, uuid, groups[i]);
		uuid += groups[i];
	}
	*to = '"';
	emit_bytes(e, json ? text : text + 1, json ? 38 : 36);
}

void emit_hex(struct emit *e, const char *key, const char *words, const uint8_t *data, size_t len)
{
	if (!lead(e, key, words))
		return;
	if (e->form == EMIT_JSON)
		emit_bytes(e, "\"", 1);
	while (len && !e->error) {
		const size_t n = len < ROOM_MAX / 2 ? len : ROOM_MAX / 2;
		char *to = emit_room(e, 2 * n);

		if (!to)
			return;
		emit_took(e, (size_t)(put_hex(to, data, n) - to));
		data += n;
		len -= n;
	}
	if (e->form == EMIT_JSON)
		emit_bytes(e, "\"", 1);
}

void emit_str(struct emit *e, const char *key, const char *words, const char *s)
{
	emit_name(e, key, words, s, strlen(s));
}

void emit_name(struct emit *e, const char *key, const char *words, const void *s, size_t len)
{
	if (!lead(e, key, words))
		return;
	if (e->form == EMIT_JSON)
		emit_json_string(e, s, len);
	else
		emit_bytes(e, s, len);
}

void emit_name_escaped(struct emit *e, const char *key, const char *words, const void *s, size_t len, bool space)
{
	static const char letters[] = "abtnvfr";	/* for 0x07 to 0x0d */
	const uint8_t *at = s;

	if (e->form == EMIT_JSON) {
		emit_name(e, key, words, s, len);
		return;
	}
	emit_text(e, words);
	for (size_t i = 0; i < len; i++) {
		char escape[5];
		size_t run = i;

		while (run < len && at[run] >= 0x20 && at[run] < 0x7f && at[run] != '\\' && !(space && at[run] == ' '))
			run++;
		emit_bytes(e, at + i, run - i);
		i = run;
		if (i == len)
			break;
		if (at[i] == '\\' || at[i] == ' ')
			snprintf(escape, sizeof(escape), "\\%c", at[i]);
		else if (at[i] >= 0x07 && at[i] <= 0x0d)
			snprintf(escape, sizeof(escape), "\\%c", letters[at[i] - 7]);
		else if (at[i] == 0x1b)
			snprintf(escape, sizeof(escape), "\\e");
		else
			snprintf(escape, sizeof(escape), "\\%03o", at[i]);
		emit_bytes(e, escape, strlen(escape));
	}
}
