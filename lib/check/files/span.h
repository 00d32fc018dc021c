/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_H
#define BTRKIT_CHECK_SPAN_H

/*
 * A span summarizes the files in a run of adjacent leaves of a file tree. Inodes whose items all lie within the run
 * have been checked; the first and the last inode, which may continue outside of it, are kept as far as they are known.
 * Spans are merged in key order until one covers the whole tree. A block that several trees share is read once, and all
 * of them use its span.
 */

#include "lib/check/files/file_refs.h"
#include "lib/check/state.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"

/* What was seen of an inode. */
enum span_seen {
	SEEN_INODE = 1 << 0,   /* anything at all */
	SEEN_ITEM = 1 << 1,    /* its INODE_ITEM */
	SEEN_DOUBT = 1 << 2,   /* some of it is unreadable or invalid: the inode is not checked */
	SEEN_DOTDOT = 1 << 3,  /* the ".." of a top directory */
	SEEN_ENTRIES = 1 << 4, /* directory entries */
	SEEN_EXTENTS = 1 << 5,
	SEEN_REGULAR = 1 << 6,	    /* non-inline extents */
	SEEN_COMPRESSED = 1 << 7,   /* compressed non-inline extents */
	SEEN_CSUM = 1 << 8,	    /* data with checksums */
	SEEN_NO_CSUM = 1 << 9,	    /* data without checksums */
	SEEN_BARE_ZIP = 1 << 10,    /* compressed data without checksums */
	SEEN_VERITY = 1 << 11,	    /* any fs-verity item */
	SEEN_VERITY_DESC = 1 << 12, /* the fs-verity item with the descriptor's size */
	SEEN_DEFAULT_ACL = 1 << 13,
};

/* An inode or a part of one. Parts are merged. */
struct span_inode {
	uint64_t objectid;
	uint64_t size, nbytes, flags; /* from the INODE_ITEM */
	uint32_t nlink;
	uint16_t mode; /* valid modes fit into 16 bits */
	uint16_t seen;
	uint32_t names;	    /* number of names, without the ".." of a top directory */
	uint32_t verity;    /* bytes of the fs-verity descriptor, less its recorded size */
	uint64_t name_hash; /* sum of the hashes of its names */
	/* Directory: length of all names in both indexes. File: bytes that its extents add to nbytes. */
	uint64_t bytes;
	uint64_t children, entries; /* of a directory: as in struct span */
	union {
		uint64_t begin;	  /* start of its extents */
		uint64_t indexed; /* of a directory: the part of bytes from DIR_INDEX items */
	};
	uint64_t end, gap; /* end of its extents; start of the first hole without an extent, or UINT64_MAX */
};

enum span_flags {
	SPAN_LOST = 1 << 0,	 /* some of it could not be read */
	SPAN_DOUBT = 1 << 1,	 /* some of it is invalid */
	SPAN_GAP_LEFT = 1 << 2,	 /* something is lost before its first inode */
	SPAN_GAP_RIGHT = 1 << 3, /* something is lost after its last inode */
	SPAN_RISING = 1 << 4,	 /* a directory has a parent with a higher number */
};

struct span {
	struct span_inode first, last; /* a single inode is in first */
	/* The next three must be 0 for a whole tree. Names in directories, less those in inodes: */
	uint64_t names;
	uint64_t entries; /* DIR_INDEX entries, less DIR_ITEM entries */
	uint64_t orphans; /* inodes without links, less orphan items */
	uint64_t dirs;	  /* sum of hashes of each directory with its parent */
	uint32_t flags;
};

static_assert(sizeof(struct span) <= 250, "the span of a shared block takes more memory than was promised");

/* Makes the span of a leaf, and reports what is wrong within the leaf. @hints: of the calling thread. */
void span_leaf(struct check *c, const struct node *leaf, bool full_backref, struct check_hints *hints,
	       struct span *ret);
/* Appends @right to @left. Checks the inode that was split between them; findings are reported for @tree. */
void span_join(struct check *c, uint64_t tree, struct span *left, const struct span *right);
/* Makes a span of unknown contents. */
void span_lost(struct span *ret);

/* --- Used only by the files that build spans. --- */

/* A leaf whose items are being read. */
struct span_reader {
	struct check *c;
	const struct node *leaf;
	bool full_backref;
	struct check_hints *hints;
	struct span *span;
	struct span_inode *inode; /* the current one */
};

#define DIR_INDEX_FIRST 2 /* 0 and 1 stand for "." and ".." */
/* readdir() continues at a signed position past the last index: from this index on, Linux would never see the end. */
#define DIR_INDEX_END ((uint64_t)INT64_MAX)

static inline bool span_index_possible(uint64_t index)
{
	return index >= DIR_INDEX_FIRST && index < DIR_INDEX_END;
}

/* Kinds for check_hash(), distinct from all key types. */
enum span_hash_kind {
	HASH_NAME = 256,
	HASH_ENTRY,
	HASH_CHILD,
	HASH_TYPE,
	HASH_ORPHAN,
	HASH_PARENT
};

/* Whether this is the ".." by which the top directory of a tree refers to itself. */
static inline bool span_is_dotdot(const struct inode_ref *ref, uint64_t inode)
{
	return inode == OID_FIRST_FREE && ref->parent == inode && !ref->index && ref->name_len == 2 &&
	       ref->name[0] == '.' && ref->name[1] == '.';
}

/* Whether a directory has a parent with a higher number. Every cycle has such a directory, and few others are. */
static inline bool span_is_rising(const struct inode_ref *ref, uint64_t dir)
{
	return ref->parent >= dir && !span_is_dotdot(ref, dir);
}

#endif
