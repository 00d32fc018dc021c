// SPDX-License-Identifier: LGPL-2.1-or-later
/* The extents of files: each by itself, whether its data have checksums, and what they make of the file together. */
#include <inttypes.h>

#include "lib/check/compressed.h"
#include "lib/check/span.h"
#include "lib/fs/extent_read.h"

static void say(struct span_reader *r, const struct item *item, const char *field, const char *words, uint64_t number)
{
	const struct check_place at = { r->leaf->owner, r->leaf->bytenr, &item->key, field };

	check_say(r->c, CHECK_FILE_EXTENT, &at, "%s%" PRIu64, words, number);
}

void span_add_extents(struct check *c, uint64_t tree, struct span_inode *to, uint64_t begin, uint64_t end, uint64_t gap)
{
	const struct btrkit_key key = { to->objectid, KEY_EXTENT_DATA, begin };
	const struct check_place at = { tree, 0, &key, "key.offset" };

	if (!(to->seen & SEEN_EXTENTS)) {
		to->seen |= SEEN_EXTENTS;
		to->begin = begin;
		to->end = end;
		to->gap = gap;
		return;
	}
	if (begin < to->end)
		check_say(c, CHECK_FILE_OVERLAP, &at, "file extent begins before the end of those before it, %" PRIu64,
			  to->end);
	if (to->gap == UINT64_MAX)
		to->gap = begin > to->end ? to->end : gap;
	if (end > to->end)
		to->end = end;
}

/* Less than a sector, and what a leaf has room for. */
static uint64_t inline_most(const struct check *c)
{
	const uint64_t room = c->items.nodesize - sizeof(struct disk_header) - sizeof(struct disk_item) -
			      FILE_EXTENT_INLINE_START;
	const uint64_t sector = c->items.sectorsize - 1;

	return sector < room ? sector : room;
}

static void judge_inline(struct span_reader *r, const struct item *item, const struct file_extent *fe)
{
	const uint64_t most = inline_most(r->c);

	if (!fe->ram_bytes)
		say(r, item, "ram_bytes", "inline extent of bytes: ", 0);
	if (fe->inline_len > most)
		say(r, item, "item_size", "inline extent that takes more bytes than are allowed: ", fe->inline_len);
	else if (fe->ram_bytes > (fe->compression ? r->c->items.sectorsize : most))
		say(r, item, "ram_bytes", "inline extent of more bytes than are allowed: ", fe->ram_bytes);
}

static void judge_regular(struct span_reader *r, const struct item *item, const struct file_extent *fe)
{
	const struct disk_file_extent *d = (const struct disk_file_extent *)item->data;
	const bool coded = fe->compression || le16_get(d->other_encoding);

	if (!fe->num_bytes)
		say(r, item, "num_bytes", "file extent of bytes: ", 0);
	if (fe->num_bytes > fe->ram_bytes || fe->offset > fe->ram_bytes - fe->num_bytes)
		say(r, item, "ram_bytes", "file extent that goes on behind its end, ", fe->ram_bytes);
	else if (fe->disk_bytenr && !coded &&
		 (fe->num_bytes > fe->disk_num_bytes || fe->offset > fe->disk_num_bytes - fe->num_bytes))
		say(r, item, "disk_num_bytes",
		    "file extent that goes on behind its data, of bytes: ", fe->disk_num_bytes);
	if (fe->compression && (fe->ram_bytes > EXTENT_COMPRESSED_MAX || fe->disk_num_bytes > EXTENT_COMPRESSED_MAX))
		say(r, item, "ram_bytes", "compressed extent larger than any, of bytes: ", fe->ram_bytes);
	if (fe->type == FILE_EXTENT_PREALLOC && coded)
		say(r, item, "compression", "space is kept for compressed data, of kind ", fe->compression);
}

/* Of an extent that nothing else refers to, nobody else can have written the data. */
static void judge_kept(struct span_reader *r, const struct item *item, const struct file_extent *fe, uint64_t found)
{
	const struct check_place at = { r->leaf->owner, r->leaf->bytenr, &item->key, "disk_bytenr" };
	const struct check_extent *e = check_find_extent(&r->c->tables, fe->disk_bytenr, r->c->items.sectorsize,
							 &r->hints->extent);

	if (found && e && check_extent_start(e) == fe->disk_bytenr && e->refs == 1)
		check_say(r->c, CHECK_FILE_CSUM_ODD, &at,
			  "space that is kept for data has checksums of %" PRIu64 " bytes", found);
}

/* Relocation copies data whose checksums, if there are any, come later. */
static void judge_csums(struct span_reader *r, const struct item *item, const struct file_extent *fe)
{
	const uint64_t start = fe->compression ? fe->disk_bytenr : fe->disk_bytenr + fe->offset;
	const uint64_t length = fe->compression ? fe->disk_num_bytes : fe->num_bytes;
	uint64_t found;

	if (r->c->csums_lost || r->leaf->owner == OID_DATA_RELOC_TREE)
		return;
	found = check_csum_bytes(r->c, start, length, &r->hints->csum);
	if (fe->type == FILE_EXTENT_PREALLOC) {
		judge_kept(r, item, fe, found);
		return;
	}
	if (found)
		r->inode->seen |= SEEN_CSUM;
	if (found < length)
		r->inode->seen |= fe->compression ? SEEN_NO_CSUM | SEEN_BARE_ZIP : SEEN_NO_CSUM;
}

void span_extent(struct span_reader *r, const struct item *item)
{
	const uint64_t sector = r->c->items.sectorsize;
	struct file_extent fe;
	uint64_t length;

	if (file_extent_decode(&r->c->items, item, &fe, NULL) < 0)
		return; /* it was found valid */
	if (fe.generation > r->c->items.generation)
		say(r, item, "generation", "file extent of generation ", fe.generation);
	if (fe.type == FILE_EXTENT_INLINE) {
		judge_inline(r, item, &fe);
		/* A dump of metadata has zeros for data, here too. */
		if (fe.compression && r->c->opts.flags & BTRKIT_CHECK_DATA)
			check_compressed_inline(r->c, r->leaf, item, &fe);
		r->inode->bytes += fe.ram_bytes;
		length = (fe.ram_bytes + sector - 1) & ~(sector - 1);
	} else {
		judge_regular(r, item, &fe);
		check_file_extent(r->c, r->leaf, r->full_backref, item, &fe, r->hints);
		r->inode->seen |= fe.compression ? SEEN_REGULAR | SEEN_COMPRESSED : SEEN_REGULAR;
		length = fe.num_bytes;
		if (fe.disk_bytenr) {
			r->inode->bytes += length;
			judge_csums(r, item, &fe);
		}
	}
	span_add_extents(r->c, r->leaf->owner, r->inode, item->key.offset, item->key.offset + length, UINT64_MAX);
}
