/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_RENDER_H
#define BTRKIT_FORMAT_ITEMS_RENDER_H

/* Common functions of the renderers. */

#include "lib/base/emit.h"
#include "lib/format/item.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/key_names.h"

/*
 * Prints the last line for an item that is too short for the contents of @field (of the disk struct, or "item_size").
 */
void render_damage(struct emit *e, const char *field);

/* The struct at the start of the item. If the item is too short, report the damage and return NULL. */
static inline const void *render_struct(struct emit *e, const struct item *item, size_t size)
{
	if (item->size >= size)
		return item->data;
	render_damage(e, "item_size");
	return NULL;
}

/* Prints WORDS SECONDS.NANOSECONDS (LOCAL TIME) and a newline. */
void render_time(struct emit *e, const char *name, const char *words, const struct disk_time *t);

/* Prints the part in parentheses: the local time @sec, text only. */
void render_local_time(struct emit *e, uint64_t sec);

/* Prints a name, value or other user data, or "HIDDEN" with RENDER_HIDE_NAMES. */
void render_name(struct emit *e, const char *name, const char *words, const uint8_t *s, size_t len, unsigned flags);

/* Prints a number as signed in text, and as unsigned in JSON. */
static inline void render_signed(struct emit *e, const char *name, const char *words, uint64_t v)
{
	if (e->form == EMIT_JSON)
		emit_u64(e, name, words, v);
	else
		emit_s64(e, name, words, (int64_t)v);
}

/* Prints data that is omitted from text: in JSON two digits per byte, or "HIDDEN" with RENDER_HIDE_NAMES. */
void render_data(struct emit *e, const char *name, const uint8_t *data, size_t len, unsigned flags);

/* Prints an item with a known type and an unknown objectid: one line in text, its data in JSON. */
void render_unknown(struct emit *e, const char *words, const struct item *item, unsigned flags);

/* Length of the string up to the first null byte, where dump-tree stops. In JSON, the whole length. */
static inline size_t render_text_length(const struct emit *e, const uint8_t *s, size_t len)
{
	const uint8_t *nul = e->form == EMIT_TEXT && len ? memchr(s, 0, len) : NULL;

	return nul ? (size_t)(nul - s) : len;
}

#endif
