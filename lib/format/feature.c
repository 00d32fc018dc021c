// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/feature.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/format/feature_bits.h"

#define WRITE(set, nr, name)                                                         \
	{                                                                            \
		BTRKIT_FEATURE_##set, 1ull << (nr), name, BTRKIT_SUPPORT_WRITE, true \
	}
/* Features that were not compared with Linux, because no available kernel can create or mount them. */
#define UNTRIED(set, nr, name)                                                        \
	{                                                                             \
		BTRKIT_FEATURE_##set, 1ull << (nr), name, BTRKIT_SUPPORT_WRITE, false \
	}
#define READ(set, nr, name)                                                          \
	{                                                                            \
		BTRKIT_FEATURE_##set, 1ull << (nr), name, BTRKIT_SUPPORT_READ, false \
	}
#define REFUSED(set, nr, name)                                                          \
	{                                                                               \
		BTRKIT_FEATURE_##set, 1ull << (nr), name, BTRKIT_SUPPORT_REFUSED, false \
	}

#define LOG_TREE "log tree"

static const struct btrkit_feature features[] = {
	WRITE(COMPAT_RO, 0, "free-space-tree"),
	WRITE(COMPAT_RO, 1, "free-space-tree-valid"),
	UNTRIED(COMPAT_RO, 2, "verity"),
	WRITE(COMPAT_RO, 3, "block-group-tree"),
	WRITE(INCOMPAT, 0, "mixed-backref"),
	WRITE(INCOMPAT, 1, "default-subvol"),
	WRITE(INCOMPAT, 2, "mixed-groups"),
	WRITE(INCOMPAT, 3, "compress-lzo"),
	WRITE(INCOMPAT, 4, "compress-zstd"),
	WRITE(INCOMPAT, 5, "big-metadata"),
	WRITE(INCOMPAT, 6, "extended-iref"),
	WRITE(INCOMPAT, 7, "raid56"),
	WRITE(INCOMPAT, 8, "skinny-metadata"),
	WRITE(INCOMPAT, 9, "no-holes"),
	WRITE(INCOMPAT, 10, "metadata-uuid"),
	WRITE(INCOMPAT, 11, "raid1c34"),
	READ(INCOMPAT, 12, "zoned"),
	REFUSED(INCOMPAT, 13, "extent-tree-v2"),
	READ(INCOMPAT, 14, "raid-stripe-tree"),
	WRITE(INCOMPAT, 16, "simple-quota"),
	REFUSED(INCOMPAT, 17, "remap-tree"),
};

/* In the order of dump-super. Linux opens a filesystem with these flags, except the refused ones. */
static const struct super_flag flags[] = {
	{ 1ull << 0, "WRITTEN", NULL, NULL },
	{ 1ull << 1, "RELOC", NULL, NULL },
	{ 1ull << 35, "CHANGING_FSID", "unfinished change of the fsid", NULL },
	{ 1ull << 36, "CHANGING_FSID_V2", "unfinished change of the metadata uuid", NULL },
	{ 1ull << 32, "SEEDING", NULL, "seed device" },
	{ 1ull << 33, "METADUMP", NULL, "metadata dump" },
	{ 1ull << 34, "METADUMP_V2", NULL, "metadata dump of version 2" },
	{ 1ull << 38, "CHANGING_BG_TREE", "unfinished conversion of the block group tree", NULL },
	{ 1ull << 39, "CHANGING_DATA_CSUM", "unfinished change of the data checksums", NULL },
	{ 1ull << 40, "CHANGING_META_CSUM", "unfinished change of the metadata checksums", NULL },
};

/* Has no name in dump-super. Linux opens a filesystem with this flag. */
#define SUPER_FLAG_ERROR (1ull << 2)

const struct btrkit_feature *btrkit_features(size_t *count)
{
	*count = sizeof(features) / sizeof(features[0]);
	return features;
}

const struct super_flag *super_flags(size_t *count)
{
	*count = sizeof(flags) / sizeof(flags[0]);
	return flags;
}

static const struct btrkit_feature *find_feature(enum btrkit_feature_set set, uint64_t bit)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (features[i].set == set && features[i].bit == bit)
			return &features[i];
	return NULL;
}

static const struct super_flag *find_flag(uint64_t bit)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].bit == bit)
			return &flags[i];
	return NULL;
}

static void append(char *list, size_t size, const char *name)
{
	text_add(list, size, "%s%s", *list ? ", " : "", name);
}

