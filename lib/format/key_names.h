/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_KEY_NAMES_H
#define BTRKIT_FORMAT_KEY_NAMES_H

/*
 * Keys, objectids and flags in the words of dump-tree. In JSON they are numbers, and keys have their type's name too.
 */

#include "lib/base/emit.h"
#include "lib/format/disk.h"
#include "lib/format/ids.h"

/* What a key of this type is called: "UNTYPED" for the v1 cache's headers, NULL for an unknown type. */
const char *key_type_name(uint64_t objectid, uint8_t type);

/* The same as a member "type_name"; of an unknown type "UNKNOWN." and its number. */
void key_type_emit(struct emit *e, const char *words, uint64_t objectid, uint8_t type);

/* What a fixed objectid is called, in any case, back to its number. @return 0; -ENOENT */
int objectid_by_name(const char *name, uint64_t *ret);

/* "key (OBJECTID TYPE OFFSET)" */
void key_emit(struct emit *e, const char *name, const char *words, const struct btrkit_key *key);

/* An objectid by its name, if it has one in keys of @type. Type 0 is for roots and owners outside of keys. */
void objectid_emit(struct emit *e, const char *name, const char *words, uint64_t objectid, uint8_t type);

/* The line of an item in a leaf, in JSON its members "slot", "key", "offset" and "size". */
void item_line_emit(struct emit *e, uint32_t slot, const struct btrkit_key *key, uint32_t offset, uint32_t size);

/* The word that stands before " tree key (...)": "extent", "fs", ...; "file" for subvolumes. */
const char *tree_title(uint64_t objectid);

/* Type and profile of a chunk or block group: "DATA|single". */
void bg_flags_emit(struct emit *e, const char *name, const char *words, uint64_t flags);

/* The same in an array of words, for JSON only. */
void bg_flags_names_emit(struct emit *e, const char *name, uint64_t flags);

/* A bit and what it is called; a table of them ends with bit 0. */
struct flag_name {
	uint64_t bit;
	const char *name;
};

/* The names of the bits that are set, with "|" between. @return the bits that have no name */
uint64_t flags_text(struct emit *e, const struct flag_name *names, uint64_t flags);

/* An array of the names of the bits that are set, for JSON only. */
void flags_names_emit(struct emit *e, const char *name, const struct flag_name *names, uint64_t flags);

#endif
