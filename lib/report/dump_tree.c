// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/dump_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/key_names.h"
#include "lib/tree/cursor.h"

#define FLAGS_KNOWN ((BTRKIT_DUMP_CSUM_ITEMS << 1) - 1)

/* What the root tree's items are asked for. */
struct request {
	unsigned flags;
	bool found;	/* a tree that was asked for by number */
};

/* Options that ask for some trees only, and what is left when several of them are given. */
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

static int dump_whole(struct dump *d, const struct tree_root *root, enum dump_order order, struct btrkit_error *err)
{
	struct node_ref ref = root_ref(root);
	int ret = dump_blocks(d, &ref, order, err);

	if (ret)
		err_at_tree(err, root->id);
	return ret;
}

/* " BYTENR level LEVEL" of a root block, which is read so that what is said about it was seen there. */
static int dump_place(struct dump *d, const struct tree_root *root, struct btrkit_error *err)
{
	struct node_ref ref = root_ref(root);
	struct node *n;
	int ret;

	ret = node_get(d->fs, &ref, &n, err);
	if (ret) {
		err_at_tree(err, root->id);
		return ret;
	}
	emit_u64(&d->e, "bytenr", " ", n->bytenr);
	emit_u64(&d->e, "level", " level ", n->level);
	emit_text(&d->e, "\n");
	node_put(d->fs, n);
	return emit_failed(&d->e);
}

/* A tree that has an item in the root tree or the log root tree. */
static int dump_item_tree(struct dump *d, const struct btrkit_key *key, const struct tree_root *root, unsigned flags,
			  struct btrkit_error *err)
{
	dump_begin(d);
	emit_str(&d->e, "tree", "", tree_title(key->objectid));
	key_emit(&d->e, "key", " tree ", key);
	if (flags & BTRKIT_DUMP_EXTENTS) {
		emit_text(&d->e, "\n");
		/* This form has no checksums of nodes, asked for or not. */
		d->csum_headers = false;
		return dump_whole(d, root, DUMP_LEAVES, err);
	}
	if (flags & BTRKIT_DUMP_ROOTS)
		return dump_place(d, root, err);
	emit_text(&d->e, " \n");
	return dump_whole(d, root, DUMP_ALL, err);
}

/* The trees that the items of @holder from @first on name; only those with @first's objectid where @one. */
static int dump_item_trees(struct dump *d, const struct tree_root *holder, const struct btrkit_key *first, bool one,
			   struct request *req, struct btrkit_error *err)
{
	struct root_item item;
	struct tree_root root;
	struct cursor c;
	int ret;

