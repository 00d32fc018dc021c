// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the fields of a file extent, in a file tree or in a log tree. */
#include <inttypes.h>

#include "lib/check/files/extent_fields.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/fs/extent_read.h"

/* The file extent being checked. */
struct checked {
	struct check *c;
	const struct node *leaf;
	const struct item *item;
	const struct file_extent *fe;
};

static void report_field(const struct checked *j, const char *field, const char *words, uint64_t number)
{
	const struct check_location at = { j->leaf->owner, j->leaf->bytenr, &j->item->key, field };

	check_report_at(j->c, CHECK_FILE_EXTENT, &at, "%s%" PRIu64, words, number);
}

/* The largest inline extent: smaller than a sector, and fits into a leaf. */
static uint64_t inline_most(const struct check *c)
{
	const uint64_t room = leaf_room(c->items.nodesize) - sizeof(struct disk_item) - FILE_EXTENT_INLINE_START;
	const uint64_t sector = c->items.sectorsize - 1;

	return sector < room ? sector : room;
}

static void check_inline(const struct checked *j)
{
	const struct file_extent *fe = j->fe;
	const uint64_t most = inline_most(j->c);

	if (!fe->ram_bytes)
		report_field(j, "ram_bytes", "inline extent has length ", 0);
	if (fe->inline_len > most)
		report_field(j, "item_size", "inline extent is too large, stored length ", fe->inline_len);
	else if (fe->ram_bytes > (fe->compression ? j->c->items.sectorsize : most))
		report_field(j, "ram_bytes", "inline extent is too large, length ", fe->ram_bytes);
}

static void check_regular(const struct checked *j)
{
	const struct file_extent *fe = j->fe;
	const bool coded = fe->compression || fe->other_encoding;

	if (!fe->num_bytes)
		report_field(j, "num_bytes", "file extent has length ", 0);
	if (fe->num_bytes > fe->ram_bytes || fe->offset > fe->ram_bytes - fe->num_bytes)
		report_field(j, "ram_bytes", "file extent extends past its uncompressed length of ", fe->ram_bytes);
	else if (fe->disk_bytenr && !coded &&
		 (fe->num_bytes > fe->disk_num_bytes || fe->offset > fe->disk_num_bytes - fe->num_bytes))
		report_field(j, "disk_num_bytes", "file extent extends past its data extent of length ",
			     fe->disk_num_bytes);
	if (fe->compression && (fe->ram_bytes > EXTENT_COMPRESSED_MAX || fe->disk_num_bytes > EXTENT_COMPRESSED_MAX))
		report_field(j, "ram_bytes", "compressed extent is too large, uncompressed length ", fe->ram_bytes);
	if (fe->type == FILE_EXTENT_PREALLOC && coded)
		report_field(j, "compression", "preallocated extent has compression type ", fe->compression);
}

void check_extent_fields(struct check *c, const struct node *leaf, const struct item *item,
			 const struct file_extent *fe)
{
	const struct checked j = { c, leaf, item, fe };
	const bool in_log = leaf->owner == OID_TREE_LOG;

	/* Logs belong to the next transaction. */
	if (fe->generation > c->items.generation + in_log)
		report_field(&j, "generation", "file extent is newer than the filesystem, generation ", fe->generation);
	if (fe->type == FILE_EXTENT_INLINE)
		check_inline(&j);
	else
		check_regular(&j);
	/* In file trees, the check of nbytes detects such holes. */
	if (in_log && fe->type != FILE_EXTENT_INLINE && !fe->disk_bytenr && fe->disk_num_bytes)
		report_field(&j, "disk_bytenr", "hole has a data extent length of ", fe->disk_num_bytes);
}
