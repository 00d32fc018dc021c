/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_H
#define BTRKIT_CHECK_SPAN_H

/*
 * What of files lies in a run of neighbouring leaves of a tree of files. Inodes whose items all lie within it were
 * judged; those at its two ends, of which more may lie beside it, are kept as far as they are known. Spans are put
 * together, in the order of keys, to that of a whole tree, in whatever way the tree's blocks are shared with others: a
 * shared block is read once and its span is used by all.
 */

#include "lib/check/state.h"
#include "lib/format/items/dir.h"
#include "lib/format/items/inode.h"

/* What was met of an inode. */
enum span_seen {
	SEEN_INODE = 1 << 0,   /* anything at all */
	SEEN_ITEM = 1 << 1,    /* its INODE_ITEM */
	SEEN_DOUBT = 1 << 2,   /* something of it is lost or not valid: it is not judged */
	SEEN_DOTDOT = 1 << 3,  /* the name of a top directory */
	SEEN_ENTRIES = 1 << 4, /* of a directory */
	SEEN_EXTENTS = 1 << 5,
	SEEN_REGULAR = 1 << 6,	    /* extents that are not inline */
	SEEN_COMPRESSED = 1 << 7,   /* of the latter */
	SEEN_CSUM = 1 << 8,	    /* data that has checksums, */
	SEEN_NO_CSUM = 1 << 9,	    /* that has none, */
	SEEN_BARE_ZIP = 1 << 10,    /* and compressed data that has none */
	SEEN_VERITY = 1 << 11,	    /* anything of fs-verity, */
	SEEN_VERITY_DESC = 1 << 12, /* and what says how long its descriptor is */
	SEEN_DEFAULT_ACL = 1 << 13,
};

/* An inode, or a part of one: parts are added up. */
struct span_inode {
	uint64_t objectid;
	uint64_t size, nbytes, flags; /* what its item says */
	uint32_t nlink;
	uint16_t mode; /* a valid item says no more */
	uint16_t seen;
	uint32_t names;	    /* how many it has, but for that of a top directory */
	uint32_t verity;    /* bytes that its descriptor has, less those that it should have */
	uint64_t name_hash; /* of the names that it has */
	/* Of the names of a directory's entries, in both of its lists; or those that the extents of a file count. */
	uint64_t bytes;
	uint64_t children, entries; /* of a directory: see those of struct span */
	union {
		uint64_t begin;	  /* of its extents */
		uint64_t indexed; /* of bytes of a directory: those of the list by index */
	};
	uint64_t end, gap; /* of its extents, and of the first hole that has none; UINT64_MAX */
};

enum span_flags {
	SPAN_LOST = 1 << 0,	 /* something in it could not be read */
	SPAN_DOUBT = 1 << 1,	 /* something in it is not valid */
	SPAN_GAP_LEFT = 1 << 2,	 /* what is lost comes before its first inode, */
	SPAN_GAP_RIGHT = 1 << 3, /* and behind the last one */
	SPAN_RISING = 1 << 4,	 /* a directory lies in one with a higher number */
};

struct span {
	struct span_inode first, last; /* with one inode it is the first */
	/* These must be 0 in a whole tree: names in directories less those in inodes, */
	uint64_t names;
	uint64_t entries; /* the lists of directories by index less those by hash, */
	uint64_t orphans; /* and inodes that are to be deleted, less the items that say so */
	uint64_t dirs;	  /* the sum of which directory lies in which */
	uint32_t flags;
};

static_assert(sizeof(struct span) <= 250, "the span of a shared block takes more memory than was promised");

/* The span of a leaf; what is wrong within it is told. @hints: the caller's thread's. */
void span_leaf(struct check *c, const struct node *leaf, bool full_backref, struct check_hints *hints,
	       struct span *ret);
/* @left becomes @left followed by @right; the inode that was cut between them is judged, and told of as of @tree. */
void span_join(struct check *c, uint64_t tree, struct span *left, const struct span *right);
/* What is there is not known. */
void span_lost(struct span *ret);
/*
 * All of a tree: its first and its last inode are judged, and its names. Not for trees that are partly dropped. By one
 * thread, tree by tree in their order.
 * @return whether nothing is lost or in doubt, and names come out even
 */
