// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/start.h"

#include <inttypes.h>

#include "lib/base/err.h"

#define ELSEWHERE (BTRKIT_OPEN_BACKUP | BTRKIT_OPEN_TREE_ROOT | BTRKIT_OPEN_CHUNK_ROOT)

int start_check(const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	if (opts->flags & BTRKIT_OPEN_WRITE && opts->flags & (ELSEWHERE | BTRKIT_OPEN_PARTIAL))
		return err_set(err, BTRKIT_INVALID, "other roots or a part of a filesystem cannot be written");
	if (opts->flags & BTRKIT_OPEN_BACKUP && opts->backup >= SUPER_BACKUPS)
		return err_set(err, BTRKIT_INVALID, "invalid backup roots %u: must be 0 to %u", opts->backup,
			       SUPER_BACKUPS - 1);
	return 0;
}

static int backup_root(uint64_t id, le64 bytenr, le64 generation, uint8_t level, struct tree_root *ret,
		       struct btrkit_error *err)
{
	if (level >= LEVELS_MAX)
		return err_corrupt(err, "backup.level", "backup root of tree %" PRIu64 " has level %u", id, level);
	*ret = (struct tree_root){ id, 0, le64_get(bytenr), le64_get(generation), level };
	return 0;
}

static int take_backup(struct btrkit_fs *fs, unsigned slot, struct btrkit_error *err)
{
	const struct disk_root_backup *b = &fs->super.disk.backups[slot];
	struct tree_root *to = fs->backup_roots;
	const struct {
		uint64_t id;
		le64 bytenr, generation;
		uint8_t level;
	} trees[BACKUP_TREES] = {
		{ OID_EXTENT_TREE, b->extent_root, b->extent_root_gen, b->extent_root_level },
		{ OID_DEV_TREE, b->dev_root, b->dev_root_gen, b->dev_root_level },
		{ OID_FS_TREE, b->fs_root, b->fs_root_gen, b->fs_root_level },
		{ OID_CSUM_TREE, b->csum_root, b->csum_root_gen, b->csum_root_level },
	};
	int ret;

	if (!le64_get(b->tree_root) || !le64_get(b->chunk_root))
		return err_set(err, BTRKIT_NOT_FOUND, "no backup roots in slot %u", slot);
	ret = backup_root(OID_ROOT_TREE, b->tree_root, b->tree_root_gen, b->tree_root_level, &fs->root_tree, err);
	if (!ret)
		ret = backup_root(OID_CHUNK_TREE, b->chunk_root, b->chunk_root_gen, b->chunk_root_level,
				  &fs->chunk_tree, err);
	for (size_t i = 0; !ret && i < BACKUP_TREES; i++)
		if (le64_get(trees[i].bytenr))
			ret = backup_root(trees[i].id, trees[i].bytenr, trees[i].generation, trees[i].level,
					  &to[fs->num_backup_roots++], err);
	return ret;
}

int start_roots(struct btrkit_fs *fs, const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	const struct super *s = &fs->super;

	fs->root_tree = (struct tree_root){ OID_ROOT_TREE, 0, s->root, s->generation, s->root_level };
	fs->chunk_tree = (struct tree_root){ OID_CHUNK_TREE, 0, s->chunk_root, s->chunk_root_generation,
					     s->chunk_root_level };
	/* A log tree belongs to the roots in the superblock. */
	if (opts->flags & (BTRKIT_OPEN_BACKUP | BTRKIT_OPEN_TREE_ROOT))
		fs->super.log_root = 0;
	return opts->flags & BTRKIT_OPEN_BACKUP ? take_backup(fs, opts->backup, err) : 0;
}

/* Completes a root given by address from the header of the block. */
static int look_up(struct btrkit_fs *fs, uint64_t bytenr, struct tree_root *root, struct btrkit_error *err)
{
	const struct node_ref ref = { bytenr, NODE_ANY, root->id, LEVELS_MAX, NULL };
	struct node *n;
	int ret;

	if (bytenr % fs->geometry.sectorsize)
		return err_set(err, BTRKIT_INVALID, "block %" PRIu64 " is not aligned to the sectorsize", bytenr);
	ret = node_get(fs, &ref, &n, err);
	if (ret) {
		err_at_tree(err, root->id);
		return ret;
	}
	*root = (struct tree_root){ root->id, 0, bytenr, n->generation, n->level };
	node_put(fs, n);
	return 0;
}

int start_chunk_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	return opts->flags & BTRKIT_OPEN_CHUNK_ROOT ? look_up(fs, opts->chunk_root, &fs->chunk_tree, err) : 0;
}

int start_tree_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts, struct btrkit_error *err)
{
	return opts->flags & BTRKIT_OPEN_TREE_ROOT ? look_up(fs, opts->tree_root, &fs->root_tree, err) : 0;
}

int start_partial(struct btrkit_fs *fs, const struct btrkit_open_options *opts, int ret,
		  const struct btrkit_error *what, struct btrkit_error *err)
{
	const bool damage = ret == -EUCLEAN || ret == -EIO || ret == -ENXIO || ret == -EOPNOTSUPP;

	if (!ret)
		return 0;
	if (!damage || !(opts->flags & BTRKIT_OPEN_PARTIAL)) {
		if (err)
			*err = *what;
		return ret;
	}
	if (!fs->damage) {
		fs->damage = ret;
		fs->damage_error = *what;
	}
	return 0;
}
