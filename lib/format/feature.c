// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/feature.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"

#define READ(set, nr, name) { BTRKIT_##set, 1ull << (nr), name, BTRKIT_READ, true }
/* The kernel at hand cannot make one, or cannot mount it. */
#define UNTRIED(set, nr, name) { BTRKIT_##set, 1ull << (nr), name, BTRKIT_READ, false }
#define REFUSED(set, nr, name) { BTRKIT_##set, 1ull << (nr), name, BTRKIT_REFUSED, false }

static const struct btrkit_feature features[] = {
	READ(COMPAT_RO, 0, "free-space-tree"),
	READ(COMPAT_RO, 1, "free-space-tree-valid"),
	UNTRIED(COMPAT_RO, 2, "verity"),
	READ(COMPAT_RO, 3, "block-group-tree"),
	READ(INCOMPAT, 0, "mixed-backref"),
	READ(INCOMPAT, 1, "default-subvol"),
	READ(INCOMPAT, 2, "mixed-groups"),
	READ(INCOMPAT, 3, "compress-lzo"),
	READ(INCOMPAT, 4, "compress-zstd"),
	READ(INCOMPAT, 5, "big-metadata"),
	READ(INCOMPAT, 6, "extended-iref"),
	REFUSED(INCOMPAT, 7, "raid56"),
	READ(INCOMPAT, 8, "skinny-metadata"),
	READ(INCOMPAT, 9, "no-holes"),
	READ(INCOMPAT, 10, "metadata-uuid"),
	REFUSED(INCOMPAT, 11, "raid1c34"),
	REFUSED(INCOMPAT, 12, "zoned"),
	REFUSED(INCOMPAT, 13, "extent-tree-v2"),
	REFUSED(INCOMPAT, 14, "raid-stripe-tree"),
	READ(INCOMPAT, 16, "simple-quota"),
	REFUSED(INCOMPAT, 17, "remap-tree"),
};

/* The superblock's flags with which Linux opens a filesystem: written, reloc, error, seeding, metadump, metadump v2. */
#define SUPER_FLAGS_READ (1ull << 0 | 1ull << 1 | 1ull << 2 | 1ull << 32 | 1ull << 33 | 1ull << 34)

static const struct {
	uint64_t bit;
	const char *name;
} refused_flags[] = {
	{ 1ull << 35, "unfinished change of the fsid" },
	{ 1ull << 36, "unfinished change of the metadata uuid" },
	{ 1ull << 38, "unfinished conversion of the block group tree" },
	{ 1ull << 39, "unfinished change of the data checksums" },
	{ 1ull << 40, "unfinished change of the metadata checksums" },
};

const struct btrkit_feature *btrkit_features(size_t *count)
{
	*count = sizeof(features) / sizeof(features[0]);
	return features;
}

static const struct btrkit_feature *find_incompat(uint64_t bit)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (features[i].set == BTRKIT_INCOMPAT && features[i].bit == bit)
			return &features[i];
	return NULL;
}

static void append(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", name);
}

static void list_incompat(uint64_t bits, char *list, size_t size)
{
	for (unsigned nr = 0; nr < 64; nr++) {
		const struct btrkit_feature *f = find_incompat(1ull << nr);
		char unknown[32];

		if (!(bits & 1ull << nr) || (f && f->support != BTRKIT_REFUSED))
			continue;
		snprintf(unknown, sizeof(unknown), "unknown incompat bit %u", nr);
		append(list, size, f ? f->name : unknown);
	}
}

static void list_flags(uint64_t flags, char *list, size_t size)
{
	for (unsigned nr = 0; nr < 64; nr++) {
		char unknown[32];
		const char *name = unknown;

		if (!(flags & ~SUPER_FLAGS_READ & 1ull << nr))
			continue;
		snprintf(unknown, sizeof(unknown), "unknown superblock flag %u", nr);
		for (size_t i = 0; i < sizeof(refused_flags) / sizeof(refused_flags[0]); i++)
			if (refused_flags[i].bit == 1ull << nr)
				name = refused_flags[i].name;
		append(list, size, name);
	}
}

int features_check_read(const struct super *s, struct btrkit_error *err)
{
	char list[128] = "";

	list_incompat(s->incompat, list, sizeof(list));
	list_flags(s->flags, list, sizeof(list));
	return *list ? err_set(err, BTRKIT_UNSUPPORTED, "not supported: %s", list) : 0;
}
