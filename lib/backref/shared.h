/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARED_H
#define BTRKIT_BACKREF_SHARED_H

/*
 * The one rule for the flag SHARED of Linux (FIEMAP_EXTENT_SHARED), as in its fs/btrfs/backref.c. An extent is shared
 * - if two of its references differ in more than their counts, or
 * - if one of them names another inode than the file that is asked about, or
 * - if a leaf that refers to it can be reached from another tree.
 * References with count 0 and those of the data relocation tree do not count, but their inodes do.
 *
 * An example: a file of 4 MiB is one extent, with the reference (tree 5, inode 257, offset 0) and count 1. A write into
 * its middle makes two items of it, so the count is 2: still one reference, and not shared. `cp --reflink` adds a
 * reference with another inode: shared. A snapshot adds none, but the leaf belongs to two trees then: shared, too.
 */

#include "lib/format/ids.h"
#include "lib/format/items/extent.h"

/* The references of a data extent so far. */
struct shared_refs {
	uint64_t inode; /* of the file that is asked about; 0: any file, and no reference has named an inode so far */
	/* The only reference that counts so far. */
	uint64_t root;	 /* of KEY_EXTENT_DATA_REF */
	uint64_t offset; /* of KEY_EXTENT_DATA_REF */
	uint64_t parent; /* of KEY_SHARED_DATA_REF */
	uint32_t count;
	uint8_t type;	 /* KEY_EXTENT_DATA_REF or KEY_SHARED_DATA_REF; 0: none counts */
	bool differ;	 /* decided: shared, whatever else refers to the extent */
	bool skipped;	 /* a reference named the inode, but does not count */
};

/* Returns whether an inode that a reference names is not that of the file. */
static inline bool shared_names_another(struct shared_refs *r, uint64_t inode)
{
	if (!r->inode)
		r->inode = inode;
	return r->inode != inode;
}

/* Takes a reference that counts into account. Returns whether it differs from the one before. */
static inline bool shared_add_counted(struct shared_refs *r, const struct extent_ref *ref)
{
	if (r->type && (r->type != ref->type || r->root != ref->root || r->offset != ref->offset ||
			r->parent != ref->parent))
		return true;
	r->type = ref->type;
	r->root = ref->root;
	r->offset = ref->offset;
	r->parent = ref->parent;
	r->count += ref->count;
	return false;
}

/* Takes a reference into account. Returns whether the extent is shared, whatever else refers to it. */
static inline bool shared_add(struct shared_refs *r, const struct extent_ref *ref)
{
	if (ref->type != KEY_EXTENT_DATA_REF && ref->type != KEY_SHARED_DATA_REF)
		return r->differ;
	/* Linux compares the inode before it skips a reference. */
	if (ref->type == KEY_EXTENT_DATA_REF && shared_names_another(r, ref->objectid))
		r->differ = true;
	else if (ref->count && (ref->type == KEY_SHARED_DATA_REF || ref->root != OID_DATA_RELOC_TREE))
		r->differ |= shared_add_counted(r, ref);
	else if (ref->type == KEY_EXTENT_DATA_REF)
		r->skipped = true;
	return r->differ;
}

/* Takes the references @more, which follow those of @r, into account. */
static inline void shared_join(struct shared_refs *r, const struct shared_refs *more)
{
	const struct extent_ref ref = { .type = more->type,
					.root = more->root,
					.parent = more->parent,
					.offset = more->offset,
					.count = more->count };

	r->skipped |= more->skipped;
	r->differ |= more->differ;
	if (more->inode && shared_names_another(r, more->inode))
		r->differ = true;
	else if (more->type && shared_add_counted(r, &ref))
		r->differ = true;
}

/*
 * Returns whether the references alone make an extent shared if any file is asked about. One that refers by its leaf
 * only is hardly that whose inode a skipped reference names: relocation has inodes of its own.
 */
static inline bool shared_in_any_file(const struct shared_refs *r)
{
	return r->differ || (r->skipped && r->type == KEY_SHARED_DATA_REF);
}

/*
 * Returns whether an extent is shared. @refs_differ: see struct shared_refs; @leaf_shared: whether any leaf whose item
 * the references count can be reached from another tree
 */
static inline bool shared_extent(bool refs_differ, bool leaf_shared)
{
	return refs_differ || leaf_shared;
}

/* Returns whether the reference @ref of a tree block, a KEY_TREE_BLOCK_REF, is that of a tree other than @root. */
static inline bool shared_block_ref_is_others(const struct extent_ref *ref, uint64_t root)
{
	return ref->root != root && ref->root != OID_DATA_RELOC_TREE;
}

#endif
