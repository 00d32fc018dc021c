// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks inodes whose items are all known. */
#include <sys/stat.h>

#include "lib/check/codes.h"
#include "lib/check/files/inode.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_dir.h"
#include "lib/check/files/span_reader.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/format/feature_bits.h"

void span_inode_item(struct span_reader *r, const struct item *item)
{
	const uint64_t generation = r->c->items.generation;
	struct inode_item i;

	inode_item_get((const struct disk_inode_item *)item->data, &i);
	r->inode->seen |= SEEN_ITEM;
	r->inode->size = i.size;
	r->inode->nbytes = i.nbytes;
	r->inode->flags = i.flags;
	r->inode->nlink = i.nlink;
	r->inode->mode = (uint16_t)i.mode;
	if (item->key.objectid == OID_FREE_INO) {
		span_report(r, CHECK_INODE_CACHE, item, NULL, "cache of free inode numbers, size ", i.size);
		r->inode->seen |= SEEN_DOUBT;
	}
	/* Linux gives new inodes numbers after the highest one, and never assigns the last number. */
	if (item->key.objectid >= OID_LAST_FREE - 1 && item->key.objectid <= OID_LAST_FREE)
		span_report(r, CHECK_INODE_NUMBER, item, "key.objectid",
			    "no number is left for new inodes after inode ", item->key.objectid);
	if (i.generation > generation)
		span_report(r, CHECK_INODE_GENERATION, item, "generation",
			    "inode is newer than the filesystem, generation ", i.generation);
	if (i.transid > generation)
		span_report(r, CHECK_INODE_GENERATION, item, "transid", "inode is newer than the filesystem, transid ",
			    i.transid);
	/* Linux treats this as an invalid user, and refuses writes to the file. */
	if (i.uid == UINT32_MAX)
		span_report(r, CHECK_INODE_OWNER, item, "uid", "invalid user ID ", i.uid);
	if (i.gid == UINT32_MAX)
		span_report(r, CHECK_INODE_OWNER, item, "gid", "invalid group ID ", i.gid);
	if (i.flags & ~(INODE_FLAGS_KNOWN | INODE_VERITY))
		span_report(r, CHECK_INODE_FLAGS, item, "flags", "unknown inode flags ",
			    i.flags & ~(INODE_FLAGS_KNOWN | INODE_VERITY));
	if (S_ISLNK(i.mode) && i.flags & (INODE_IMMUTABLE | INODE_APPEND))
		span_report(r, CHECK_INODE_SYMLINK, item, "flags", "symbolic link is immutable or append-only, flags ",
			    i.flags);
}

/* The inode being checked. */
struct checked {
	struct check *c;
	uint64_t tree;
	const struct span_inode *i;
};

static void describe(struct btrkit_error *what, uint64_t tree, uint64_t inode, const char *field, const char *words)
{
	err_corrupt(what, field, "%s", words);
	err_at_tree(what, tree);
	err_at_key(what, &KEY(inode, KEY_INODE_ITEM, 0));
}

static void report_inode(const struct checked *j, enum check_code code, const char *field, const char *words,
			 uint64_t found, uint64_t expected)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	describe(&what, j->tree, j->i->objectid, field, words);
	if (field)
		check_report_values(j->c, code, &what, found, expected);
	else
		check_report(j->c, code, &what);
}

/* @return whether its file type fits its items */
static bool check_kind(const struct checked *j)
{
	const uint32_t mode = j->i->mode, seen = j->i->seen;
	const char *words = NULL;

	if (S_ISDIR(mode) && seen & SEEN_EXTENTS)
		words = "directory has file extents";
	else if (!S_ISDIR(mode) && seen & SEEN_ENTRIES)
		words = "inode has directory entries, but is not a directory";
	else if (!S_ISREG(mode) && !S_ISLNK(mode) && seen & SEEN_EXTENTS)
		words = "special file has file extents";
	else if (!S_ISREG(mode) && (seen & SEEN_VERITY || j->i->flags & INODE_VERITY))
		words = "inode has fs-verity, but is not a regular file";
	if (words)
		report_inode(j, CHECK_INODE_KIND, NULL, words, 0, 0);
	return !words;
}

static void check_top(const struct checked *j)
{
	const char *words = NULL;

	if (!S_ISDIR(j->i->mode))
		words = "top inode of the tree is not a directory";
	else if (j->i->nlink != 1)
		words = "link count of the top directory is not 1";
	else if (!(j->i->seen & SEEN_DOTDOT))
		words = "top directory does not have the name \"..\" in itself";
	else if (j->i->names)
		words = "top directory has names in other directories";
	if (words)
		report_inode(j, CHECK_TREE_TOP, NULL, words, 0, 0);
}

#define OTHER_NAMES "link count is not the number of names"
#define OTHER_SIZE "directory size does not match its names"

void span_names_known(struct check *c, uint64_t tree, uint64_t inode, bool entries, uint64_t lacking)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	describe(&what, tree, inode, entries ? "size" : "nlink", entries ? OTHER_SIZE : OTHER_NAMES);
	check_withdraw(c, entries ? CHECK_DIR_SIZE : CHECK_INODE_NLINK, &what, lacking);
}

