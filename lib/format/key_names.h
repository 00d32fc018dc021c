/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_KEY_NAMES_H
#define BTRKIT_FORMAT_KEY_NAMES_H

/*
 * Keys, objectids and flags in the notation of dump-tree. In JSON they are numbers, and keys also have the name of the
 * type.
 */

#include "lib/base/emit.h"
#include "lib/format/disk.h"
#include "lib/format/ids.h"

/* Name of a key type: "UNTYPED" for headers of the v1 cache, NULL for an unknown type. In key_type.c. */
const char *key_type_name(uint64_t objectid, uint8_t type);

/* Prints the name of a key type, in JSON as "type_name". Unknown types are printed as "UNKNOWN." and the number. */
void key_type_emit(struct emit *e, const char *words, uint64_t objectid, uint8_t type);

/* Finds a fixed objectid by its name, ignoring case. @return 0; -ENOENT */
int objectid_by_name(const char *name, uint64_t *ret);

/* Prints "key (OBJECTID TYPE OFFSET)". */
void key_emit(struct emit *e, const char *name, const char *words, const struct btrkit_key *key);

/* Prints an objectid as its name in keys of @type, or as a number. Type 0 is for roots and owners outside of keys. */
void objectid_emit(struct emit *e, const char *name, const char *words, uint64_t objectid, uint8_t type);

/* Prints the line for an item of a leaf, in JSON the members "slot", "key", "offset" and "size". */
void item_line_emit(struct emit *e, uint32_t slot, const struct btrkit_key *key, uint32_t offset, uint32_t size);

/* The word before " tree key (...)": "extent", "fs", ...; "file" for subvolumes. */
const char *tree_title(uint64_t objectid);

/* Prints type and profile of a chunk or block group, like "DATA|single". */
void bg_flags_emit(struct emit *e, const char *name, const char *words, uint64_t flags);

/* Prints them as an array of names, JSON only. */
void bg_flags_names_emit(struct emit *e, const char *name, uint64_t flags);

/* Name of a bit. Tables end with bit 0. */
struct flag_name {
	uint64_t bit;
	const char *name;
};

/* Prints the names of the bits that are set, separated by "|". @return the bits without a name */
uint64_t flags_text(struct emit *e, const struct flag_name *names, uint64_t flags);

/* Prints the names of the bits that are set as an array, JSON only. */
void flags_names_emit(struct emit *e, const char *name, const struct flag_name *names, uint64_t flags);

#endif
