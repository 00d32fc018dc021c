// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/inode.h"

#include <sys/stat.h>

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

/* Unknown flags in the lower half are rejected; those in the upper half may be ignored for reading. */
#define INODE_FLAGS_INCOMPAT 0xffffffffull

void inode_item_get(const struct disk_inode_item *d, struct inode_item *ret)
{
	*ret = (struct inode_item){
		.generation = le64_get(d->generation),
		.transid = le64_get(d->transid),
		.size = le64_get(d->size),
		.nbytes = le64_get(d->nbytes),
		.block_group = le64_get(d->block_group),
		.nlink = le32_get(d->nlink),
		.uid = le32_get(d->uid),
		.gid = le32_get(d->gid),
		.mode = le32_get(d->mode),
		.rdev = le64_get(d->rdev),
		.flags = le64_get(d->flags),
		.sequence = le64_get(d->sequence),
		.atime = d->atime,
		.ctime = d->ctime,
		.mtime = d->mtime,
		.otime = d->otime,
	};
}

static bool is_file_mode(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return !(mode & ~(uint32_t)(S_IFMT | 07777));
	default:
		return false;
	}
}

static int inode_check(const struct item_ctx *ctx, const struct inode_item *i, struct btrkit_error *err)
{
	const uint64_t unknown = i->flags & INODE_FLAGS_INCOMPAT & ~INODE_FLAGS_KNOWN;
	int ret;

	if ((ret = expect_generation(ctx, "generation", i->generation, err)) < 0 ||
	    (ret = expect_generation(ctx, "transid", i->transid, err)) < 0)
		return ret;
	if (!is_file_mode(i->mode))
		return err_corrupt(err, "mode", "invalid mode 0%" PRIo32, i->mode);
	if (S_ISDIR(i->mode) && i->nlink > 1)
		return err_corrupt(err, "nlink", "directory has %" PRIu32 " links", i->nlink);
	if (unknown)
		return err_corrupt(err, "flags", "unknown inode flags 0x%" PRIx64, unknown);
	return 0;
}

int inode_item_decode(const struct item_ctx *ctx, const struct item *item, struct inode_item *ret,
		      struct btrkit_error *err)
{
	struct inode_item inode;
	int r = expect_size(item, sizeof(struct disk_inode_item), err);

	if (r < 0)
		return r;
	if (!is_inode_number(item->key.objectid))
		return err_corrupt(err, "key.objectid", "invalid inode number %" PRIu64, item->key.objectid);
	if (item->key.offset)
		return err_corrupt(err, "key.offset", "inode item has key offset %" PRIu64, item->key.offset);
	inode_item_get((const struct disk_inode_item *)item->data, &inode);
	r = inode_check(ctx, &inode, err);
	if (r < 0)
		return r;
	*ret = inode;
	return 0;
}

static int inode_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct inode_item inode;

	return inode_item_decode(ctx, item, &inode, err);
}

static const struct flag_name inode_flag_names[] = {
	{ 1ull << 0, "NODATASUM" },
	{ 1ull << 1, "NODATACOW" },
	{ 1ull << 2, "READONLY" },
	{ 1ull << 3, "NOCOMPRESS" },
	{ 1ull << 4, "PREALLOC" },
	{ 1ull << 5, "SYNC" },
	{ 1ull << 6, "IMMUTABLE" },
	{ 1ull << 7, "APPEND" },
	{ 1ull << 8, "NODUMP" },
	{ 1ull << 9, "NOATIME" },
	{ 1ull << 10, "DIRSYNC" },
	{ 1ull << 11, "COMPRESS" },
	{ 1ull << 31, "ROOT_ITEM_INIT" },
	{ 0, NULL },
};

void inode_flags_emit(struct emit *e, const char *name, const char *words, uint64_t flags)
{
	uint64_t unknown;

	emit_x64(e, name, words, flags);
	if (e->form != EMIT_TEXT)
		return;
	emit_text(e, "(");
	unknown = flags_text(e, inode_flag_names, flags);
	if (unknown)
		emit_x64(e, "", unknown == flags ? "UNKNOWN: " : "|UNKNOWN: ", unknown);
	emit_text(e, flags ? ")\n" : "none)\n");
}

void inode_fields_render(struct emit *e, const struct disk_inode_item *d)
{
	emit_u64(e, "generation", "\t\tgeneration ", le64_get(d->generation));
	emit_u64(e, "transid", " transid ", le64_get(d->transid));
	emit_u64(e, "size", " size ", le64_get(d->size));
	emit_u64(e, "nbytes", " nbytes ", le64_get(d->nbytes));
	emit_u64(e, "block_group", "\n\t\tblock group ", le64_get(d->block_group));
	emit_oct(e, "mode", " mode ", le32_get(d->mode));
	emit_u64(e, "nlink", " links ", le32_get(d->nlink));
	emit_u64(e, "uid", " uid ", le32_get(d->uid));
	emit_u64(e, "gid", " gid ", le32_get(d->gid));
	emit_u64(e, "rdev", " rdev ", le64_get(d->rdev));
	emit_u64(e, "sequence", "\n\t\tsequence ", le64_get(d->sequence));
	inode_flags_emit(e, "flags", " flags ", le64_get(d->flags));
	flags_names_emit(e, "flags_names", inode_flag_names, le64_get(d->flags));
	render_time(e, "atime", "\t\tatime ", &d->atime);
	render_time(e, "ctime", "\t\tctime ", &d->ctime);
	render_time(e, "mtime", "\t\tmtime ", &d->mtime);
	render_time(e, "otime", "\t\totime ", &d->otime);
}

static void inode_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_inode_item *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (d)
		inode_fields_render(e, d);
}

const struct item_type item_type_inode = {
	.type = KEY_INODE_ITEM,
	.name = "INODE_ITEM",
	.min_size = sizeof(struct disk_inode_item),
	.validate = inode_validate,
	.render = inode_render,
};
