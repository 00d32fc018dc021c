// SPDX-License-Identifier: LGPL-2.1-or-later
/* The lines other than blocks: header, headings of trees, damage, superblock fields. */
#include "lib/dump/dump_tree_lines.h"

#include <btrkit/version.h>

#include "lib/format/feature_bits.h"
#include "lib/format/key_names.h"

/* Version of the JSON members; also in the schema. */
#define JSON_VERSION 1

void dump_line(struct dump *d, const char *kind, const struct node *n)
{
	emit_object(&d->e, NULL);
	if (!dump_is_json(d))
		return;
	emit_word(&d->e, "kind", kind);
	if (!n)
		return;
	emit_u64(&d->e, "tree", "", d->tree);
	emit_u64(&d->e, "bytenr", "", n->bytenr);
	emit_u64(&d->e, "level", "", n->level);
}

void dump_prefix_make(struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n)
{
	/* Write it with dump_line(), copy it, and undo the write. */
	const size_t start = d->e.len;

	p->len = 0;
	if (!dump_is_json(d) || d->e.filter || d->e.size - start < 2 * sizeof(p->text))
		return;
	dump_line(d, kind, n);
	p->len = d->e.len - start - 1;
	if (p->len <= sizeof(p->text))
		memcpy(p->text, d->e.buf + start + 1, p->len);
	else
		p->len = 0;
	d->e.len = start;
	d->e.depth = 0;
}

void dump_prefix_line(const struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n)
{
	if (!p->len) {
		dump_line(d, kind, n);
		return;
	}
	emit_object(&d->e, NULL);
	emit_members(&d->e, p->text, p->len);
}

void dump_begin(struct dump *d)
{
	struct emit *e = &d->e;

	if (d->begun)
		return;
	d->begun = true;
	/* The filter does not apply to this line. */
	emit_keep(e, NULL);
	emit_object(e, NULL);
	emit_object(e, "__header");
	if (dump_is_json(d)) {
		emit_u64(e, "version", "", JSON_VERSION);
		emit_str(e, "command", "", "dump-tree");
	}
	emit_str(e, "btrkit", "btrkit ", btrkit_version());
	emit_text(e, "\n");
	emit_object_end(e);
	emit_object_end(e);
	emit_keep(e, d->choice.filter);
}

void dump_heading(struct dump *d, const char *title, const struct btrkit_key *key, const struct tree_root *root)
{
	struct emit *e = &d->e;

	dump_line(d, "tree", NULL);
	if (dump_is_json(d)) {
		emit_u64(e, "tree", "", root->id);
		emit_u64(e, "bytenr", "", root->bytenr);
		emit_u64(e, "level", "", root->level);
		emit_u64(e, "generation", "", root->generation);
	}
	emit_str(e, "title", "", title);
	if (key)
		key_emit(e, "key", " tree ", key);
	emit_object_end(e);
}

static void dump_backup_root(struct emit *e, const char *key, const char *words, le64 generation, le64 bytenr,
			     uint8_t level)
{
	emit_object(e, key);
	emit_u64(e, "generation", words, le64_get(generation));
	emit_u64(e, "bytenr", " block ", le64_get(bytenr));
	if (e->form == EMIT_JSON)
		emit_u64(e, "level", "", level);
	emit_text(e, "\n");
	emit_object_end(e);
}

void dump_backups(struct dump *d)
{
	const bool v2 = d->fs->super.incompat & INCOMPAT_EXTENT_TREE_V2;
	struct emit *e = &d->e;

	for (unsigned i = 0; i < SUPER_BACKUPS; i++) {
		const struct disk_root_backup *b = &d->fs->super.disk.backups[i];

		dump_line(d, "backup", NULL);
		emit_u64(e, "slot", "btrfs root backup slot ", i);
		dump_backup_root(e, "tree_root", "\n\ttree root gen ", b->tree_root_gen, b->tree_root,
				 b->tree_root_level);
		dump_backup_root(e, v2 ? "block_group_root" : "extent_root",
				 v2 ? "\t\tblock group root gen " : "\t\textent root gen ", b->extent_root_gen,
				 b->extent_root, b->extent_root_level);
		dump_backup_root(e, "chunk_root", "\t\tchunk root gen ", b->chunk_root_gen, b->chunk_root,
				 b->chunk_root_level);
		dump_backup_root(e, "dev_root", "\t\tdevice root gen ", b->dev_root_gen, b->dev_root,
				 b->dev_root_level);
		dump_backup_root(e, "csum_root", "\t\tcsum root gen ", b->csum_root_gen, b->csum_root,
				 b->csum_root_level);
		dump_backup_root(e, "fs_root", "\t\tfs root gen ", b->fs_root_gen, b->fs_root, b->fs_root_level);
		emit_u64(e, "bytes_used", "\t\t", le64_get(b->bytes_used));
		emit_u64(e, "total_bytes", " used ", le64_get(b->total_bytes));
		emit_u64(e, "num_devices", " total ", le64_get(b->num_devices));
		emit_text(e, " devices\n");
		emit_object_end(e);
	}
}

void dump_totals(struct dump *d)
{
	struct emit *e = &d->e;

	dump_line(d, "filesystem", NULL);
	emit_u64(e, "total_bytes", "total bytes ", d->fs->super.total_bytes);
	emit_u64(e, "bytes_used", "\nbytes used ", d->fs->super.bytes_used);
	emit_uuid(e, "fsid", "\nuuid ", d->fs->super.fsid);
	emit_text(e, "\n");
	emit_object_end(e);
}
