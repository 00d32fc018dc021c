// SPDX-License-Identifier: LGPL-2.1-or-later
/* Selects the trees to dump, and prints their headings. */
#include "lib/dump/dump_tree_trees.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/dump/dump_tree_walk.h"
#include "lib/format/key_names.h"
#include "lib/tree/cursor.h"

/* Combine the options that restrict the dump to some trees. */
static bool is_wanted(uint64_t id, unsigned flags)
{
	bool extents = flags & BTRKIT_DUMP_EXTENTS;
	bool devices = flags & BTRKIT_DUMP_DEVICES;
	bool uuids = flags & BTRKIT_DUMP_UUIDS;

	if (!extents && !devices && !uuids)
		return true;
	switch (id) {
	case OID_EXTENT_TREE:
		return !devices && !uuids;
	case OID_DEV_TREE:
		return !uuids;
	case OID_UUID_TREE:
		return !extents && !devices;
	default:
		return id == OID_ROOT_TREE_DIR;
	}
}

static struct node_ref root_ref(const struct tree_root *root)
{
	return (struct node_ref){ root->bytenr, root->generation, root->id, root->level, NULL };
}

/* Gets the dump for a heading. If only some items are shown, the heading waits for one of them. */
static int heading(struct dump_report *r, struct dump **d, struct btrkit_error *err)
{
	int ret = r->select.any ? dump_run_heading(&r->run, d, err) : dump_run_text(&r->run, d, err);

	if (!ret)
		dump_begin(*d);
	return ret;
}

/* Prints " BYTENR level LEVEL" of a root block. The block is read to ensure that it is valid. */
static int dump_place(struct dump_report *r, struct dump *d, const struct tree_root *root, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct node_ref ref = root_ref(root);
	struct node *n;
	int ret;

	ret = node_get(r->fs, &ref, &n, &what);
	if (ret && !dump_is_damage(ret))
		return err_nomem(err);
	if (ret) {
		emit_text(&d->e, "\n");
		err_at_tree(&what, root->id);
		dump_damaged_block(d, &ref, ret, &what);
		return 0;
	}
	if (!dump_is_json(d)) {
		emit_u64(&d->e, "", " ", n->bytenr);
		emit_u64(&d->e, "", " level ", n->level);
		emit_text(&d->e, "\n");
	}
	node_put(r->fs, n);
	return 0;
}

/* Dumps a tree that has a root item in the root tree or in the log root tree. */
static int dump_item_tree(struct dump_report *r, const struct btrkit_key *key, const struct root_item *item, bool log,
			  struct btrkit_error *err)
{
	const struct tree_root root = fs_root_of(r->fs, key, item);
	const struct node_ref ref = root_ref(&root);
	/* A partly deleted subvolume has no references, and the item has the progress of the deletion. */
	struct dump_what what = { .order = report_order(r),
				  .dropping = !item->refs && item->drop_progress.objectid,
				  .drop_key = item->drop_progress,
				  .drop_level = item->drop_level };
	struct dump *d;
	int ret;

	if (!dump_select_tree(&r->select, key->objectid, r->named, log, &what))
		return 0;
	ret = heading(r, &d, err);
	if (ret)
		return ret;
	dump_heading(d, tree_title(key->objectid), key, &root);
	if (r->flags & BTRKIT_DUMP_EXTENTS) {
		emit_text(&d->e, "\n");
		/* This output never includes checksums of nodes. */
		r->run.like.csum_headers = false;
		d->csum_headers = false;
		what.order = DUMP_LEAVES;
	} else if (r->flags & BTRKIT_DUMP_ROOTS) {
		return dump_place(r, d, &root, err);
	} else {
		emit_text(&d->e, " \n");
	}
	return dump_tree_walk(&r->run, &ref, &what, err);
}

/* State to report unreadable root items. */
struct losing {
	struct dump_report *r;
	struct btrkit_error *err;
};

static int tell_lost(void *ctx, int ret, const struct btrkit_error *what)
{
	const struct losing *l = ctx;
	const struct node_ref ref = { what->logical, NODE_ANY, what->tree, LEVELS_MAX, NULL };
	struct dump *d;

	int r = 0;

	/* Report it only once, not for each requested tree. */
	if (!l->r->told && !l->r->lost)
		r = dump_run_text(&l->r->run, &d, l->err);
	if (!r && !l->r->told && !l->r->lost)
		dump_damaged_block(d, &ref, ret, what);
	l->r->lost = true;
	return r;
}

