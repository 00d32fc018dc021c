// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parses keys and types as written by users. */
#include <btrkit/dump.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "lib/format/item.h"
#include "lib/format/key_names.h"

#define WORD_MAX 40

/* The parts of a key. */
struct words {
	char at[3][WORD_MAX];
	unsigned n;
};

static bool is_gap(char c)
{
	return c == ' ' || c == '\t' || c == '(' || c == ')';
}

/* Splits OBJECTID,TYPE,OFFSET between @s and @end. Missing parts become empty strings. */
static int split(const char *s, const char *end, struct words *w)
{
	*w = (struct words){ 0 };
	while (s < end && is_gap(*s))
		s++;
	while (end > s && is_gap(end[-1]))
		end--;
	while (s < end) {
		size_t len = 0;

		if (w->n == 3)
			return -EINVAL;
		while (s + len < end && s[len] != ',' && !is_gap(s[len]))
			len++;
		if (len >= WORD_MAX)
			return -EINVAL;
		memcpy(w->at[w->n++], s, len);
		s += len;
		while (s < end && is_gap(*s))
			s++;
		s += s < end && *s == ',';
		while (s < end && is_gap(*s))
			s++;
	}
	return 0;
}

static int parse_number(const char *s, uint64_t *ret)
{
	const bool minus = *s == '-';
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)s[minus]))
		return -EINVAL;
	errno = 0;
	v = strtoull(s + minus, &end, 0);
	if (errno || *end)
		return -EINVAL;
	*ret = minus ? 0 - (uint64_t)v : (uint64_t)v;
	return 0;
}

const char *btrkit_item_type_name(uint64_t objectid, uint8_t type)
{
	return key_type_name(objectid, type);
}

int btrkit_item_type_parse(const char *name, uint8_t *ret)
{
	size_t n;
	const struct item_type *const *types = item_types(&n);
	uint64_t number;

	if (!strncasecmp(name, "UNKNOWN.", 8))
		name += 8;
	if (!parse_number(name, &number)) {
		*ret = (uint8_t)number;
		return number <= UINT8_MAX ? 0 : -ENOENT;
	}
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(name, types[i]->name))
			continue;
		*ret = types[i]->type;
		return 0;
	}
	return -ENOENT;
}

/* Parses word @i of a key; @missing is the value of an empty word. */
static int parse_part(const struct words *w, unsigned i, uint64_t missing, uint64_t *ret)
{
	const char *word = w->at[i];
	uint8_t type;

	if (!*word) {
		*ret = missing;
		return 0;
	}
	if (i == 1) {
		if (btrkit_item_type_parse(word, &type))
			return -EINVAL;
		*ret = type;
		return 0;
	}
	if (!i && !objectid_by_name(word, ret))
		return 0;
	return parse_number(word, ret);
}

static int parse_key(const struct words *w, bool highest, struct btrkit_key *ret)
{
	const uint64_t missing = highest ? UINT64_MAX : 0;
	uint64_t type;

	if (parse_part(w, 0, missing, &ret->objectid) || parse_part(w, 1, highest ? UINT8_MAX : 0, &type) ||
	    parse_part(w, 2, missing, &ret->offset))
		return -EINVAL;
	ret->type = (uint8_t)type;
	return 0;
}

int btrkit_dump_range_parse(const char *text, struct btrkit_dump_range *ret)
{
	const char *dots = strstr(text, ".."), *end = text + strlen(text);
	struct btrkit_dump_range range;
	struct words low, high;

	if (split(text, dots ? dots : end, &low) || split(dots ? dots + 2 : text, end, &high))
		return -EINVAL;
	if (!dots && !low.n)
		return -EINVAL;
	if (parse_key(&low, false, &range.min) || parse_key(&high, true, &range.max) ||
	    key_cmp(&range.min, &range.max) > 0)
		return -EINVAL;
	*ret = range;
	return 0;
}
