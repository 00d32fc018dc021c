/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EMIT_H
#define BTRKIT_BASE_EMIT_H

/*
 * The sink that renderers write to. A renderer says each thing once, as an event: a field has a key (its name in
 * JSON) and the words that stand before it in text. The text form writes the words and the value and ignores keys; the
 * JSON form writes keys and values and ignores words. Both go through one buffer to a btrkit_write_fn.
 *
 * The first failure of the write function sticks: later events do nothing and emit_finish() returns it, so a
 * renderer need not look at each event. emit_failed() lets long loops stop early.
 */

#include <string.h>

#include <btrkit/types.h>

enum emit_form {
	EMIT_TEXT,
	EMIT_JSON,	/* JSON Lines: each outermost object is a line */
};

#define EMIT_DEPTH 16	/* levels of objects and arrays, far more than any renderer uses */

struct emit {
	btrkit_write_fn write;
	void *ctx;
	enum emit_form form;
	int error;
	char *buf;
	size_t len, size;
	unsigned depth;
	bool first[EMIT_DEPTH + 1];	/* nothing yet inside this object or array */
	bool array[EMIT_DEPTH + 1];
};

/* @return 0 or -ENOMEM. */
int emit_init(struct emit *e, enum emit_form form, btrkit_write_fn write, void *ctx);
/* Hands out what is buffered. @return 0 or the first failure. */
int emit_flush(struct emit *e);
/* Flushes and frees. @return 0 or the first failure. */
int emit_finish(struct emit *e);
/* Frees, and drops what is buffered: the beginning of a list looks like all of it. */
void emit_abandon(struct emit *e);

static inline int emit_failed(const struct emit *e)
{
	return e->error;
}

/* What the inline functions do when the buffer is full, or may be. */
char *emit_room_flush(struct emit *e, size_t n);
void emit_bytes_flush(struct emit *e, const void *data, size_t len);

/* Room for @n more bytes (n at most 4096); NULL after a failure. Follow with emit_took(). */
static inline char *emit_room(struct emit *e, size_t n)
{
	return e->size - e->len >= n && !e->error ? e->buf + e->len : emit_room_flush(e, n);
}

static inline void emit_took(struct emit *e, size_t n)
{
	e->len += n;
}

/* Bytes as they are. Inline, since most are a few whose number the compiler knows. */
static inline void emit_bytes(struct emit *e, const void *data, size_t len)
{
	if (e->size - e->len > len) {
		memcpy(e->buf + e->len, data, len);
		e->len += len;
	} else {
		emit_bytes_flush(e, data, len);
	}
}

static inline void emit_text(struct emit *e, const char *words)
{
	if (e->form == EMIT_TEXT)
		emit_bytes(e, words, strlen(words));
}

/* printf for the text form only: for rare lines, since it is slow. */
void emit_textf(struct emit *e, const char *fmt, ...) BTRKIT_PRINTF(2, 3);

/* A number alone, in either form. */
void emit_decimal(struct emit *e, uint64_t v);
void emit_u64_json(struct emit *e, const char *key, uint64_t v);

/* Fields: @key for JSON, @words before the value in text. */
static inline void emit_u64(struct emit *e, const char *key, const char *words, uint64_t v)
{
	if (e->form == EMIT_TEXT) {
		emit_bytes(e, words, strlen(words));
		emit_decimal(e, v);
	} else {
		emit_u64_json(e, key, v);
	}
}

/* Right-aligned in at least @width columns (at most 32) of text. */
void emit_u64_wide(struct emit *e, const char *key, const char *words, uint64_t v, unsigned width);
void emit_s64(struct emit *e, const char *key, const char *words, int64_t v);
/* Hexadecimal in text with "0x" before it (lower case, no padding); a decimal number in JSON. */
void emit_x64(struct emit *e, const char *key, const char *words, uint64_t v);
/* Octal in text, no prefix; a decimal number in JSON. */
void emit_oct(struct emit *e, const char *key, const char *words, uint64_t v);
/* 8-4-4-4-12 lower-case form of 16 bytes. */
void emit_uuid(struct emit *e, const char *key, const char *words, const uint8_t uuid[16]);
/* Two lower-case hex digits a byte. */
void emit_hex(struct emit *e, const char *key, const char *words, const uint8_t *data, size_t len);
/* A string of the program itself (a name from a table): printed as it is. */
void emit_str(struct emit *e, const char *key, const char *words, const char *s);
/*
 * Bytes from the disk that may be no UTF-8: as they are in text. JSON escapes what a JSON string must, and writes each
 * byte that is not part of valid UTF-8 as \udc80..\udcff (as Python's surrogateescape), from which it can be recovered.
 */
void emit_name(struct emit *e, const char *key, const char *words, const void *s, size_t len);
/*
 * The same, escaped in text as in C: bytes below 0x20, from 0x7f up (octal), the backslash, and with @space the space.
 */
void emit_name_escaped(struct emit *e, const char *key, const char *words, const void *s, size_t len, bool space);
void emit_bool(struct emit *e, const char *key, bool v);	/* JSON only */

/* The first line of JSON Lines; nothing in text. */
void emit_header(struct emit *e, const char *command);

/* Structure: JSON only. An outermost object ends its line. @key is NULL inside arrays and outermost. */
void emit_object(struct emit *e, const char *key);
void emit_object_end(struct emit *e);
void emit_array(struct emit *e, const char *key);
void emit_array_end(struct emit *e);

#endif