/* Whether an invalid root item still has a valid location. */
static bool says_where(const struct dump_report *r, const struct item *item, struct root_item *ret)
{
	return item->key.objectid && root_item_read(item, ret) && ret->level < LEVELS_MAX &&
	       !(ret->bytenr % r->fs->geometry.sectorsize);
}

/* Reports an invalid root item. */
static int tell_bad_item(struct dump_report *r, struct cursor *c, bool shown, int ret, struct btrkit_error *what,
			 struct btrkit_error *err)
{
	struct dump *d;
	int got = dump_run_text(&r->run, &d, err);

	if (got)
		return got;
	cursor_blame(c, ret, what);
	dump_damaged_root(d, &c->item.key, shown, ret, what);
	return 0;
}

static int dump_root_item(struct dump_report *r, struct cursor *c, bool log, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const struct btrkit_key key = c->item.key;
	struct root_item item;
	bool shown = true;
	int ret;

	if (key.type != KEY_ROOT_ITEM || !is_wanted(key.objectid, r->flags))
		return 0;
	r->found = true;
	for (size_t i = 0; i < r->fs->num_backup_roots; i++)
		r->seen[i] |= r->fs->backup_roots[i].id == key.objectid;
	ret = root_item_decode(&r->fs->items, &c->item, &item, &what);
	if (ret) {
		shown = says_where(r, &c->item, &item);
		ret = tell_bad_item(r, c, shown, ret, &what, err);
	}
	return ret || !shown ? ret : dump_item_tree(r, &key, &item, log, err);
}

