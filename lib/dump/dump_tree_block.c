// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_tree_block.h"

#include "lib/base/err.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/format/items/render.h"
#include "lib/format/key_names.h"

/* The backref revision is in the upper byte. */
#define HEADER_BACKREF_MASK (0xffull << HEADER_BACKREF_SHIFT)

static void dump_flags(struct dump *d, uint64_t flags)
{
	static const struct flag_name names[] = {
		{ HEADER_FLAG_WRITTEN, "WRITTEN" },
		{ HEADER_FLAG_RELOC, "RELOC" },
		{ 0, NULL },
	};

	emit_x64(&d->e, "flags", " flags ", flags & ~HEADER_BACKREF_MASK);
	flags_names_emit(&d->e, "flags_names", names, flags);
	emit_text(&d->e, "(");
	if (flags & HEADER_FLAG_WRITTEN)
		emit_text(&d->e, flags & HEADER_FLAG_RELOC ? "WRITTEN|" : "WRITTEN");
	if (flags & HEADER_FLAG_RELOC)
		emit_text(&d->e, "RELOC");
	emit_u64(&d->e, "backref_revision", ") backref revision ", flags >> HEADER_BACKREF_SHIFT);
}

static uint32_t leaf_free_space(const struct node *n)
{
	uint32_t room = leaf_room(n->size);

	if (n->nritems)
		room = le32_get(leaf_items(n)[n->nritems - 1].offset);
	return room - n->nritems * (uint32_t)sizeof(struct disk_item);
}

static uint32_t node_free_space(const struct node *n)
{
	return leaf_room(n->size) / (uint32_t)sizeof(struct disk_key_ptr) - n->nritems;
}

static void dump_header(struct dump *d, const struct node *n)
{
	const struct disk_header *h = node_header(n);
	struct emit *e = &d->e;

	dump_line(d, "node", n);
	if (!dump_is_json(d)) {
		emit_u64(e, "", n->level ? "node " : "leaf ", n->bytenr);
		if (n->level)
			emit_u64(e, "", " level ", n->level);
	}
	emit_u64(e, "nritems", " items ", n->nritems);
	emit_u64(e, "free_space", " free space ", n->level ? node_free_space(n) : leaf_free_space(n));
	emit_u64(e, "generation", " generation ", n->generation);
	objectid_emit(e, "owner", " owner ", n->owner, 0);
	if (!dump_is_json(d))
		emit_u64(e, "", n->level ? "\nnode " : "\nleaf ", n->bytenr);
	dump_flags(d, n->flags);
	if (d->csum_headers)
		emit_hex(e, "csum", " csum 0x", h->csum, d->fs->geometry.csum->size);
	emit_uuid(e, "fsid", "\nfs uuid ", h->fsid);
	emit_uuid(e, "chunk_tree_uuid", "\nchunk uuid ", h->chunk_tree_uuid);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void dump_pointers(struct dump *d, const struct node *n)
{
	const struct disk_key_ptr *p = node_ptrs(n);
	struct dump_prefix prefix;

	dump_prefix_make(&prefix, d, "pointer", n);
	for (uint32_t i = 0; i < n->nritems; i++) {
		struct btrkit_key key = key_get(&p[i].key);

		dump_prefix_line(&prefix, d, "pointer", n);
		if (dump_is_json(d))
			emit_u64(&d->e, "slot", "", i);
		key_emit(&d->e, "key", "\t", &key);
		emit_u64(&d->e, "blockptr", " block ", le64_get(p[i].blockptr));
		emit_u64(&d->e, "generation", " gen ", le64_get(p[i].generation));
		emit_text(&d->e, "\n");
		emit_object_end(&d->e);
	}
}

/* Records the first invalid item, to be reported at the end. In JSON, each invalid item also has a line. */
static void check_item(struct dump *d, const struct node *n, const struct item_ctx *ctx, const struct item *item,
		       uint32_t slot)
{
	struct btrkit_error err;
	int ret;

	if ((d->damage && !dump_is_json(d)) || !item_validate(ctx, item, NULL))
		return;
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = item_validate(ctx, item, &err);
	err_at_tree(&err, n->owner);
	err_at_logical(&err, n->bytenr);
	err_at_item(&err, slot, &item->key);
	dump_damaged_item(d, n, slot, ret, &err);
}

static void dump_item(struct dump *d, const struct node *n, const struct dump_prefix *prefix,
		      const struct item_ctx *ctx, const struct item *item, uint32_t slot)
{
	const struct item_type *type = item_type_find(&item->key);

	dump_prefix_line(prefix, d, "item", n);
	item_line_emit(&d->e, slot, &item->key, le32_get(leaf_items(n)[slot].offset), item->size);
	emit_object(&d->e, "item");
	if (type)
		type->render(&d->e, ctx, item, d->render);
	else
		render_data(&d->e, "data", item->data, item->size, d->render);
	emit_object_end(&d->e);
	emit_object_end(&d->e);
}

static bool is_picked(const struct dump *d, const struct item *item)
{
	return !d->pick || dump_pick_item(d->pick, item);
}

/* Whether any item of the leaf is selected. */
static bool any_picked(const struct dump *d, const struct node *n)
{
	bool any = !d->pick;

	for (uint32_t i = 0; !any && i < n->nritems; i++) {
		const struct item item = leaf_item(n, i);

		any = is_picked(d, &item);
	}
	return any;
}

static void dump_items(struct dump *d, const struct node *n)
{
	struct item_ctx ctx = d->fs->items;
	struct dump_prefix prefix;

	dump_prefix_make(&prefix, d, "item", n);
	ctx.owner = n->owner;
	for (uint32_t i = 0; i < n->nritems; i++) {
		struct item item = leaf_item(n, i);

		if (is_picked(d, &item)) {
			dump_item(d, n, &prefix, &ctx, &item, i);
			check_item(d, n, &ctx, &item, i);
		}
	}
}

void dump_block(struct dump *d, const struct node *n)
{
	if (!n->level && !any_picked(d, n))
		return;
	dump_begin(d);
	dump_header(d, n);
	if (n->level)
		dump_pointers(d, n);
	else
		dump_items(d, n);
}