	cursor_init(&c, d->fs, holder);
	for (ret = cursor_seek(&c, first, err); !ret; ret = cursor_next(&c, err)) {
		struct btrkit_key key = c.item.key;

		if (one && key.objectid != first->objectid)
			break;
		if (key.type != KEY_ROOT_ITEM || !is_wanted(key.objectid, req->flags))
			continue;
		ret = root_item_decode(&d->fs->items, &c.item, &item, err);
		if (ret) {
			ret = cursor_blame(&c, ret, err);
			break;
		}
		root = tree_root_of(&key, &item);
		req->found = true;
		ret = dump_item_tree(d, &key, &root, req->flags, err);
		if (ret)
			break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* The trees that the superblock names, and the block group tree. */
static int find_headed(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct btrkit_error *err)
{
	const struct super *s = &fs->super;

	switch (id) {
	case OID_ROOT_TREE:
		*ret = fs->root_tree;
		return 0;
	case OID_CHUNK_TREE:
		*ret = fs->chunk_tree;
		return 0;
	case OID_TREE_LOG:
		if (!s->log_root)
			return err_set(err, BTRKIT_NOT_FOUND, "no log tree");
		/* The log belongs to the transaction after the last that was committed. */
		*ret = (struct tree_root){ OID_TREE_LOG, 0, s->log_root, s->generation + 1, s->log_root_level };
		return 0;
	default:
		return fs_find_root(fs, id, ret, NULL, err);
	}
}

/* These trees stand under a heading without a key. */
static int dump_headed(struct dump *d, uint64_t id, const char *heading, unsigned flags, struct btrkit_error *err)
{
	struct tree_root root;
	int ret;

	ret = find_headed(d->fs, id, &root, err);
	if (ret)
		return ret;
	dump_begin(d);
	emit_str(&d->e, "tree", "", heading);
	if (flags & BTRKIT_DUMP_ROOTS) {
		emit_text(&d->e, ":");
		return dump_place(d, &root, err);
	}
	emit_text(&d->e, "\n");
	return dump_whole(d, &root, DUMP_ALL, err);
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

static int dump_everything(struct dump *d, unsigned flags, struct btrkit_error *err)
{
	struct request req = { .flags = flags };
	bool has_log = d->fs->super.log_root;
	struct tree_root log;
	int ret = 0;

	if (!(flags & (BTRKIT_DUMP_EXTENTS | BTRKIT_DUMP_UUIDS)))
		for (size_t i = 0; i < (has_log ? 3 : 2) && !ret; i++)
			ret = dump_headed(d, headed[i].id, headed[i].heading, flags, err);
	if (!ret)
		ret = dump_item_trees(d, &d->fs->root_tree, &KEY(0, 0, 0), false, &req, err);
	if (ret || !has_log)
		return ret;
	ret = find_headed(d->fs, OID_TREE_LOG, &log, err);
	if (ret)
		return ret;
	return dump_item_trees(d, &log, &KEY(0, 0, 0), false, &req, err);
}

/* One tree by its objectid. *totals: it is one of those after which the filesystem's totals stand. */
static int dump_tree_by_id(struct dump *d, uint64_t id, unsigned flags, bool *totals, struct btrkit_error *err)
{
	struct request req = { .flags = flags };
	int ret;

	for (size_t i = 0; i < sizeof(headed) / sizeof(headed[0]); i++)
		if (headed[i].id == id)
			return dump_headed(d, id, headed[i].heading, flags & ~BTRKIT_DUMP_ROOTS, err);
	ret = dump_item_trees(d, &d->fs->root_tree, &KEY(id, 0, 0), true, &req, err);
	if (ret)
		return ret;
	if (!req.found && is_wanted(id, flags))
		return err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id);
	*totals = true;
	return 0;
}

static void dump_backup_root(struct emit *e, const char *words, le64 generation, le64 bytenr)
{
	emit_u64(e, "generation", words, le64_get(generation));
	emit_u64(e, "bytenr", " block ", le64_get(bytenr));
	emit_text(e, "\n");
}

static void dump_backups(struct dump *d)
{
	const char *extent_words =
		d->fs->super.incompat & INCOMPAT_EXTENT_TREE_V2 ? "\t\tblock group root gen " : "\t\textent root gen ";
	struct emit *e = &d->e;

	for (unsigned i = 0; i < SUPER_BACKUPS; i++) {
		const struct disk_root_backup *b = &d->fs->super.disk.backups[i];

		emit_u64(e, "slot", "btrfs root backup slot ", i);
		dump_backup_root(e, "\n\ttree root gen ", b->tree_root_gen, b->tree_root);
		dump_backup_root(e, extent_words, b->extent_root_gen, b->extent_root);
		dump_backup_root(e, "\t\tchunk root gen ", b->chunk_root_gen, b->chunk_root);
		dump_backup_root(e, "\t\tdevice root gen ", b->dev_root_gen, b->dev_root);
		dump_backup_root(e, "\t\tcsum root gen ", b->csum_root_gen, b->csum_root);
		dump_backup_root(e, "\t\tfs root gen ", b->fs_root_gen, b->fs_root);
		emit_u64(e, "bytes_used", "\t\t", le64_get(b->bytes_used));
		emit_u64(e, "total_bytes", " used ", le64_get(b->total_bytes));
		emit_u64(e, "num_devices", " total ", le64_get(b->num_devices));
		emit_text(e, " devices\n");
	}
}

static void dump_totals(struct dump *d)
{
	emit_u64(&d->e, "total_bytes", "total bytes ", d->fs->super.total_bytes);
	emit_u64(&d->e, "bytes_used", "\nbytes used ", d->fs->super.bytes_used);
	emit_uuid(&d->e, "fsid", "\nuuid ", d->fs->super.fsid);
	emit_text(&d->e, "\n");
}

static int dump_trees(struct dump *d, const struct btrkit_dump_options *o, struct btrkit_error *err)
{
	bool totals = !o->num_trees;
	int ret = 0;

	if (!o->num_trees)
		ret = dump_everything(d, o->flags, err);
	for (size_t i = 0; i < o->num_trees && !ret; i++)
		ret = dump_tree_by_id(d, o->trees[i], o->flags, &totals, err);
	if (ret || d->damage || !totals || o->flags & (BTRKIT_DUMP_EXTENTS | BTRKIT_DUMP_DEVICES | BTRKIT_DUMP_UUIDS))
		return ret;
	dump_begin(d);
	if (o->flags & BTRKIT_DUMP_BACKUPS)
		dump_backups(d);
	dump_totals(d);
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Blocks come in the order of their addresses, each once. */
static int dump_chosen_blocks(struct dump *d, const struct btrkit_dump_options *o, struct btrkit_error *err)
{
	enum dump_order order = o->flags & BTRKIT_DUMP_FOLLOW ? DUMP_ALL : DUMP_ALONE;
	uint64_t *blocks = calloc(o->num_blocks, sizeof(*blocks));
	int ret = 0;

	if (!blocks)
		return err_nomem(err);
	memcpy(blocks, o->blocks, o->num_blocks * sizeof(*blocks));
	qsort(blocks, o->num_blocks, sizeof(*blocks), compare_u64);
	for (size_t i = 0; i < o->num_blocks && !ret; i++) {
		struct node_ref ref = { blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };

		if (i && blocks[i] == blocks[i - 1])
			continue;
		if (blocks[i] % d->fs->super.sectorsize)
			ret = err_set(err, BTRKIT_INVALID, "block %" PRIu64 " is not aligned to the sectorsize",
				      blocks[i]);
		else
			ret = dump_blocks(d, &ref, order, err);
	}
	free(blocks);
	return ret;
}

int btrkit_dump_tree(struct btrkit_fs *fs, const struct btrkit_dump_options *opts, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err)
{
	static const struct btrkit_dump_options everything = BTRKIT_DUMP_OPTIONS_INIT;
	const struct btrkit_dump_options *o = opts ? opts : &everything;
	struct dump d = {
		.fs = fs,
		.render = (o->flags & BTRKIT_DUMP_HIDE_NAMES ? RENDER_HIDE_NAMES : 0) |
			  (o->flags & BTRKIT_DUMP_CSUM_ITEMS ? RENDER_CSUM_ITEMS : 0),
		.csum_headers = o->flags & BTRKIT_DUMP_CSUM_HEADERS,
		.depth_first = o->flags & BTRKIT_DUMP_DFS,
	};
	int ret, written;

	if (o->flags & ~FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", o->flags & ~FLAGS_KNOWN);
	if (emit_init(&d.e, EMIT_TEXT, write, ctx))
		return err_nomem(err);
	ret = o->num_blocks ? dump_chosen_blocks(&d, o, err) : dump_trees(&d, o, err);
	if (!ret)
		dump_begin(&d);
	if (!ret && d.damage) {
		ret = d.damage;
		if (err)
			*err = d.damage_error;
	}
	written = emit_finish(&d.e);
	if (written)
		return err_system(err, written, "cannot write the dump");
	return ret;
}
