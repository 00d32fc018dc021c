// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks file extents: whether their data has checksums, and how they add up to the file. */
#include <inttypes.h>

#include "lib/check/data/compressed.h"
#include "lib/check/data/csums.h"
#include "lib/check/data/data_nodatasum.h"
#include "lib/check/files/extent_fields.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_file.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/stripes.h"
#include "lib/check/trees/table.h"

void span_add_extents(struct check *c, uint64_t tree, struct span_inode *to, uint64_t begin, uint64_t end, uint64_t gap)
{
	const struct btrkit_key key = { to->objectid, KEY_EXTENT_DATA, begin };
	const struct check_location at = { tree, 0, &key, "key.offset" };

	if (!(to->seen & SEEN_EXTENTS)) {
		to->seen |= SEEN_EXTENTS;
		to->begin = begin;
		to->end = end;
		to->gap = gap;
		return;
	}
	if (begin < to->end)
		check_report_at(c, CHECK_FILE_OVERLAP, &at, "file extent overlaps previous ones, which end at %" PRIu64,
				to->end);
	if (to->gap == UINT64_MAX)
		to->gap = begin > to->end ? to->end : gap;
	if (end > to->end)
		to->end = end;
}

/*
 * Another reference to the extent may have received data by log replay. The checksums remain when that reference is
 * gone, and Linux then does not write in place.
 */
static void check_prealloc(struct span_reader *r, const struct item *item, const struct file_extent *fe, uint64_t found)
{
	const struct check_location at = { r->leaf->owner, r->leaf->bytenr, &item->key, "disk_bytenr" };
	struct check_extent *e = check_find_extent(&r->c->tables, fe->disk_bytenr, r->c->items.sectorsize,
						   &r->hints->extent);

	if (!found || !e || check_extent_start(e) != fe->disk_bytenr)
		return;
	if (e->refs == 1)
		check_report_at(r->c, CHECK_FILE_CSUM_PREALLOC, &at,
				"%" PRIu64 " bytes of preallocated space have checksums", found);
	else if (!(e->tagged & CHECK_EXTENT_PREALLOC_CSUM))
		atomic_fetch_or(&e->tagged, CHECK_EXTENT_PREALLOC_CSUM);
}

/* Relocation copies data first, and its checksums, if any, later. */
static void verify_csums(struct span_reader *r, const struct item *item, const struct file_extent *fe)
{
	const uint64_t start = fe->compression ? fe->disk_bytenr : fe->disk_bytenr + fe->offset;
	const uint64_t length = fe->compression ? fe->disk_num_bytes : fe->num_bytes;
	uint64_t found;

	if (r->c->csums_lost || r->leaf->owner == OID_DATA_RELOC_TREE)
		return;
	found = check_csum_bytes(r->c, start, length, &r->hints->csum);
	if (found)
		r->inode->seen |= SEEN_CSUM;
	if (fe->type == FILE_EXTENT_PREALLOC) {
		check_prealloc(r, item, fe, found);
		return;
	}
	if (found < length) {
		r->inode->seen |= fe->compression ? SEEN_NO_CSUM | SEEN_BARE_ZIP : SEEN_NO_CSUM;
		check_nodatasum_data(r->c, start, length);
	}
}

static void check_location(struct span_reader *r, const struct item *item, const struct file_extent *fe)
{
	const struct check_location at = { r->leaf->owner, r->leaf->bytenr, &item->key, "disk_bytenr" };
	const uint64_t start = fe->compression ? fe->disk_bytenr : fe->disk_bytenr + fe->offset;
	const uint64_t length = fe->compression ? fe->disk_num_bytes : fe->num_bytes;

	if (fe->type == FILE_EXTENT_PREALLOC || r->leaf->owner == OID_DATA_RELOC_TREE)
		return;
	if (!check_stripes_have(r->c, start, length))
		check_report_at(r->c, CHECK_STRIPE_MISSING, &at, "stripe tree does not map all of the data");
}

void span_extent(struct span_reader *r, const struct item *item)
{
	const uint64_t sector = r->c->items.sectorsize;
	struct file_extent fe;
	uint64_t length;

	if (file_extent_decode(&r->c->items, item, &fe, NULL) < 0)
		return; /* cannot fail: the item was validated */
	check_extent_fields(r->c, r->leaf, item, &fe);
	if (fe.type == FILE_EXTENT_INLINE) {
		/* Only with --data: metadata dumps have zeros in place of inline data too. */
		if (fe.compression && r->c->opts.flags & BTRKIT_CHECK_DATA)
			check_compressed_inline(r->c, r->leaf, item, &fe);
		r->inode->bytes += fe.ram_bytes;
		length = (fe.ram_bytes + sector - 1) & ~(sector - 1);
	} else {
		check_file_extent(r->c, r->leaf, r->full_backref, item, &fe, r->hints);
		r->inode->seen |= fe.compression ? SEEN_REGULAR | SEEN_COMPRESSED : SEEN_REGULAR;
		length = fe.num_bytes;
		if (fe.disk_bytenr) {
			r->inode->bytes += length;
			verify_csums(r, item, &fe);
			check_location(r, item, &fe);
		}
	}
	span_add_extents(r->c, r->leaf->owner, r->inode, item->key.offset, item->key.offset + length, UINT64_MAX);
}
