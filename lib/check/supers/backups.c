// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks the backup roots in the superblock. When Linux records them, the next transaction may already have started,
 * and trees that it changed have a generation above the superblock's. Only roots of the superblock's generation or
 * older can be known to be wrong. The slot of this commit may thus begin with the root tree of the next commit, and the
 * slot of the previous commit with the root tree of this one.
 */
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/supers/backups.h"

/* What a slot says about one tree. */
struct backup {
	const char *name;
	uint64_t tree;
	le64 bytenr, generation;
	uint8_t level;
};

#define BACKUPS 6

static void trees_of(const struct disk_root_backup *d, struct backup ret[BACKUPS])
{
	const struct backup trees[BACKUPS] = {
		{ "tree_root", OID_ROOT_TREE, d->tree_root, d->tree_root_gen, d->tree_root_level },
		{ "chunk_root", OID_CHUNK_TREE, d->chunk_root, d->chunk_root_gen, d->chunk_root_level },
		{ "extent_root", OID_EXTENT_TREE, d->extent_root, d->extent_root_gen, d->extent_root_level },
		{ "fs_root", OID_FS_TREE, d->fs_root, d->fs_root_gen, d->fs_root_level },
		{ "dev_root", OID_DEV_TREE, d->dev_root, d->dev_root_gen, d->dev_root_level },
		{ "csum_root", OID_CSUM_TREE, d->csum_root, d->csum_root_gen, d->csum_root_level },
	};

	for (size_t i = 0; i < BACKUPS; i++)
		ret[i] = trees[i];
}

/* @return whether there is a root to compare with */
static bool find_root(struct check *c, uint64_t id, struct tree_root *ret)
{
	if (id == OID_ROOT_TREE)
		*ret = c->fs->root_tree;
	else if (id == OID_CHUNK_TREE)
		*ret = c->fs->chunk_tree;
	else
		return !fs_find_root(c->fs, id, ret, NULL, NULL);
	return true;
}

/* @return the name of the first wrong field, or NULL */
static const char *check_slot(struct check *c, const struct disk_root_backup *d)
{
	struct backup trees[BACKUPS];

	trees_of(d, trees);
	for (size_t i = 0; i < BACKUPS; i++) {
		const struct backup *b = &trees[i];
		struct tree_root root;

		if (!le64_get(b->bytenr) || le64_get(b->generation) > c->fs->super.generation ||
		    !find_root(c, b->tree, &root))
			continue;
		if (le64_get(b->bytenr) != root.bytenr || le64_get(b->generation) != root.generation ||
		    b->level != root.level)
			return b->name;
	}
	return NULL;
}

/* Blocks of older commits may have been overwritten, so only impossible values are wrong. */
static const char *check_shape(struct check *c, const struct disk_root_backup *d)
{
	struct backup trees[BACKUPS];

	trees_of(d, trees);
	for (size_t i = 0; i < BACKUPS; i++) {
		const struct backup *b = &trees[i];

		if (le64_get(b->bytenr) % c->items.sectorsize || b->level >= LEVELS_MAX ||
		    le64_get(b->generation) > c->fs->super.generation + 1)
			return b->name;
	}
	return NULL;
}

static void report_backup(struct check *c, unsigned slot, const char *field, const char *message)
{
	check_report_at(c, CHECK_SUPER_BACKUP, &(struct check_location){ .field = field }, "backup root slot %u %s",
			slot, message);
}

void supers_check_backups(struct check *c)
{
	const struct super *s = &c->fs->super;
	const char *wrong = NULL;
	bool right = false;
	unsigned slot = 0;

	for (unsigned i = 0; i < SUPER_BACKUPS; i++) {
		const struct disk_root_backup *d = &s->disk.backups[i];
		const char *field = check_shape(c, d);

		if (field)
			report_backup(c, i, field, "has an impossible address, level or generation");
		right |= !field && le64_get(d->tree_root_gen) > s->generation;
		if (field || le64_get(d->tree_root_gen) != s->generation)
			continue;
		field = check_slot(c, d);
		right |= !field;
		if (field && !wrong) {
			wrong = field;
			slot = i;
		}
	}
	/* After a crash, a slot may claim this generation for a commit that failed; the right slot follows it. */
	if (wrong && !right)
		report_backup(c, slot, wrong, "has the superblock's generation, but not the current root of the tree");
}
