/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_RENDER_H
#define BTRKIT_FORMAT_ITEMS_RENDER_H

/* What several of the render functions share. */

#include "lib/base/emit.h"
#include "lib/format/item.h"
#include "lib/format/items/inode.h"
#include "lib/format/key_names.h"

/* The last line of an item whose bytes end before what @field (of the disk struct, or "item_size") announces. */
void render_damage(struct emit *e, const char *field);

/* The struct that an item begins with; NULL, and the line about the damage, when the item is too short for it. */
static inline const void *render_struct(struct emit *e, const struct item *item, size_t size)
{
	if (item->size >= size)
		return item->data;
	render_damage(e, "item_size");
	return NULL;
}

/* WORDS SECONDS.NANOSECONDS (LOCAL TIME), and a newline. */
void render_time(struct emit *e, const char *name, const char *words, const struct disk_time *t);

/* The part in parentheses, without them: the local time of a number of seconds, for the text form only. */
void render_local_time(struct emit *e, uint64_t sec);

/* A name, value or other bytes of a user; "HIDDEN" if that is what @flags ask for. */
void render_name(struct emit *e, const char *name, const char *words, const uint8_t *s, size_t len, unsigned flags);

/* A number that is negative in text where its highest bit is set; in JSON all of them are as on disk. */
static inline void render_signed(struct emit *e, const char *name, const char *words, uint64_t v)
{
	if (e->form == EMIT_JSON)
		emit_u64(e, name, words, v);
	else
		emit_s64(e, name, words, (int64_t)v);
}

/* Bytes that text does not show: two digits a byte in JSON, "HIDDEN" if that is what @flags ask for. */
void render_data(struct emit *e, const char *name, const uint8_t *data, size_t len, unsigned flags);

/* An item of a known type and an unknown objectid: a line in text, its bytes in JSON. */
void render_unknown(struct emit *e, const char *words, const struct item *item, unsigned flags);

/* As much of a string as dump-tree prints: to the first NUL. All of it in JSON. */
static inline size_t render_text_length(const struct emit *e, const uint8_t *s, size_t len)
{
	const uint8_t *nul = e->form == EMIT_TEXT && len ? memchr(s, 0, len) : NULL;

	return nul ? (size_t)(nul - s) : len;
}

#endif
