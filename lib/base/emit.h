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

/* Members that JSON keeps of an object, by name: a list. One without children is kept whole. */
struct emit_filter {
	const char *name;
	const struct emit_filter *children, *next;
};

/* An object or array that is open. */
struct emit_level {
	bool filled;		/* something was written in it */
	bool array;
	/* With a filter only: */
	bool begun;		/* its bracket was written; that waits for the first member that is kept */
	const char *key;
	const struct emit_filter *keep;	/* NULL: everything */
};

struct emit {
	btrkit_write_fn write;
	void *ctx;
	enum emit_form form;
	int error;
	char *buf;
	size_t len, size;
	unsigned depth;
	struct emit_level levels[EMIT_DEPTH + 1];
	const struct emit_filter *filter;	/* NULL: everything; see emit_keep() */
	unsigned skipped;	/* levels that are open inside what the filter leaves out */
};

/* Without @write all is kept in e->buf, e->len bytes of it, until emit_abandon(). @return 0 or -ENOMEM. */
int emit_init(struct emit *e, enum emit_form form, btrkit_write_fn write, void *ctx);
/* Hands out what is buffered; what is kept in memory gets more room. @return 0 or the first failure. */
int emit_flush(struct emit *e);
/* Flushes and frees. @return 0 or the first failure. */
int emit_finish(struct emit *e);
/* Frees, and drops what is buffered: the beginning of a list looks like all of it. */
void emit_abandon(struct emit *e);

/*
 * From now on outermost objects of JSON have only the members of @filter, which has to outlive @e, and those of which
 * nothing is left are no lines. Text is as it was.
 */
static inline void emit_keep(struct emit *e, const struct emit_filter *filter)
{
	e->filter = filter;
}

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
void emit_u64_json(struct emit *e, const char *key, size_t len, uint64_t v);

/* The digits of @v go to @to, which lies behind what is buffered and has room for them. */
void emit_decimal_at(struct emit *e, char *to, uint64_t v);

#define EMIT_MEMBER_ROOM 128	/* bytes that a member with a short key and a number cannot fill */

/* Whether a member with a key of @len bytes can be put into the buffer as it is. */
static inline bool emit_is_simple(const struct emit *e, size_t len)
{
	return !e->filter && len < EMIT_MEMBER_ROOM / 2 && e->size - e->len > EMIT_MEMBER_ROOM;
}

/* The comma and the key, where there is room. @return what is behind. The compiler knows the length of most keys. */
static inline char *emit_put_key(struct emit *e, char *to, const char *key, size_t len)
{
	struct emit_level *level = &e->levels[e->depth];

	*to = ',';
	to += level->filled;
	level->filled = true;
	*to++ = '"';
	memcpy(to, key, len);
	to += len;
	memcpy(to, "\":", 2);
	return to + 2;
}

/* Fields: @key for JSON, @words before the value in text. */
static inline void emit_u64(struct emit *e, const char *key, const char *words, uint64_t v)
{
	if (e->form == EMIT_TEXT) {
		emit_bytes(e, words, strlen(words));
		emit_decimal(e, v);
	} else if (key && emit_is_simple(e, strlen(key))) {
		emit_decimal_at(e, emit_put_key(e, e->buf + e->len, key, strlen(key)), v);
	} else {
		emit_u64_json(e, key, key ? strlen(key) : 0, v);
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
/* A string of the program itself: printed as it is. */
void emit_str(struct emit *e, const char *key, const char *words, const char *s);
/* The same of a word that JSON need not escape; text has nothing of it. */
void emit_word(struct emit *e, const char *key, const char *s);
/* Members of JSON that are put together already, without a comma before them; not with a filter. */
void emit_members(struct emit *e, const char *text, size_t len);
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
