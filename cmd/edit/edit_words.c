// SPDX-License-Identifier: LGPL-2.1-or-later
/* Splits lines into words. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"

/* The rest of a line, and where the next byte of a word is stored, never past what was read. */
struct line {
	const char *at, *end;
	char *to;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Parses up to @max digits. @return how many there are */
static unsigned take_digits(struct line *l, bool hex, unsigned max, unsigned *ret)
{
	unsigned n = 0;

	for (*ret = 0; n < max && l->at < l->end; n++, l->at++) {
		const char c = *l->at;

		if (hex ? !isxdigit((unsigned char)c) : !is_octal(c))
			break;
		*ret = hex ? 16 * *ret + (unsigned)(isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10) :
			     8 * *ret + (unsigned)(c - '0');
	}
	return n;
}

static int take_byte(struct line *l, struct btrkit_error *err)
{
	unsigned value, digits;

	if (*l->at == 'x') {
		l->at++;
		digits = take_digits(l, true, 2, &value);
		if (digits < 2)
			return edit_fail(err, EINVAL, "\\x needs two hexadecimal digits");
	} else {
		digits = take_digits(l, false, 3, &value);
		if (digits < 3 || value > 255)
			return edit_fail(err, EINVAL, "invalid octal escape: expected three digits up to 377");
	}
	if (!value)
		return edit_fail(err, EINVAL, "zero bytes are not allowed");
	*l->to++ = (char)value;
	return 0;
}

/* @l is after the backslash. */
static int take_escape(struct line *l, struct btrkit_error *err)
{
	if (l->at == l->end)
		return edit_fail(err, EINVAL, "nothing follows a backslash");
	switch (*l->at) {
	case 'n':
		*l->to++ = '\n';
		break;
	case 't':
		*l->to++ = '\t';
		break;
	case '\\':
	case '"':
	case '\'':
	case ' ':
	case '\t':
	case '#':
		*l->to++ = *l->at;
		break;
	default:
		if (*l->at == 'x' || isdigit((unsigned char)*l->at))
			return take_byte(l, err);
		return edit_fail(err, EINVAL, "unknown escape");
	}
	l->at++;
	return 0;
}

/* @l is at the quote. */
static int take_quoted(struct line *l, struct btrkit_error *err)
{
	const char quote = *l->at++;
	int ret = 0;

	while (!ret && l->at < l->end && *l->at != quote) {
		if (quote == '"' && *l->at == '\\') {
			l->at++;
			ret = take_escape(l, err);
		} else {
			*l->to++ = *l->at++;
		}
	}
	if (!ret && l->at == l->end)
		return edit_fail(err, EINVAL, "unterminated quote");
	l->at++;
	return ret;
}

static int take_word(struct line *l, struct btrkit_error *err)
{
	int ret = 0;

	while (!ret && l->at < l->end && !is_blank(*l->at)) {
		if (*l->at == '\'' || *l->at == '"') {
			ret = take_quoted(l, err);
		} else if (*l->at == '\\') {
			l->at++;
			ret = take_escape(l, err);
		} else {
			*l->to++ = *l->at++;
		}
	}
	return ret;
}

static int add_word(struct edit_words *words, char *word, struct btrkit_error *err)
{
	if (words->n == words->room) {
		const size_t room = words->room ? 2 * words->room : 16;
		char **more = realloc(words->word, room * sizeof(*more));

		if (!more)
			return edit_fail(err, ENOMEM, "words");
		words->word = more;
		words->room = room;
	}
	words->word[words->n++] = word;
	return 0;
}

int edit_split(char *line, size_t len, struct edit_words *ret, struct btrkit_error *err)
{
	struct line l = { .at = line, .to = line };
	int r = 0;

	ret->n = 0;
	if (len && line[len - 1] == '\n')
		len--;
	l.end = line + len;
	if (memchr(line, '\0', len))
		return edit_fail(err, EINVAL, "zero bytes are not allowed");
	while (!r) {
		char *word;

		while (l.at < l.end && is_blank(*l.at))
			l.at++;
		if (l.at == l.end || *l.at == '#')
			return 0;
		word = l.to;
		r = take_word(&l, err);
		if (r)
			break;
		/* Overwrites the separator, or the newline or zero that getline() has stored after the line. */
		if (l.at < l.end)
			l.at++;
		*l.to++ = '\0';
		r = add_word(ret, word, err);
	}
	return r;
}

static int no_number(const char *s, struct btrkit_error *err)
{
	char what[128];

	snprintf(what, sizeof(what), "'%.80s' is not a valid number", s);
	return edit_fail(err, EINVAL, what);
}

int edit_number(const char *s, uint64_t *ret, struct btrkit_error *err)
{
	static const char letters[] = "bkmgtpe";
	const char *at;
	unsigned shift = 0;
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, 0);
	if (!isdigit((unsigned char)*s) || errno)
		return no_number(s, err);
	at = *end ? strchr(letters, tolower((unsigned char)*end)) : NULL;
	if (at) {
		shift = 10 * (unsigned)(at - letters);
		end++;
	}
	if (*end || (shift && *ret > UINT64_MAX >> shift))
		return no_number(s, err);
	*ret <<= shift;
	return 0;
}
