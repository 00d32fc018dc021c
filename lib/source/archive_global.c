// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Global headers of pax archives, which hold for all members behind them. libarchive skips them, so the bytes of the
 * headers are looked at once more. A header of the member itself (type x) comes first; behind it the last global one.
 */
#include "lib/source/archive.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

#define TAR_BLOCK 512u
#define TAR_SIZE_AT 124u
#define TAR_SIZE_LEN 12u
#define TAR_TYPE_AT 156u
#define SHOWN_MAX 40u

/* A record of a header: LENGTH KEYWORD=VALUE. */
struct record {
	const char *word, *value;
	size_t word_len, value_len;
};

static const char *const honoured[ARCHIVE_GLOBALS] = { "uid", "gid", "mtime", "atime", "ctime" };

/* Takes the next record. @return false: invalid */
static bool next_record(const char **at, size_t *left, struct record *ret)
{
	size_t len = 0, digits = 0;
	const char *equals;

	for (; digits < *left && (*at)[digits] >= '0' && (*at)[digits] <= '9' && len <= *left; digits++)
		len = 10 * len + (size_t)((*at)[digits] - '0');
	if (digits == *left || (*at)[digits] != ' ' || len <= digits + 1 || len > *left || (*at)[len - 1] != '\n')
		return false;
	ret->word = *at + digits + 1;
	equals = memchr(ret->word, '=', len - digits - 2);
	if (!equals || equals == ret->word)
		return false;
	ret->word_len = (size_t)(equals - ret->word);
	ret->value = equals + 1;
	ret->value_len = len - digits - 2 - ret->word_len - 1;
	*at += len;
	*left -= len;
	return true;
}

/* Returns which of the words that are honoured it is; ARCHIVE_GLOBALS: none. */
static unsigned word_of(const struct record *r)
{
	unsigned i = 0;

	while (i < ARCHIVE_GLOBALS &&
	       (strlen(honoured[i]) != r->word_len || memcmp(honoured[i], r->word, r->word_len) != 0))
		i++;
	return i;
}

/* Whether the word only informs. Names of owners are not used, since their numbers are. */
static bool informs(const struct record *r)
{
	static const char *const words[] = { "comment", "charset", "hdrcharset", "uname", "gname", "SCHILY.archtype",
					     "SCHILY.release", "GNU.volume.label", "LIBARCHIVE.creationtime" };
	static const char volume[] = "SCHILY.volhdr.";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == r->word_len && !memcmp(words[i], r->word, r->word_len))
			return true;
	return r->word_len >= sizeof(volume) && !memcmp(r->word, volume, sizeof(volume) - 1);
}

/* Reads digits with an optional sign and, for a time, a fraction. Before 1970, -1.75 is second -2 and 0.25 more. */
static bool parse(const struct record *r, bool time, struct archive_global *ret)
{
	const bool negative = r->value_len && *r->value == '-';
	const char *at = r->value + negative, *end = r->value + r->value_len;
	int64_t sec = 0;
	uint32_t nsec = 0, scale = 100000000;

	if (at == end || *at < '0' || *at > '9')
		return false;
	for (; at < end && *at >= '0' && *at <= '9' && sec < INT64_MAX / 10 - 9; at++)
		sec = 10 * sec + (*at - '0');
	if (time && at < end && *at == '.')
		for (at++; at < end && *at >= '0' && *at <= '9'; at++, scale /= 10)
			nsec += (uint32_t)(*at - '0') * scale;
	ret->set = true;
	ret->sec = negative ? -sec - (nsec != 0) : sec;
	ret->nsec = negative && nsec ? 1000000000 - nsec : nsec;
	return at == end;
}

static int fails(const struct archive_stream *t, const struct record *r, const char *says, struct btrkit_error *err)
{
	char word[SHOWN_MAX + 1];

	source_escape(r->word, r->word_len < SHOWN_MAX ? r->word_len : SHOWN_MAX, word, sizeof(word));
	return err_set(err, BTRKIT_UNSUPPORTED, "%s: global header with %s %s", t->name, word, says);
}