/* Dumps the trees whose items are in @holder: those with objectid @id, or all if @id is 0. */
static int dump_item_trees(struct dump_report *r, const struct tree_root *holder, uint64_t id, struct btrkit_error *err)
{
	struct losing losing = { r, err };
	struct btrkit_key at = KEY(id, 0, 0);
	struct cursor c;
	int ret;

	cursor_init(&c, r->fs, holder);
	ret = cursor_next_around(&c, &at, true, tell_lost, &losing, err);
	while (!ret && (!id || at.objectid == id)) {
		ret = dump_root_item(r, &c, holder->id == OID_TREE_LOG, err);
		if (!ret)
			ret = cursor_next_around(&c, &at, false, tell_lost, &losing, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Dumps trees that are only in the backup roots: tree @id, or all if @id is 0. */
static int dump_backup_trees(struct dump_report *r, uint64_t id, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && r->lost && i < r->fs->num_backup_roots; i++) {
		const struct tree_root *root = &r->fs->backup_roots[i];
		const struct btrkit_key key = KEY(root->id, KEY_ROOT_ITEM, 0);
		const struct root_item item = { .bytenr = root->bytenr, .generation = root->generation,
						.level = root->level, .refs = 1 };

		if ((id && root->id != id) || r->seen[i] || !is_wanted(root->id, r->flags))
			continue;
		r->found = true;
		ret = dump_item_tree(r, &key, &item, false, err);
	}
	return ret;
}

/* Finds a tree that the superblock points to, or the block group tree. */
static int find_headed(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct btrkit_error *err)
{
	const struct super *s = &fs->super;

	if (id != OID_TREE_LOG)
		return fs_find_tree(fs, id, ret, NULL, err);
	if (!s->log_root)
		return err_set(err, BTRKIT_NOT_FOUND, "no log tree");
	/* The log is one generation ahead of the last committed transaction. */
	*ret = (struct tree_root){ OID_TREE_LOG, 0, s->log_root, s->generation + 1, s->log_root_level };
	return 0;
}

/* Dumps a tree whose heading has no key. */
static int dump_headed(struct dump_report *r, uint64_t id, const char *title, bool places, struct btrkit_error *err)
{
	struct dump_what what = { .order = report_order(r) };
	struct tree_root root;
	struct node_ref ref;
	struct dump *d;
	int ret;

	if (!dump_select_tree(&r->select, id, r->named, false, &what))
		return 0;
	ret = find_headed(r->fs, id, &root, err);
	if (ret)
		return ret;
	ret = heading(r, &d, err);
	if (ret)
		return ret;
	dump_heading(d, title, NULL, &root);
	if (places) {
		emit_text(&d->e, ":");
		return dump_place(r, d, &root, err);
	}
	emit_text(&d->e, "\n");
	ref = root_ref(&root);
	return dump_tree_walk(&r->run, &ref, &what, err);
}

static const struct {
	uint64_t id;
	const char *heading;
} headed[] = {
	{ OID_ROOT_TREE, "root tree" },
	{ OID_CHUNK_TREE, "chunk tree" },
	{ OID_TREE_LOG, "log root tree" },
	{ OID_BLOCK_GROUP_TREE, "block group tree" },
};

static int dump_everything(struct dump_report *r, struct btrkit_error *err)
{
	const bool has_log = r->fs->super.log_root;
	struct tree_root log;
	int ret = 0;

	if (!(r->flags & (BTRKIT_DUMP_EXTENTS | BTRKIT_DUMP_UUIDS))) {
		r->told = !(r->flags & BTRKIT_DUMP_ROOTS) && !r->select.any;
		for (size_t i = 0; i < (has_log ? 3 : 2) && !ret; i++)
			ret = dump_headed(r, headed[i].id, headed[i].heading, r->flags & BTRKIT_DUMP_ROOTS, err);
	}
	if (!ret)
		ret = dump_item_trees(r, &r->fs->root_tree, 0, err);
	if (!ret)
		ret = dump_backup_trees(r, 0, err);
	if (ret || !has_log)
		return ret;
	ret = find_headed(r->fs, OID_TREE_LOG, &log, err);
	return ret ? ret : dump_item_trees(r, &log, 0, err);
}

/* Dumps one tree. *totals is set if the totals of the filesystem are to follow. */
static int dump_tree_by_id(struct dump_report *r, uint64_t id, bool *totals, struct btrkit_error *err)
{
	int ret;

	for (size_t i = 0; i < sizeof(headed) / sizeof(headed[0]); i++)
		if (headed[i].id == id)
			return dump_headed(r, id, headed[i].heading, false, err);
	r->found = false;
	ret = dump_item_trees(r, &r->fs->root_tree, id, err);
	if (!ret)
		ret = dump_backup_trees(r, id, err);
	if (ret)
		return ret;
	/* If items were lost, the tree may be among them, and the damage is the error. */
	if (!r->found && !r->lost && is_wanted(id, r->flags))
		return err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id);
	*totals = true;
	return 0;
}

static bool is_asked_for(const struct btrkit_dump_options *o, uint64_t id)
{
	for (size_t i = 0; i < o->num_trees; i++)
		if (o->trees[i] == id)
			return true;
	return false;
}

/* Dumps the items of an inode's extents in other trees, unless these trees are requested anyway. */
static int dump_extents_of(struct dump_report *r, struct btrkit_error *err)
{
	static const uint64_t ids[] = { OID_EXTENT_TREE, OID_CSUM_TREE };
	bool totals;
	int ret = 0;

	for (size_t i = 0; !ret && r->select.with_extents && i < 2; i++)
		if (!is_asked_for(r->o, ids[i]))
			ret = dump_tree_by_id(r, ids[i], &totals, err);
	return ret;
}

int dump_report_trees(struct dump_report *r, struct btrkit_error *err)
{
	const struct btrkit_dump_options *o = r->o;
	bool totals = !o->num_trees;
	struct dump *d;
	int ret = 0;

	if (!o->num_trees)
		ret = dump_everything(r, err);
	for (size_t i = 0; i < o->num_trees && !ret; i++)
		ret = dump_tree_by_id(r, o->trees[i], &totals, err);
	if (!ret && o->num_trees)
		ret = dump_extents_of(r, err);
	if (!ret)
		ret = dump_run_drain(&r->run, err);
	if (ret || r->run.lost || !totals || r->select.any ||
	    o->flags & (BTRKIT_DUMP_EXTENTS | BTRKIT_DUMP_DEVICES | BTRKIT_DUMP_UUIDS))
		return ret;
	ret = dump_run_text(&r->run, &d, err);
	if (ret)
		return ret;
	dump_begin(d);
	if (o->flags & BTRKIT_DUMP_BACKUPS)
		dump_backups(d);
	dump_totals(d);
	return 0;
}
