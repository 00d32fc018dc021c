/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EMIT_H
#define BTRKIT_BASE_EMIT_H

/*
 * The sink that renderers write to. A renderer emits each value once, with a key (its name in JSON) and the words that
 * precede it in text. Text output consists of the words and values; JSON output consists of the keys and values. Both
 * go through one buffer to a btrkit_write_fn.
 *
 * The first failure of the write function is sticky: later calls do nothing, and emit_finish() returns the error, so
 * renderers need not check each call. emit_failed() allows long loops to stop early.
 */

#include <string.h>

#include <btrkit/types.h>

enum emit_form {
	EMIT_TEXT,
	EMIT_JSON,	/* JSON Lines: each outermost object is a line */
};

#define EMIT_DEPTH 16	/* maximum nesting of objects and arrays, far more than any renderer uses */

/* List of the members of an object to keep in JSON output. A member without children is kept as a whole. */
struct emit_filter {
	const char *name;
	const struct emit_filter *children, *next;
};

/* An open object or array. */
struct emit_level {
	bool filled;		/* it has a member already */
	bool array;
	/* Used with a filter only: */
	bool begun;		/* the opening bracket was written, which is delayed until the first kept member */
	const char *key;
	const struct emit_filter *keep;	/* NULL: keep everything */
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
	const struct emit_filter *filter;	/* NULL: keep everything; see emit_keep() */
	unsigned skipped;	/* number of open levels inside a dropped object or array */
};

/* If @write is NULL, all output is kept in e->buf (e->len bytes) until emit_abandon(). @return 0 or -ENOMEM */
int emit_init(struct emit *e, enum emit_form form, btrkit_write_fn write, void *ctx);
/* Writes out the buffer, or enlarge it if output is kept in memory. @return 0 or the first failure */
int emit_flush(struct emit *e);
/* Flushes, and free the buffer. @return 0 or the first failure */
int emit_finish(struct emit *e);
/* Frees the buffer without flushing, because a truncated list cannot be distinguished from a complete one. */
void emit_abandon(struct emit *e);

/*
 * From now on, keep only the members in @filter of outermost JSON objects; objects without any kept member are dropped.
 * Text output is not affected. @filter must outlive @e.
 */
static inline void emit_keep(struct emit *e, const struct emit_filter *filter)
{
	e->filter = filter;
}

static inline int emit_failed(const struct emit *e)
{
	return e->error;
}

/* Slow paths of the inline functions below, if the buffer is or may be full. */
char *emit_room_flush(struct emit *e, size_t n);
void emit_bytes_flush(struct emit *e, const void *data, size_t len);

/* Returns room for @n more bytes (at most 4096), or NULL after a failure. Call emit_took() after writing there. */
static inline char *emit_room(struct emit *e, size_t n)
{
	return e->size - e->len >= n && !e->error ? e->buf + e->len : emit_room_flush(e, n);
}

static inline void emit_took(struct emit *e, size_t n)
{
	e->len += n;
}

/* Writes bytes unchanged. Inline because most calls have a short length known at compile time. */
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

/* printf for text output only. It is slow, so use it for rare lines only. */
void emit_textf(struct emit *e, const char *fmt, ...) BTRKIT_PRINTF(2, 3);

/* Writes a number without key and words, in either format. */
void emit_decimal(struct emit *e, uint64_t v);

/* In emit_json.c: */
void emit_u64_json(struct emit *e, const char *key, size_t len, uint64_t v);

/* Writes the digits of @v to @to, which points past the buffered bytes and has room for them. */
void emit_decimal_at(struct emit *e, char *to, uint64_t v);

#define EMIT_MEMBER_ROOM 128	/* more than the bytes of a member with a short key and a number */

/* Whether a member with a key of @len bytes can be written directly to the buffer. */
static inline bool emit_is_simple(const struct emit *e, size_t len)
{
	return !e->filter && len < EMIT_MEMBER_ROOM / 2 && e->size - e->len > EMIT_MEMBER_ROOM;
}

/*
 * Writes comma and key; there must be room. Inline because most keys have a length known at compile time. @return
 * pointer past the key
 */
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

/* Fields: @key is used in JSON, @words precede the value in text. */
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

/* In emit.c: */
/* Right-aligned in text, in @width columns (at most 32) or more. */
void emit_u64_wide(struct emit *e, const char *key, const char *words, uint64_t v, unsigned width);
void emit_s64(struct emit *e, const char *key, const char *words, int64_t v);
/* Hexadecimal with "0x" in text (lower case, no padding); decimal in JSON. */
void emit_x64(struct emit *e, const char *key, const char *words, uint64_t v);
/* Octal without prefix in text; decimal in JSON. */
void emit_oct(struct emit *e, const char *key, const char *words, uint64_t v);
/* A UUID in lower case, as 8-4-4-4-12 digits. */
void emit_uuid(struct emit *e, const char *key, const char *words, const uint8_t uuid[16]);
/* Two lower-case hex digits per byte. */
void emit_hex(struct emit *e, const char *key, const char *words, const uint8_t *data, size_t len);
/* A string of the program itself: printed unchanged in text. */
void emit_str(struct emit *e, const char *key, const char *words, const char *s);

/* In emit_json.c: */
/* A word that needs no escaping in JSON; omitted from text. */
void emit_word(struct emit *e, const char *key, const char *s);
/* Writes complete JSON members, without a leading comma. Not allowed with a filter. */
void emit_members(struct emit *e, const char *text, size_t len);

/* In emit.c: */
/*
 * Bytes from the disk, which may be invalid UTF-8. Text has them unchanged. JSON has the required escapes, and each
 * byte that is not part of valid UTF-8 is written as \udc80..\udcff (like Python's surrogateescape), so that it can be
 * recovered.
 */
void emit_name(struct emit *e, const char *key, const char *words, const void *s, size_t len);
/*
 * Like emit_name(), but text is escaped as in C: bytes below 0x20 and from 0x7f on (octal), backslashes, and also
 * spaces if @space is set.
 */
void emit_name_escaped(struct emit *e, const char *key, const char *words, const void *s, size_t len, bool space);

/* In emit_json.c: */
void emit_bool(struct emit *e, const char *key, bool v);	/* JSON only */

/* Writes the first line of JSON Lines. Nothing is written in text. */
void emit_header(struct emit *e, const char *command);

/*
 * Structure, JSON only. The end of an outermost object ends the line. @key is NULL inside arrays and for outermost
 * objects.
 */
void emit_object(struct emit *e, const char *key);
void emit_object_end(struct emit *e);
void emit_array(struct emit *e, const char *key);
void emit_array_end(struct emit *e);

#endif
