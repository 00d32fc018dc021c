// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks what Linux requires of a superblock beyond what is needed to read the filesystem. */
#include <inttypes.h>
#include <stdio.h>

#include <btrkit/feature.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/supers/super_fields.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"

#define FLAG_ERROR (1ull << 2)
#define BLOCKS_MIN 6 /* tree blocks of the smallest filesystem */

BTRKIT_PRINTF(4, 5)
static void report_super_field(struct check *c, enum check_code code, const char *field, const char *fmt, ...)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char message[sizeof(what.message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	check_report_at(c, code, &(struct check_location){ .field = field }, "%s", message);
}

static void check_numbers(struct check *c, const struct super *s)
{
	const uint32_t stripesize = le32_get(s->disk.stripesize);
	const uint64_t root_dir = le64_get(s->disk.root_dir_objectid);

	if (!stripesize || stripesize & (stripesize - 1))
		report_super_field(c, CHECK_SUPER_FIELD, "stripesize", "invalid stripesize %" PRIu32, stripesize);
	else if (stripesize != 4096 && stripesize != s->sectorsize)
		report_super_field(c, CHECK_SUPER_VALUE, "stripesize",
				   "stripesize %" PRIu32 " is neither 4096 nor the sectorsize", stripesize);
	if (!s->root)
		report_super_field(c, CHECK_SUPER_FIELD, "root", "superblock has no root tree");
	if (s->bytes_used < BLOCKS_MIN * (uint64_t)s->nodesize)
		report_super_field(c, CHECK_SUPER_FIELD, "bytes_used",
				   "bytes_used is %" PRIu64 ", less than in an empty filesystem", s->bytes_used);
	if (root_dir != OID_ROOT_TREE_DIR)
		report_super_field(c, CHECK_SUPER_FIELD, "root_dir_objectid",
				   "root tree directory is inode %" PRIu64 ", expected 6", root_dir);
	if (s->cache_generation > s->generation && s->cache_generation != UINT64_MAX)
		report_super_field(c, CHECK_SUPER_VALUE, "cache_generation",
				   "cache generation %" PRIu64 " is newer than superblock generation %" PRIu64,
				   s->cache_generation, s->generation);
	if (s->uuid_tree_generation > s->generation)
		report_super_field(c, CHECK_SUPER_VALUE, "uuid_tree_generation",
				   "UUID tree generation %" PRIu64 " is newer than superblock generation %" PRIu64,
				   s->uuid_tree_generation, s->generation);
}

static uint64_t known_compat_ro(void)
{
	size_t n;
	const struct btrkit_feature *features = btrkit_features(&n);
	uint64_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (features[i].set == BTRKIT_FEATURE_COMPAT_RO)
			known |= features[i].bit;
	return known;
}

static void check_features(struct check *c, const struct super *s)
{
	const uint64_t valid = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;
	const uint64_t unknown = s->compat_ro & ~known_compat_ro();

	if (unknown)
		report_super_field(c, CHECK_SUPER_FEATURE, "compat_ro_flags", "unknown compat_ro features 0x%" PRIx64,
				   unknown);
	if (s->compat_ro & COMPAT_RO_BLOCK_GROUP_TREE &&
	    ((s->compat_ro & valid) != valid || !(s->incompat & INCOMPAT_NO_HOLES)))
		report_super_field(c, CHECK_SUPER_FEATURE, "compat_ro_flags",
				   "block-group-tree requires no-holes and a valid free space tree");
	else if ((s->compat_ro & valid) == COMPAT_RO_FREE_SPACE_TREE_VALID)
		report_super_field(c, CHECK_SUPER_VALUE, "compat_ro_flags",
				   "free-space-tree-valid is set, but free-space-tree is not");
	if (s->incompat & INCOMPAT_MIXED_GROUPS && s->nodesize != s->sectorsize)
		report_super_field(c, CHECK_SUPER_FEATURE, "incompat_flags",
				   "mixed-groups requires that nodesize %" PRIu32 " and sectorsize %" PRIu32
				   " are equal",
				   s->nodesize, s->sectorsize);
	/* The superblock of a seed is in use if none of its devices can be written to. */
	if (s->flags & SUPER_FLAG_SEEDING && s->log_root)
		report_super_field(c, CHECK_SUPER_FIELD, "log_root",
				   "a seed filesystem has a log tree, which cannot be replayed");
}

void supers_check_fields(struct check *c)
{
	const struct super *s = &c->fs->super;
	char list[FEATURES_TEXT];

	check_numbers(c, s);
	check_features(c, s);
	if (features_half_done(s, list, sizeof(list)))
		report_super_field(c, CHECK_SUPER_UNFINISHED, "flags", "%s", list);
	if (s->flags & FLAG_ERROR)
		report_super_field(c, CHECK_SUPER_UNFINISHED, "flags", "filesystem is marked as having errors");
}
