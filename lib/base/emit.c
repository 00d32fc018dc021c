// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/emit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/digits.h"

#define BUFFER_SIZE (256u * 1024)
#define ROOM_MAX 4096u

int emit_init(struct emit *e, enum emit_form form, btrkit_write_fn write, void *ctx)
{
	*e = (struct emit){ .write = write, .ctx = ctx, .form = form, .size = BUFFER_SIZE };
	e->first[0] = true;
	e->buf = malloc(BUFFER_SIZE);
	if (!e->buf) {
		e->error = -ENOMEM;
		return -ENOMEM;
	}
	return 0;
}

int emit_flush(struct emit *e)
{
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

/* The comma before a value and its key, in JSON. */
static void json_lead(struct emit *e, const char *key)
{
	if (!e->first[e->depth])
		emit_bytes(e, ",", 1);
	e->first[e->depth] = false;
	if (key) {
		emit_bytes(e, "\"", 1);
		emit_bytes(e, key, strlen(key));
		emit_bytes(e, "\":", 2);
	}
}

static void lead(struct emit *e, const char *key, const char *words)
{
	if (e->form == EMIT_JSON)
		json_lead(e, key);
	else
		emit_bytes(e, words, strlen(words));
}

void emit_decimal(struct emit *e, uint64_t v)
{
	char *to = emit_room(e, DIGITS_ROOM);

	if (to)
		emit_took(e, (size_t)(digits_put(to, v) - to));
}

void emit_u64_json(struct emit *e, const char *key, uint64_t v)
{
	json_lead(e, key);
	emit_decimal(e, v);
}

void emit_u64_wide(struct emit *e, const char *key, const char *words, uint64_t v, unsigned width)
{
	static const char blanks[] = "                                ";
	unsigned digits = 1;

	lead(e, key, words);
	if (e->form == EMIT_TEXT) {
		for (uint64_t rest = v; rest >= 10; rest /= 10)
			digits++;
		if (digits < width)
			emit_bytes(e, blanks, (width < sizeof(blanks) ? width : sizeof(blanks) - 1) - digits);
	}
	emit_decimal(e, v);
}

void emit_s64(struct emit *e, const char *key, const char *words, int64_t v)
{
	lead(e, key, words);
	if (v < 0)
		emit_bytes(e, "-", 1);
	emit_decimal(e, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static const char hex_digits[] = "0123456789abcdef";

void emit_x64(struct emit *e, const char *key, const char *words, uint64_t v)
{
	char digits[18], *at = digits + sizeof(digits);

	lead(e, key, words);
	if (e->form == EMIT_JSON) {
		emit_decimal(e, v);
		return;
	}
	do {
		*--at = hex_digits[v & 15];
		v >>= 4;
	} while (v);
	*--at = 'x';
	*--at = '0';
	emit_bytes(e, at, (size_t)(digits + sizeof(digits) - at));
}

void emit_oct(struct emit *e, const char *key, const char *words, uint64_t v)
{
	char digits[24], *at = digits + sizeof(digits);

	lead(e, key, words);
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

static void quote(struct emit *e)
{
	if (e->form == EMIT_JSON)
		emit_bytes(e, "\"", 1);
}

static void put_hex(struct emit *e, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char pair[2] = { hex_digits[data[i] >> 4], hex_digits[data[i] & 15] };

		emit_bytes(e, pair, 2);
	}
}

void emit_uuid(struct emit *e, const char *key, const char *words, const uint8_t uuid[16])
{
	static const uint8_t groups[] = { 4, 2, 2, 2, 6 };
	size_t at = 0;

	lead(e, key, words);
	quote(e);
	for (size_t i = 0; i < sizeof(groups); i++) {
		if (i)
			emit_bytes(e, "-", 1);
		put_hex(e, uuid + at, groups[i]);
		at += groups[i];
	}
	quote(e);
}

void emit_hex(struct emit *e, const char *key, const char *words, const uint8_t *data, size_t len)
{
	lead(e, key, words);
	quote(e);
	put_hex(e, data, len);
	quote(e);
}

/* Length of the valid UTF-8 sequence at @s, 0 if there is none (overlong forms and surrogates are not valid). */
static size_t utf8_length(const uint8_t *s, size_t left)
{
	uint32_t cp;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3fu);
	}
	if ((n == 3 && (cp < 0x800 || (cp >= 0xd800 && cp < 0xe000))) || (n == 4 && (cp < 0x10000 || cp > 0x10ffff)))
		return 0;
	return n;
}

static void json_string(struct emit *e, const uint8_t *s, size_t len)
{
	char escape[8];
	size_t n;

	quote(e);
	for (size_t i = 0; i < len; i += n) {
		n = utf8_length(s + i, len - i);
		if (n > 1 || (n == 1 && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] != 0x7f)) {
			emit_bytes(e, s + i, n);
			continue;
		}
		if (s[i] == '"' || s[i] == '\\')
			snprintf(escape, sizeof(escape), "\\%c", s[i]);
		else
			snprintf(escape, sizeof(escape), "\\u%04x", n ? s[i] : 0xdc00u + s[i]);
		n = 1;
		emit_bytes(e, escape, strlen(escape));
	}
	quote(e);
}

void emit_str(struct emit *e, const char *key, const char *words, const char *s)
{
	emit_name(e, key, words, s, strlen(s));
}

void emit_name(struct emit *e, const char *key, const char *words, const void *s, size_t len)
{
	lead(e, key, words);
	if (e->form == EMIT_JSON)
		json_string(e, s, len);
	else
		emit_bytes(e, s, len);
}

void emit_name_escaped(struct emit *e, const char *key, const char *words, const void *s, size_t len, bool space)
{
	static const char letters[] = "abtnvfr";	/* of 0x07 to 0x0d */
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

void emit_bool(struct emit *e, const char *key, bool v)
{
	if (e->form != EMIT_JSON)
		return;
	json_lead(e, key);
	emit_bytes(e, v ? "true" : "false", v ? 4 : 5);
}

static void open_level(struct emit *e, const char *key, bool array)
{
	if (e->form != EMIT_JSON)
		return;
	if (e->depth == EMIT_DEPTH) {
		e->error = e->error ? e->error : -EOVERFLOW;
		return;
	}
	if (e->depth)
		json_lead(e, key);
	emit_bytes(e, array ? "[" : "{", 1);
	e->depth++;
	e->first[e->depth] = true;
	e->array[e->depth] = array;
}

static void close_level(struct emit *e)
{
	if (e->form != EMIT_JSON || !e->depth)
		return;
	emit_bytes(e, e->array[e->depth] ? "]" : "}", 1);
	if (!--e->depth)
		emit_bytes(e, "\n", 1);
}

void emit_object(struct emit *e, const char *key)
{
	open_level(e, key, false);
}

void emit_object_end(struct emit *e)
{
	close_level(e);
}

void emit_array(struct emit *e, const char *key)
{
	open_level(e, key, true);
}

void emit_array_end(struct emit *e)
{
	close_level(e);
}

void emit_header(struct emit *e, const char *command)
{
	emit_object(e, NULL);
	emit_object(e, "__header");
	if (e->form == EMIT_JSON) {
		emit_u64(e, "version", "", 1);
		emit_str(e, "command", "", command);
	}
	emit_object_end(e);
	emit_object_end(e);
}
