// SPDX-License-Identifier: LGPL-2.1-or-later
/* The backup roots in the superblock. */
#include "audit.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/tree/cursor.h"

/* The fields of a backup slot that describe one tree. */
struct backup {
	const char *name;
	le64 bytenr, generation;
	uint8_t level;
	uint64_t tree;
};

static int find_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct btrkit_error *err)
{
	if (id != OID_ROOT_TREE && id != OID_CHUNK_TREE)
		return fs_find_root(fs, id, ret, NULL, err);
	*ret = id == OID_ROOT_TREE ? fs->root_tree : fs->chunk_tree;
	return 0;
}

static int check_backup(struct btrkit_fs *fs, const struct backup *b, struct btrkit_error *err)
{
	struct tree_root root;
	int ret = find_root(fs, b->tree, &root, err);

	if (ret)
		return ret;
	if (le64_get(b->bytenr) == root.bytenr && le64_get(b->generation) == root.generation && b->level == root.level)
		return 0;
	err_corrupt(err, b->name,
		    "backup root says block %" PRIu64 " of generation %" PRIu64
		    ", level %u, where the tree has %" PRIu64 ", %" PRIu64 ", %u",
		    le64_get(b->bytenr), le64_get(b->generation), b->level, root.bytenr, root.generation, root.level);
	err_at_tree(err, b->tree);
	return -EUCLEAN;
}

/* Checks the slot of the current generation. */
static int check_slot(struct btrkit_fs *fs, const struct disk_root_backup *d, struct btrkit_error *err)
{
	const struct super *s = &fs->super;
	const struct backup trees[] = {
		{ "tree_root", d->tree_root, d->tree_root_gen, d->tree_root_level, OID_ROOT_TREE },
		{ "chunk_root", d->chunk_root, d->chunk_root_gen, d->chunk_root_level, OID_CHUNK_TREE },
		{ "extent_root", d->extent_root, d->extent_root_gen, d->extent_root_level, OID_EXTENT_TREE },
		{ "fs_root", d->fs_root, d->fs_root_gen, d->fs_root_level, OID_FS_TREE },
		{ "dev_root", d->dev_root, d->dev_root_gen, d->dev_root_level, OID_DEV_TREE },
		{ "csum_root", d->csum_root, d->csum_root_gen, d->csum_root_level, OID_CSUM_TREE },
	};

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		int ret = check_backup(fs, &trees[i], err);

		if (ret)
			return ret;
	}
	if (le64_get(d->total_bytes) != s->total_bytes)
		return err_corrupt(err, "backup.total_bytes",
				   "backup root says %" PRIu64 " bytes, the superblock %" PRIu64,
				   le64_get(d->total_bytes), s->total_bytes);
	if (le64_get(d->bytes_used) != s->bytes_used)
		return err_corrupt(err, "backup.bytes_used",
				   "backup root says %" PRIu64 " bytes are used, the superblock %" PRIu64,
				   le64_get(d->bytes_used), s->bytes_used);
	if (le64_get(d->num_devices) != s->num_devices)
		return err_corrupt(err, "backup.num_devices",
				   "backup root counts %" PRIu64 " devices, the superblock %" PRIu64,
				   le64_get(d->num_devices), s->num_devices);
	return 0;
}

int audit_backups(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct super *s = &fs->super;
	bool any = false;
	int ret = 0;

	/*
	 * If Linux had already begun the next transaction, a slot claims its generation; the right slot comes after it.
	 */
	for (unsigned i = 0; i < SUPER_BACKUPS; i++) {
		const struct disk_root_backup *d = &s->disk.backups[i];

		any |= le64_get(d->tree_root_gen) != 0;
		if (le64_get(d->tree_root_gen) != s->generation)
			continue;
		ret = check_slot(fs, d, err);
		if (ret != -EUCLEAN)
			return ret;
	}
	/* A program that writes backup roots at all writes one in every commit. */
	if (any && !ret)
		ret = err_corrupt(err, "backups", "no backup root is of generation %" PRIu64, s->generation);
	return ret;
}
