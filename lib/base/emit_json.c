// SPDX-License-Identifier: LGPL-2.1-or-later
/* JSON Lines output and its filter. */
#include "lib/base/emit_json.h"

#include <errno.h>

#include "lib/base/digits.h"

/* Writes the comma, and the key if there is one. */
static void write_lead(struct emit *e, struct emit_level *level, const char *key, size_t len)
{
	if (level->filled)
		emit_bytes(e, ",", 1);
	level->filled = true;
	if (!key)
		return;
	emit_bytes(e, "\"", 1);
	emit_bytes(e, key, len);
	emit_bytes(e, "\":", 2);
}

/* Writes the opening brackets that were delayed until the first kept member. */
static void write_brackets(struct emit *e)
{
	for (unsigned i = 1; i <= e->depth; i++) {
		struct emit_level *level = &e->levels[i];

		if (level->begun)
			continue;
		level->begun = true;
		if (i > 1)
			write_lead(e, level - 1, level->key, level->key ? strlen(level->key) : 0);
		emit_bytes(e, level->array ? "[" : "{", 1);
	}
}

/* Whether a value with this key is kept. *below is set to what to keep of its members, NULL for everything. */
static bool is_kept(const struct emit *e, const char *key, const struct emit_filter **below)
{
	const struct emit_filter *keep = e->depth ? e->levels[e->depth].keep : e->filter;

	if (e->skipped)
		return false;
	*below = keep;
	if (!keep || !key || !e->depth)
		return true;
	while (keep && strcmp(keep->name, key))
		keep = keep->next;
	*below = keep ? keep->children : NULL;
	return keep;
}

bool emit_json_lead(struct emit *e, const char *key, size_t len)
{
	const struct emit_filter *below;

	if (e->filter) {
		/* A filter for members of this key does not match a plain value. */
		if (!is_kept(e, key, &below) || below)
			return false;
		write_brackets(e);
	}
	write_lead(e, &e->levels[e->depth], key, len);
	return true;
}

void emit_decimal_at(struct emit *e, char *to, uint64_t v)
{
	e->len = (size_t)(digits_put(to, v) - e->buf);
}

void emit_u64_json(struct emit *e, const char *key, size_t len, uint64_t v)
{
	if (emit_json_lead(e, key, len))
		emit_decimal(e, v);
}

void emit_word(struct emit *e, const char *key, const char *s)
{
	const size_t len = strlen(s), key_len = key ? strlen(key) : 0;
	char *to;

	if (e->form != EMIT_JSON)
		return;
	if (key && emit_is_simple(e, key_len + len)) {
		to = emit_put_key(e, e->buf + e->len, key, key_len);
		*to++ = '"';
		memcpy(to, s, len);
		to[len] = '"';
		e->len = (size_t)(to + len + 1 - e->buf);
	} else if (emit_json_lead(e, key, key_len)) {
		emit_bytes(e, "\"", 1);
		emit_bytes(e, s, len);
		emit_bytes(e, "\"", 1);
	}
}

void emit_members(struct emit *e, const char *text, size_t len)
{
	struct emit_level *level = &e->levels[e->depth];

	if (level->filled)
		emit_bytes(e, ",", 1);
	level->filled = true;
	emit_bytes(e, text, len);
}

void emit_bool(struct emit *e, const char *key, bool v)
{
	if (e->form == EMIT_JSON && emit_json_lead(e, key, key ? strlen(key) : 0))
		emit_bytes(e, v ? "true" : "false", v ? 4 : 5);
}

static void open_level(struct emit *e, const char *key, bool array)
{
	const struct emit_filter *below = NULL;

	if (e->form != EMIT_JSON)
		return;
	if (e->filter && !is_kept(e, key, &below)) {
		e->skipped++;
		return;
	}
	if (e->depth == EMIT_DEPTH) {
		e->error = e->error ? e->error : -EOVERFLOW;
		return;
	}
	if (!e->filter) {
		if (e->depth)
			write_lead(e, &e->levels[e->depth], key, key ? strlen(key) : 0);
		emit_bytes(e, array ? "[" : "{", 1);
	}
	e->depth++;
	e->levels[e->depth] = (struct emit_level){
		.array = array, .begun = !e->filter, .key = key, .keep = below,
	};
	/* An object or array that is kept as a whole is written even if it is empty. */
	if (e->filter && !below)
		write_brackets(e);
}

static void close_level(struct emit *e)
{
	const struct emit_level *level = &e->levels[e->depth];

	if (e->form != EMIT_JSON)
		return;
	if (e->skipped) {
		e->skipped--;
		return;
	}
	if (!e->depth)
		return;
	e->depth--;
	if (!level->begun)
		return;
	emit_bytes(e, level->array ? "]" : "}", 1);
	if (!e->depth)
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

/* Length of the valid UTF-8 sequence at @s, 0 if there is none (overlong forms and surrogates are invalid). */
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

/* Escapes a byte that a JSON string cannot contain. @invalid: the byte is not part of valid UTF-8 */
static void escape(struct emit *e, uint8_t c, bool invalid)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = { '\\', (char)c };

	if (c == '"' || c == '\\') {
		emit_bytes(e, text, 2);
		return;
	}
	text[1] = 'u';
	text[2] = invalid ? 'd' : '0';
	text[3] = invalid ? 'c' : '0';
	text[4] = digits[c >> 4];
	text[5] = digits[c & 15];
	emit_bytes(e, text, sizeof(text));
}

static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void emit_json_string(struct emit *e, const uint8_t *s, size_t len)
{
	emit_bytes(e, "\"", 1);
	for (size_t i = 0, n; i < len && !e->error; i += n) {
		for (n = 0; i + n < len && is_plain(s[i + n]); n++)
			;
		if (!n)
			n = utf8_length(s + i, len - i);
		if (n > 1 || (n && is_plain(s[i]))) {
			emit_bytes(e, s + i, n);
			continue;
		}
		escape(e, s[i], !n);
		n = 1;
	}
	emit_bytes(e, "\"", 1);
}
