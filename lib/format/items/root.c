// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/root.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int root_check_key(const struct btrkit_key *key, struct btrkit_error *err)
{
	if (!key->objectid)
		return err_corrupt(err, "key.objectid", "root item of tree 0");
	/* The key offset of a relocation tree is the tree that it relocates, which may be the data relocation tree. */
	if (key->objectid == OID_TREE_RELOC && !oid_is_file_tree(key->offset) && key->offset != OID_DATA_RELOC_TREE)
		return err_corrupt(err, "key.offset", "relocation tree of %" PRIu64 ", which is not a subvolume",
				   key->offset);
	return 0;
}

static int root_check(const struct item_ctx *ctx, const struct root_item *r, struct btrkit_error *err)
{
	const uint64_t unknown = r->flags & ~(ROOT_SUBVOL_RDONLY | ROOT_SUBVOL_DEAD);
	int ret;

	if ((ret = expect_generation(ctx, "generation", r->generation, err)) < 0 ||
	    (ret = expect_generation(ctx, "generation_v2", r->generation_v2, err)) < 0 ||
	    (ret = expect_generation(ctx, "last_snapshot", r->last_snapshot, err)) < 0 ||
	    (ret = expect_aligned(ctx, "bytenr", r->bytenr, err)) < 0 ||
	    (ret = expect_level("level", r->level, err)) < 0 ||
	    (ret = expect_level("drop_level", r->drop_level, err)) < 0)
		return ret;
	if (unknown)
		return err_corrupt(err, "flags", "unknown root flags 0x%" PRIx64, unknown);
	return 0;
}

/* Fields added in Linux 3.6. */
static void root_get_extended(const struct disk_root_item *d, struct root_item *ret)
{
	memcpy(ret->uuid, d->uuid, sizeof(ret->uuid));
	memcpy(ret->parent_uuid, d->parent_uuid, sizeof(ret->parent_uuid));
	memcpy(ret->received_uuid, d->received_uuid, sizeof(ret->received_uuid));
	ret->ctransid = le64_get(d->ctransid);
	ret->otransid = le64_get(d->otransid);
	ret->stransid = le64_get(d->stransid);
	ret->rtransid = le64_get(d->rtransid);
	ret->ctime = d->ctime;
	ret->otime = d->otime;
	ret->stime = d->stime;
	ret->rtime = d->rtime;
}

/* The item has ROOT_ITEM_SHORT bytes or more; missing fields are read as zero. */
static void root_get(const struct item *item, struct root_item *ret)
{
	struct disk_root_item d = { 0 };

	memcpy(&d, item->data, item->size < sizeof(d) ? item->size : sizeof(d));
	*ret = (struct root_item){
		.generation = le64_get(d.generation),
		.root_dirid = le64_get(d.root_dirid),
		.bytenr = le64_get(d.bytenr),
		.byte_limit = le64_get(d.byte_limit),
		.bytes_used = le64_get(d.bytes_used),
		.last_snapshot = le64_get(d.last_snapshot),
		.flags = le64_get(d.flags),
		.refs = le32_get(d.refs),
		.drop_progress = key_get(&d.drop_progress),
		.drop_level = d.drop_level,
		.level = d.level,
		.generation_v2 = le64_get(d.generation_v2),
	};
	inode_item_get(&d.inode, &ret->inode);
	/* A kernel before 3.6 that modifies a long item does not update generation_v2. */
	if (ret->generation == ret->generation_v2)
		root_get_extended(&d, ret);
}

bool root_item_read(const struct item *item, struct root_item *ret)
{
	if (item->size < ROOT_ITEM_SHORT)
		return false;
	root_get(item, ret);
	return true;
}

int root_item_decode(const struct item_ctx *ctx, const struct item *item, struct root_item *ret,
		     struct btrkit_error *err)
{
	struct root_item root;
	int r;

	if (item->size != ROOT_ITEM_SHORT && item->size != sizeof(struct disk_root_item))
		return expect_size(item, sizeof(struct disk_root_item), err);
	r = root_check_key(&item->key, err);
	if (r < 0)
		return r;
	root_get(item, &root);
	r = root_check(ctx, &root, err);
	if (r < 0)
		return r;
	*ret = root;
	return 0;
}

static int root_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct root_item root;

	return root_item_decode(ctx, item, &root, err);
}

/* Only the text output omits fields that a kernel before 3.6 made stale. */
static void extended_render(struct emit *e, const struct root_item *r)
{
	if (e->form == EMIT_TEXT && r->generation != r->generation_v2)
		return;
	emit_uuid(e, "uuid", "\t\tuuid ", r->uuid);
	emit_uuid(e, "parent_uuid", "\n\t\tparent_uuid ", r->parent_uuid);
	emit_uuid(e, "received_uuid", "\n\t\treceived_uuid ", r->received_uuid);
	emit_u64(e, "ctransid", "\n\t\tctransid ", r->ctransid);
	emit_u64(e, "otransid", " otransid ", r->otransid);
	emit_u64(e, "stransid", " stransid ", r->stransid);
	emit_u64(e, "rtransid", " rtransid ", r->rtransid);
	emit_text(e, "\n");
	render_time(e, "ctime", "\t\tctime ", &r->ctime);
	render_time(e, "otime", "\t\totime ", &r->otime);
	render_time(e, "stime", "\t\tstime ", &r->stime);
	render_time(e, "rtime", "\t\trtime ", &r->rtime);
}

static void root_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	static const struct flag_name flag_names[] = {
		{ ROOT_SUBVOL_RDONLY, "RDONLY" },
		{ ROOT_SUBVOL_DEAD, "DEAD" },
		{ 0, NULL },
	};
	struct root_item r;

	(void)ctx;
	(void)flags;
	if (!render_struct(e, item, ROOT_ITEM_SHORT))
		return;
	root_get(item, &r);
	emit_u64(e, "generation", "\t\tgeneration ", r.generation);
	emit_u64(e, "root_dirid", " root_dirid ", r.root_dirid);
	emit_u64(e, "bytenr", " bytenr ", r.bytenr);
	emit_u64(e, "byte_limit", " byte_limit ", r.byte_limit);
	emit_u64(e, "bytes_used", " bytes_used ", r.bytes_used);
	emit_u64(e, "last_snapshot", "\n\t\tlast_snapshot ", r.last_snapshot);
	emit_x64(e, "flags", " flags ", r.flags);
	flags_names_emit(e, "flags_names", flag_names, r.flags);
	emit_text(e, r.flags & ROOT_SUBVOL_RDONLY ? "(RDONLY)" : "(none)");
	emit_u64(e, "refs", " refs ", r.refs);
	key_emit(e, "drop_progress", "\n\t\tdrop_progress ", &r.drop_progress);
	emit_u64(e, "drop_level", " drop_level ", r.drop_level);
	emit_u64(e, "level", "\n\t\tlevel ", r.level);
	emit_u64(e, "generation_v2", " generation_v2 ", r.generation_v2);
	emit_text(e, "\n");
	extended_render(e, &r);
	if (e->form == EMIT_JSON) {
		emit_object(e, "inode");
		inode_fields_render(e, &((const struct disk_root_item *)item->data)->inode);
		emit_object_end(e);
	}
}

const struct item_type item_type_root = {
	.type = KEY_ROOT_ITEM,
	.name = "ROOT_ITEM",
	.min_size = ROOT_ITEM_SHORT,
	.validate = root_validate,
	.render = root_render,
};