bool span_tree(struct check *c, const struct check_root *root, const struct span *all);

/* --- What the files of spans use among themselves. --- */

/* A leaf whose items are gone through. */
struct span_reader {
	struct check *c;
	const struct node *leaf;
	bool full_backref;
	struct check_hints *hints;
	struct span *span;
	struct span_inode *inode; /* the current one */
};

/* span.c: an item of the leaf is not as it should be. @words end with what @number is put behind. */
void span_say(struct span_reader *r, enum check_code code, const struct item *item, const char *field,
	      const char *words, uint64_t number);
/* span_dir.c: an entry of a directory, a name of an inode, an extended attribute. All were found valid. */
void span_entries(struct span_reader *r, const struct item *item);
void span_refs(struct span_reader *r, const struct item *item);
void span_xattrs(struct span_reader *r, const struct item *item);
/* attributes.c: what is in the latter. */
void span_attribute(struct span_reader *r, const struct item *item, const struct dir_entry *e);
/* span_file.c: the extents of a file. */
void span_extent(struct span_reader *r, const struct item *item);
/* Puts the extents of another part of the inode behind those that it has. */
void span_add_extents(struct check *c, uint64_t tree, struct span_inode *to, uint64_t begin, uint64_t end,
		      uint64_t gap);
/* inode.c: what an inode's item says that needs nothing else to be judged. */
void span_inode_item(struct span_reader *r, const struct item *item);
/* The same of an inode of which all is known; its names go into the sums. */
void span_judge(struct check *c, uint64_t tree, struct span *span, const struct span_inode *inode);
/*
 * As was told an inode lacks so many of its names: that it counts them is right. With @entries a directory lacks
 * entries, whose names have so many bytes in both of its lists.
 */
void span_names_known(struct check *c, uint64_t tree, uint64_t inode, bool entries, uint64_t lacking);
/* names.c: goes through a tree whose names do not come out even. */
void span_names(struct check *c, const struct check_root *root, const struct span *all);

/* A name in a directory, wherever it is met. */
uint64_t span_hash_name(const struct check *c, uint64_t dir, const void *name, size_t len);
/* The same as an entry of a directory that leads to @location. */
uint64_t span_hash_entry(const struct check *c, uint64_t name, const struct btrkit_key *location, uint8_t type);
/* The same as the name of inode @child; times span_hash_type() of what kind of file it is. */
uint64_t span_hash_child(const struct check *c, uint64_t name, uint64_t index, uint64_t child);
uint64_t span_hash_type(const struct check *c, uint8_t type);

#define DIR_INDEX_FIRST 2 /* 0 and 1 are those of "." and ".." */
/* Who reads a directory goes on from a signed number behind the last index: from these on Linux finds no end. */
#define DIR_INDEX_END ((uint64_t)INT64_MAX)

static inline bool span_index_possible(uint64_t index)
{
	return index >= DIR_INDEX_FIRST && index < DIR_INDEX_END;
}

/* Of sorts of hashes, for check_hash(): none of a key type's number. */
enum span_hash_kind {
	HASH_NAME = 256,
	HASH_ENTRY,
	HASH_CHILD,
	HASH_TYPE,
	HASH_ORPHAN,
	HASH_PARENT
};

/* The name of the top directory of each tree, in itself. */
static inline bool span_is_dotdot(const struct inode_ref *ref, uint64_t inode)
{
	return inode == OID_FIRST_FREE && ref->parent == inode && !ref->index && ref->name_len == 2 &&
	       ref->name[0] == '.' && ref->name[1] == '.';
}

/* Of a name of a directory: one at least in each circle of them is of this kind, and few others are. */
static inline bool span_is_rising(const struct inode_ref *ref, uint64_t dir)
{
	return ref->parent >= dir && !span_is_dotdot(ref, dir);
}

#endif