static void verify_names(const struct checked *j)
{
	if (j->i->objectid == OID_FIRST_FREE)
		check_top(j);
	else if (S_ISDIR(j->i->mode) && j->i->names > 1)
		report_inode(j, CHECK_DIR_NAMES, "names", "directory has more than one name", j->i->names, 1);
	else if (j->i->names != j->i->nlink)
		report_inode(j, CHECK_INODE_NLINK, "nlink", OTHER_NAMES, j->i->nlink, j->i->names);
}

static void check_default_acl(const struct checked *j)
{
	if (j->i->seen & SEEN_DEFAULT_ACL && !S_ISDIR(j->i->mode))
		report_inode(j, CHECK_INODE_ATTRIBUTE, NULL, "inode has a default ACL, but is not a directory", 0, 0);
}

/* Checks sizes and contents. Not for inodes waiting for deletion, whose sizes do not matter. */
static void check_contents(const struct checked *j)
{
	const struct span_inode *i = j->i;
	const uint64_t gap = i->seen & SEEN_EXTENTS && !i->begin ? (i->gap < i->end ? i->gap : i->end) : 0;

	if (S_ISDIR(i->mode)) {
		/* If the size matches one of the two indexes, the other one is wrong, which is reported elsewhere. */
		if (i->size != i->bytes && i->size != 2 * i->indexed && i->size != 2 * (i->bytes - i->indexed))
			report_inode(j, CHECK_DIR_SIZE, "size", OTHER_SIZE, i->size, i->bytes);
		return;
	}
	if (i->nbytes != i->bytes)
		report_inode(j, CHECK_FILE_NBYTES, "nbytes", "byte count is not the sum of the file extents", i->nbytes,
			     i->bytes);
	if (!S_ISREG(i->mode) && !S_ISLNK(i->mode))
		return;
	if (gap < i->size && !(j->c->items.incompat & INCOMPAT_NO_HOLES))
		report_inode(j, CHECK_FILE_GAP, "size", "file has a hole without an extent", gap, i->size);
	if (S_ISLNK(i->mode)) {
		if (i->seen & SEEN_REGULAR)
			report_inode(j, CHECK_INODE_SYMLINK, NULL, "symbolic link has an extent that is not inline", 0,
				     0);
		else if (!i->size || i->bytes < i->size)
			report_inode(j, CHECK_INODE_SYMLINK, "size",
				     "symbolic link is empty, or larger than its target", i->size, i->bytes);
	}
}

static void verify_csums(const struct checked *j)
{
	const struct span_inode *i = j->i;
	const bool none = i->flags & INODE_NODATASUM;

	if (!S_ISREG(i->mode) && !S_ISLNK(i->mode))
		return;
	/* For compressed data, the flag itself is wrong. */
	if (none && i->seen & SEEN_CSUM && !(i->seen & SEEN_COMPRESSED))
		report_inode(j, CHECK_FILE_CSUM_ODD, NULL, "file has the nodatasum flag, but has checksums", 0, 0);
	if (!none && i->seen & SEEN_NO_CSUM)
		report_inode(j, CHECK_FILE_CSUM_MISSING, NULL, "file has data without checksums", 0, 0);
	if (none && i->seen & SEEN_BARE_ZIP)
		report_inode(j, CHECK_FILE_CSUM_MISSING, NULL, "file has compressed data without checksums", 0, 0);
	if (none && i->seen & SEEN_COMPRESSED)
		report_inode(j, CHECK_FILE_COMPRESSED, NULL, "file has the nodatasum flag, but is compressed", 0, 0);
}

static void check_verity(const struct checked *j)
{
	if (!(j->i->flags & INODE_VERITY) || !S_ISREG(j->i->mode))
		return;
	if (!(j->i->seen & SEEN_VERITY_DESC))
		report_inode(j, CHECK_INODE_VERITY, NULL, "file has fs-verity, but no fs-verity descriptor", 0, 0);
	else if (j->i->verity)
		report_inode(j, CHECK_INODE_VERITY, NULL, "fs-verity descriptor has the wrong length", 0, 0);
}

void span_check(struct check *c, uint64_t tree, struct span *span, const struct span_inode *inode)
{
	const struct checked j = { c, tree, inode };
	const bool known = inode->seen & SEEN_ITEM;

	span->names -= inode->name_hash * span_hash_type(c, known ? dir_type_of_mode(inode->mode) : 0);
	/* Linux removes DIR_INDEX items of a deleted directory late. */
	if (!known || inode->nlink || inode->objectid == OID_FIRST_FREE) {
		span->names += inode->children;
		span->entries += inode->entries;
	}
	if (inode->seen & SEEN_DOUBT)
		return;
	if (!known) {
		report_inode(&j, CHECK_INODE_MISSING, NULL, "inode has items, but no inode item", 0, 0);
		return;
	}
	verify_names(&j);
	verify_csums(&j);
	check_verity(&j);
	check_default_acl(&j);
	if (check_kind(&j) && inode->nlink)
		check_contents(&j);
	if (!inode->nlink && inode->objectid != OID_FIRST_FREE)
		span->orphans += check_hash(c, HASH_ORPHAN, &inode->objectid, 1, NULL, 0);
}
