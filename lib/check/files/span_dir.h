/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_DIR_H
#define BTRKIT_CHECK_SPAN_DIR_H

#include "lib/check/files/span.h"
#include "lib/check/state.h"

/* Directory entries, names of an inode, extended attributes. The items have been validated. */
void span_entries(struct span_reader *r, const struct item *item);
void span_refs(struct span_reader *r, const struct item *item);
void span_xattrs(struct span_reader *r, const struct item *item);
/* Hash of a name in a directory, the same wherever the name is found. */
uint64_t span_hash_name(const struct check *c, uint64_t dir, const void *name, size_t len);
/* Hash of a directory entry with that name that points to @location. */
uint64_t span_hash_entry(const struct check *c, uint64_t name, const struct btrkit_key *location, uint8_t type);
/* Hash of that name as a name of inode @child, to be multiplied by span_hash_type() of its file type. */
uint64_t span_hash_child(const struct check *c, uint64_t name, uint64_t index, uint64_t child);
uint64_t span_hash_type(const struct check *c, uint8_t type);

#endif
