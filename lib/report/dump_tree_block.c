// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/dump_tree.h"

#include <btrkit/version.h>

#include "lib/base/err.h"
#include "lib/format/key_names.h"

/* The upper byte of the flags. */
#define HEADER_BACKREF_SHIFT 56
#define HEADER_BACKREF_MASK (0xffull << HEADER_BACKREF_SHIFT)

static void dump_flags(struct dump *d, uint64_t flags)
{
	emit_x64(&d->e, "flags", " flags ", flags & ~HEADER_BACKREF_MASK);
	emit_text(&d->e, "(");
	if (flags & HEADER_FLAG_WRITTEN)
		emit_text(&d->e, flags & HEADER_FLAG_RELOC ? "WRITTEN|" : "WRITTEN");
	if (flags & HEADER_FLAG_RELOC)
		emit_text(&d->e, "RELOC");
	emit_u64(&d->e, "backref_revision", ") backref revision ", flags >> HEADER_BACKREF_SHIFT);
}

static uint32_t leaf_free_space(const struct node *n)
{
	uint32_t room = n->size - (uint32_t)sizeof(struct disk_header);

	if (n->nritems)
		room = le32_get(leaf_items(n)[n->nritems - 1].offset);
	return room - n->nritems * (uint32_t)sizeof(struct disk_item);
}

static uint32_t node_free_space(const struct node *n)
{
	return (n->size - (uint32_t)sizeof(struct disk_header)) / (uint32_t)sizeof(struct disk_key_ptr) - n->nritems;
}

static void dump_header(struct dump *d, const struct node *n)
{
	const struct disk_header *h = node_header(n);
	struct emit *e = &d->e;

	emit_u64(e, "bytenr", n->level ? "node " : "leaf ", n->bytenr);
	if (n->level)
		emit_u64(e, "level", " level ", n->level);
	emit_u64(e, "nritems", " items ", n->nritems);
	emit_u64(e, "free_space", " free space ", n->level ? node_free_space(n) : leaf_free_space(n));
	emit_u64(e, "generation", " generation ", n->generation);
	objectid_emit(e, "owner", " owner ", n->owner, 0);
	emit_u64(e, NULL, n->level ? "\nnode " : "\nleaf ", n->bytenr);
	dump_flags(d, n->flags);
	if (d->csum_headers)
		emit_hex(e, "csum", " csum 0x", h->csum, d->fs->super.csum->size);
	emit_uuid(e, "fsid", "\nfs uuid ", h->fsid);
	emit_uuid(e, "chunk_tree_uuid", "\nchunk uuid ", h->chunk_tree_uuid);
	emit_text(e, "\n");
}

static void dump_pointers(struct dump *d, const struct node *n)
{
	const struct disk_key_ptr *p = node_ptrs(n);

	for (uint32_t i = 0; i < n->nritems; i++) {
		struct btrkit_key key = key_get(&p[i].key);

		key_emit(&d->e, "key", "\t", &key);
		emit_u64(&d->e, "block", " block ", le64_get(p[i].blockptr));
		emit_u64(&d->e, "generation", " gen ", le64_get(p[i].generation));
		emit_text(&d->e, "\n");
	}
}

/* Keeps the first damage, to be told when the dump is over. */
static void judge_item(struct dump *d, const struct node *n, const struct item_ctx *ctx, const struct item *item,
		       uint32_t slot)
{
	if (d->damage)
		return;
	d->damage = item_validate(ctx, item, &d->damage_error);
	if (!d->damage)
		return;
	err_at_tree(&d->damage_error, n->owner);
	err_at_logical(&d->damage_error, n->bytenr);
	err_at_item(&d->damage_error, slot, &item->key);
}

static void dump_items(struct dump *d, const struct node *n)
{
	struct item_ctx ctx = d->fs->items;

	ctx.owner = n->owner;
	for (uint32_t i = 0; i < n->nritems; i++) {
		struct item item = leaf_item(n, i);
		const struct item_type *type = item_type_find(&item.key);

		item_line_emit(&d->e, i, &item.key, le32_get(leaf_items(n)[i].offset), item.size);
		if (type && type->render)
			type->render(&d->e, &ctx, &item, d->render);
		judge_item(d, n, &ctx, &item, i);
	}
}

void dump_begin(struct dump *d)
{
	if (d->begun)
		return;
	d->begun = true;
	emit_str(&d->e, "version", "btrkit ", btrkit_version());
	emit_text(&d->e, "\n");
}

void dump_block(struct dump *d, const struct node *n)
{
	dump_begin(d);
	dump_header(d, n);
	if (n->level)
		dump_pointers(d, n);
	else
		dump_items(d, n);
}