static int take_global(struct archive_stream *t, const char *at, size_t left, struct btrkit_error *err)
{
	while (left) {
		struct record r;
		unsigned word;

		if (!next_record(&at, &left, &r))
			return err_corrupt(err, NULL, "%s: broken archive: global header with an invalid record",
					   t->name);
		word = word_of(&r);
		if (word == ARCHIVE_GLOBALS && !informs(&r))
			return fails(t, &r, "is not supported", err);
		if (word == ARCHIVE_GLOBALS)
			continue;
		t->globals[word] = (struct archive_global){ 0 };
		/* Without a value, what an earlier one says no longer holds. */
		if (r.value_len && !parse(&r, word >= ARCHIVE_GLOBAL_MTIME, &t->globals[word]))
			return fails(t, &r, "has an invalid value", err);
	}
	return 0;
}

/* Notes which words the member's own header has. What is invalid there, libarchive reports. */
static void note_own(const char *at, size_t left, bool own[ARCHIVE_GLOBALS])
{
	struct record r;

	while (left && next_record(&at, &left, &r))
		if (word_of(&r) < ARCHIVE_GLOBALS)
			own[word_of(&r)] = true;
}

static void apply(const struct archive_stream *t, const bool own[ARCHIVE_GLOBALS], struct archive_entry *e)
{
	for (unsigned i = 0; i < ARCHIVE_GLOBALS; i++) {
		const struct archive_global *g = &t->globals[i];

		if (!g->set || own[i])
			continue;
		if (i == ARCHIVE_GLOBAL_UID)
			archive_entry_set_uid(e, g->sec);
		else if (i == ARCHIVE_GLOBAL_GID)
			archive_entry_set_gid(e, g->sec);
		else if (i == ARCHIVE_GLOBAL_MTIME)
			archive_entry_set_mtime(e, g->sec, (long)g->nsec);
		else if (i == ARCHIVE_GLOBAL_ATIME)
			archive_entry_set_atime(e, g->sec, (long)g->nsec);
		else
			archive_entry_set_ctime(e, g->sec, (long)g->nsec);
	}
}

/* Returns the size in a header. It is valid, since libarchive has read past it. */
static uint64_t size_in(const char *header)
{
	const char *at = header + TAR_SIZE_AT;
	uint64_t size = 0;

	if (*at & 0x80)
		return UINT64_MAX;
	for (unsigned i = 0; i < TAR_SIZE_LEN && size < UINT32_MAX; i++)
		if (at[i] >= '0' && at[i] <= '7')
			size = 8 * size + (uint64_t)(at[i] - '0');
		else if (size || at[i] != ' ')
			break;
	return size;
}

int archive_globals_apply(struct archive_stream *t, const char *headers, size_t len, struct archive_entry *e,
			  struct btrkit_error *err)
{
	/* Headers that precede that of the member: of pax, of Sun, long names of GNU, ACLs, and labels of volumes. */
	static const char types[] = "gxXLKAV";
	bool own[ARCHIVE_GLOBALS] = { false };

	while (len >= TAR_BLOCK && headers[TAR_TYPE_AT] && strchr(types, headers[TAR_TYPE_AT])) {
		const uint64_t size = size_in(headers);
		const size_t whole = TAR_BLOCK + ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		int ret = 0;

		if (size > len - TAR_BLOCK)
			return err_corrupt(err, NULL, "%s: broken archive: header of %zu bytes", t->name, len);
		if (headers[TAR_TYPE_AT] == 'g')
			ret = take_global(t, headers + TAR_BLOCK, (size_t)size, err);
		else if (headers[TAR_TYPE_AT] == 'x' || headers[TAR_TYPE_AT] == 'X')
			note_own(headers + TAR_BLOCK, (size_t)size, own);
		if (ret)
			return ret;
		headers += whole < len ? whole : len;
		len -= whole < len ? whole : len;
	}
	apply(t, own, e);
	return 0;
}

#endif
