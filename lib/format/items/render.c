// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/render.h"

#include <time.h>

void render_damage(struct emit *e, const char *field)
{
	emit_str(e, "damaged", "\t\t(item is damaged: ", field);
	emit_text(e, ")\n");
}

static char *put_two(char *to, int v)
{
	to[0] = (char)('0' + v / 10);
	to[1] = (char)('0' + v % 10);
	return to + 2;
}

/* Like strftime() with "%Y-%m-%d %H:%M:%S", which would take longer than the rest of an inode item. */
static size_t put_time(char *to, const struct tm *tm)
{
	const int year = tm->tm_year + 1900;
	char *at = to;

	at = put_two(at, year / 100);
	at = put_two(at, year % 100);
	*at++ = '-';
	at = put_two(at, tm->tm_mon + 1);
	*at++ = '-';
	at = put_two(at, tm->tm_mday);
	*at++ = ' ';
	at = put_two(at, tm->tm_hour);
	*at++ = ':';
	at = put_two(at, tm->tm_min);
	*at++ = ':';
	at = put_two(at, tm->tm_sec);
	return (size_t)(at - to);
}

void render_local_time(struct emit *e, uint64_t sec)
{
	const time_t time = (time_t)sec;
	struct tm tm;
	char *to;

	if (e->form != EMIT_TEXT)
		return;
	to = emit_room(e, 128);
	if (!to)
		return;
	if (!localtime_r(&time, &tm))
		emit_text(e, "out of range");
	else if (tm.tm_year >= 1000 - 1900 && tm.tm_year <= 9999 - 1900)
		emit_took(e, put_time(to, &tm));
	else
		emit_took(e, strftime(to, 128, "%Y-%m-%d %H:%M:%S", &tm));
}

void render_time(struct emit *e, const char *name, const char *words, const struct disk_time *t)
{
	const uint64_t sec = le64_get(t->sec);

	if (e->form == EMIT_JSON) {
		emit_object(e, name);
		emit_s64(e, "sec", "", (int64_t)sec);
		emit_u64(e, "nsec", "", le32_get(t->nsec));
		emit_object_end(e);
		return;
	}
	emit_u64(e, "", words, sec);
	emit_u64(e, "", ".", le32_get(t->nsec));
	emit_text(e, " (");
	render_local_time(e, sec);
	emit_text(e, ")\n");
}

void render_data(struct emit *e, const char *name, const uint8_t *data, size_t len, unsigned flags)
{
	if (e->form != EMIT_JSON)
		return;
	if (flags & RENDER_HIDE_NAMES)
		emit_str(e, name, "", "HIDDEN");
	else
		emit_hex(e, name, "", data, len);
}

void render_unknown(struct emit *e, const char *words, const struct item *item, unsigned flags)
{
	if (e->form == EMIT_TEXT) {
		emit_u64(e, "", words, item->key.objectid);
		emit_text(e, "\n");
	}
	if (item->size)
		render_data(e, "data", item->data, item->size, flags);
}

void render_name(struct emit *e, const char *name, const char *words, const uint8_t *s, size_t len, unsigned flags)
{
	if (flags & RENDER_HIDE_NAMES)
		emit_str(e, name, words, "HIDDEN");
	else
		emit_name_escaped(e, name, words, s, e->form == EMIT_TEXT && len > NAME_LEN_MAX ? NAME_LEN_MAX : len,
				  true);
}