static void list_incompat(uint64_t bits, char *list, size_t size)
{
	for (unsigned nr = 0; nr < 64; nr++) {
		const struct btrkit_feature *f = find_feature(BTRKIT_FEATURE_INCOMPAT, 1ull << nr);
		char unknown[32];

		if (!(bits & 1ull << nr) || (f && f->support != BTRKIT_SUPPORT_REFUSED))
			continue;
		snprintf(unknown, sizeof(unknown), "unknown incompat bit %u", nr);
		append(list, size, f ? f->name : unknown);
	}
}

static void list_unknown_flags(uint64_t bits, char *list, size_t size)
{
	for (unsigned nr = 0; nr < 64; nr++) {
		const struct super_flag *f = find_flag(1ull << nr);
		char unknown[32];

		if (!(bits & ~SUPER_FLAG_ERROR & 1ull << nr) || f)
			continue;
		snprintf(unknown, sizeof(unknown), "unknown superblock flag %u", nr);
		append(list, size, unknown);
	}
}

bool features_half_done(const struct super *s, char *list, size_t size)
{
	*list = '\0';
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (s->flags & flags[i].bit && flags[i].refused)
			append(list, size, flags[i].refused);
	return *list;
}

/* Refuses what is in @list, if there is anything. A log tree is a cause of its own if nothing else is in the way. */
static int refuse(const struct super *s, const char *what, const char *list, struct btrkit_error *err)
{
	if (!*list)
		return 0;
	return err_because(err,
			   s->log_root && !strcmp(list, LOG_TREE) ? BTRKIT_CAUSE_LOG_TREE : BTRKIT_CAUSE_FEATURE,
			   err_set(err, BTRKIT_UNSUPPORTED, "%s: %s", what, list));
}

int features_check_done(const struct super *s, struct btrkit_error *err)
{
	char list[FEATURES_TEXT];

	features_half_done(s, list, sizeof(list));
	return refuse(s, "not supported", list, err);
}

int features_check_read(const struct super *s, struct btrkit_error *err)
{
	char list[FEATURES_TEXT] = "";

	list_incompat(s->incompat, list, sizeof(list));
	list_unknown_flags(s->flags, list, sizeof(list));
	return refuse(s, "not supported", list, err);
}

/* Whatever allows reading also allows writing, except these bits. */
static void list_unwritten_bits(const struct super *s, char *list, size_t size)
{
	const struct {
		enum btrkit_feature_set set;
		uint64_t bits;
		const char *name;
	} sets[] = { { BTRKIT_FEATURE_COMPAT_RO, s->compat_ro, "compat_ro" },
		     { BTRKIT_FEATURE_INCOMPAT, s->incompat, "incompat" } };

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		for (unsigned nr = 0; nr < 64; nr++) {
			const struct btrkit_feature *f = find_feature(sets[i].set, 1ull << nr);
			char unknown[32];

			if (!(sets[i].bits & 1ull << nr) || (f && f->support == BTRKIT_SUPPORT_WRITE))
				continue;
			snprintf(unknown, sizeof(unknown), "unknown %s bit %u", sets[i].name, nr);
			append(list, size, f ? f->name : unknown);
		}
	}
}

int features_check_write(const struct super *s, struct btrkit_error *err)
{
	char list[FEATURES_TEXT] = "";

	list_unwritten_bits(s, list, sizeof(list));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const char *why = flags[i].refused ? flags[i].refused : flags[i].unwritten;

		if (s->flags & flags[i].bit && why)
			append(list, sizeof(list), why);
	}
	if (s->flags & SUPER_FLAG_ERROR)
		append(list, sizeof(list), "error flag is set");
	if (!(s->incompat & INCOMPAT_MIXED_BACKREF))
		append(list, sizeof(list), "no mixed-backref");
	if (s->log_root)
		append(list, sizeof(list), LOG_TREE);
	return refuse(s, "writing is not supported", list, err);
}

int features_check_allocation(const struct super *s, struct btrkit_error *err)
{
	char list[FEATURES_TEXT] = "";

	features_half_done(s, list, sizeof(list));
	list_unwritten_bits(s, list, sizeof(list));
	if (s->log_root)
		append(list, sizeof(list), LOG_TREE);
	return refuse(s, "listing used ranges is not supported", list, err);
}

int features_refuse(enum btrkit_feature_set set, uint64_t bit, const char *why, struct btrkit_error *err)
{
	static const char *const sets[] = { "compat", "compat_ro", "incompat" };
	const struct btrkit_feature *f = find_feature(set, bit);

	if (f)
		err_set(err, BTRKIT_UNSUPPORTED, "%s: %s", why, f->name);
	else
		err_set(err, BTRKIT_UNSUPPORTED, "%s: unknown %s bit %d", why, sets[set], __builtin_ctzll(bit));
	return err_because(err, BTRKIT_CAUSE_FEATURE, -EOPNOTSUPP);
}
