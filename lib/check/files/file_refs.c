// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks file extents against the data extents that they refer to. */
#include <inttypes.h>

#include "lib/check/data/compressed.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"

static void report_file_ref(struct check *c, const struct node *leaf, const struct item *item,
			    const struct file_extent *fe, const struct check_extent *e)
{
	const struct check_location at = { leaf->owner, leaf->bytenr, &item->key, "disk_bytenr" };

	if (e)
		check_report_at(c, CHECK_EXTENT_MISSING, &at,
				"file extent refers to %" PRIu64 " bytes at %" PRIu64
				", but the extent tree has %" PRIu64 " bytes at %" PRIu64,
				fe->disk_num_bytes, fe->disk_bytenr, (uint64_t)e->sectors * c->items.sectorsize,
				check_extent_start(e));
	else
		check_report_at(c, CHECK_EXTENT_MISSING, &at,
				"file extent refers to %" PRIu64 " bytes at %" PRIu64
				", but the extent tree has no data there",
				fe->disk_num_bytes, fe->disk_bytenr);
}

struct extent_ref check_file_ref(const struct node *leaf, bool full_backref, const struct item *item,
				 const struct file_extent *fe)
{
	struct extent_ref ref = { .type = full_backref ? KEY_SHARED_DATA_REF : KEY_EXTENT_DATA_REF, .count = 1 };

	if (full_backref) {
		ref.parent = leaf->bytenr;
	} else {
		ref.root = leaf->owner;
		ref.objectid = item->key.objectid;
		ref.offset = item->key.offset - fe->offset;
	}
	return ref;
}

/* Marks the extent with what this reference claims. @return whether no other one did; always, if it is the only one */
static bool is_new(struct check_extent *e, const struct file_extent *fe)
{
	const bool kept = fe->type == FILE_EXTENT_PREALLOC && !fe->compression;
	const unsigned kind = kept ? CHECK_EXTENT_PREALLOC : CHECK_EXTENT_KIND(fe->compression);

	return e->refs == 1 || (!(e->tagged & kind) && !(atomic_fetch_or(&e->tagged, kind) & kind));
}

void check_file_extent(struct check *c, const struct node *leaf, bool full_backref, const struct item *item,
		       const struct file_extent *fe, struct check_hints *hints)
{
	struct check_extent *e;
	struct extent_ref ref;

	if (!fe->disk_bytenr)
		return;
	e = check_find_extent(&c->tables, fe->disk_bytenr, c->items.sectorsize, &hints->extent);
	if (e && e->tagged & CHECK_EXTENT_DOUBT)
		return;
	if (!e || check_extent_start(e) != fe->disk_bytenr ||
	    (uint64_t)e->sectors * c->items.sectorsize != fe->disk_num_bytes) {
		if (!c->extents_lost)
			report_file_ref(c, leaf, item, fe, e);
		return;
	}
	if (is_new(e, fe) && fe->compression && c->opts.flags & BTRKIT_CHECK_DATA)
		check_compressed_extent(c, leaf, item, fe, e);
	ref = check_file_ref(leaf, full_backref, item, fe);
	atomic_fetch_sub_explicit(&e->sum, check_ref_hash(c, &ref, fe->disk_bytenr), memory_order_relaxed);
}
