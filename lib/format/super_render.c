// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/super_render.h"

#include <ctype.h>

#include "lib/base/csum.h"
#include "lib/base/err.h"
#include "lib/base/reader.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/key_names.h"

static void render_csum(struct emit *e, const struct disk_super *d)
{
	const struct csum_kind *kind = csum_kind_find(le16_get(d->csum_type));
	uint8_t sum[CSUM_SIZE_MAX];
	size_t size = kind ? kind->size : sizeof(d->csum);
	const char *verdict = "DON'T MATCH";

	if (!kind) {
		verdict = "UNKNOWN CSUM TYPE OR SIZE";
	} else if (!kind->compute) {
		verdict = "NOT CHECKED";
	} else {
		kind->compute(d->fsid, sizeof(*d) - sizeof(d->csum), sum);
		if (!memcmp(sum, d->csum, size))
			verdict = "match";
	}
	emit_u64(e, "csum_type", "csum_type\t\t", le16_get(d->csum_type));
	emit_str(e, "csum_name", " (", kind ? kind->name : "INVALID");
	emit_u64(e, "csum_size", ")\ncsum_size\t\t", size);
	emit_hex(e, "csum", "\ncsum\t\t\t0x", d->csum, size);
	emit_str(e, "csum_verdict", " [", verdict);
	emit_text(e, "]");
}

/* Prints a name from a table like dump-super: in capitals, with underscores. */
static void render_bit(struct emit *e, const char *name)
{
	char text[48];
	size_t n = 0;

	for (; name[n] && n < sizeof(text) - 1; n++)
		text[n] = name[n] == '-' ? '_' : (char)toupper((unsigned char)name[n]);
	emit_name(e, NULL, "", text, n);
}

static void render_bits_json(struct emit *e, const char *key, uint64_t bits,
			     const char *(*name_of)(size_t i, uint64_t *bit))
{
	const char *name;
	uint64_t bit;

	emit_array(e, key);
	for (size_t i = 0; (name = name_of(i, &bit)); i++)
		if (bits & bit)
			render_bit(e, name);
	emit_array_end(e);
}

/* Prints the names of the bits that are set. In text they are below the number, and nothing is printed for zero. */
static void render_bits(struct emit *e, const char *key, uint64_t bits,
			const char *(*name_of)(size_t i, uint64_t *bit))
{
	const char *before = "\n\t\t\t( ";
	const char *name;
	uint64_t bit;

	if (e->form == EMIT_JSON)
		render_bits_json(e, key, bits, name_of);
	if (!bits || e->form != EMIT_TEXT)
		return;
	for (size_t i = 0; (name = name_of(i, &bit)); i++) {
		if (!(bits & bit))
			continue;
		bits &= ~bit;
		emit_text(e, before);
		render_bit(e, name);
		emit_text(e, " ");
		before = "|\n\t\t\t  ";
	}
	if (bits) {
		emit_text(e, before);
		emit_x64(e, NULL, "unknown flag: ", bits);
		emit_text(e, " ");
	}
	emit_text(e, ")");
}

static const char *feature_name(size_t i, enum btrkit_feature_set set, uint64_t *bit)
{
	size_t n;
	const struct btrkit_feature *f = btrkit_features(&n);

	for (; n--; f++) {
		if (f->set != set || i--)
			continue;
		*bit = f->bit;
		return f->name;
	}
	return NULL;
}

static const char *compat_ro_name(size_t i, uint64_t *bit)
{
	return feature_name(i, BTRKIT_FEATURE_COMPAT_RO, bit);
}

static const char *incompat_name(size_t i, uint64_t *bit)
{
	return feature_name(i, BTRKIT_FEATURE_INCOMPAT, bit);
}

static const char *flag_name(size_t i, uint64_t *bit)
{
	size_t n;
	const struct super_flag *f = super_flags(&n);

	if (i >= n)
		return NULL;
	*bit = f[i].bit;
	return f[i].name;
}

/* Prints bytes, with @to_zero only up to the first null byte. In text, a dot replaces each unprintable character. */
static void render_printable(struct emit *e, const char *key, const char *words, const void *data, size_t size,
			     bool to_zero)
{
	const uint8_t *at = data;
	char text[SUPER_LABEL_SIZE];
	size_t n = 0;

	while (n < size && n < sizeof(text) && (at[n] || !to_zero)) {
		text[n] = at[n] >= 0x20 && at[n] < 0x7f ? (char)at[n] : '.';
		n++;
	}
	if (e->form == EMIT_TEXT)
		emit_name(e, key, words, text, n);
	else
		emit_name(e, key, words, data, n);
}

static void render_identity(struct emit *e, const struct disk_super *d, unsigned flags)
{
	bool magic = le64_get(d->magic) == SUPER_MAGIC;

	emit_u64(e, "bytenr", "\nbytenr\t\t\t", le64_get(d->bytenr));
	emit_x64(e, "flags", "\nflags\t\t\t", le64_get(d->flags));
	render_bits(e, "flags_names", le64_get(d->flags), flag_name);
	render_printable(e, "magic", "\nmagic\t\t\t", &d->magic, sizeof(d->magic), false);
	emit_bool(e, "magic_matches", magic);
	emit_text(e, magic ? " [match]" : " [DON'T MATCH]");
	emit_uuid(e, "fsid", "\nfsid\t\t\t", d->fsid);
	emit_uuid(e, "metadata_uuid", "\nmetadata_uuid\t\t", d->metadata_uuid);
	if (flags & RENDER_HIDE_NAMES && d->label[0])
		emit_str(e, "label", "\nlabel\t\t\t", "HIDDEN");
	else
		render_printable(e, "label", "\nlabel\t\t\t", d->label, sizeof(d->label), true);
}

static void render_roots(struct emit *e, const struct disk_super *d)
{
	emit_u64(e, "generation", "\ngeneration\t\t", le64_get(d->generation));
	emit_u64(e, "root", "\nroot\t\t\t", le64_get(d->root));
	emit_u64(e, "sys_array_size", "\nsys_array_size\t\t", le32_get(d->sys_chunk_array_size));
	emit_u64(e, "chunk_root_generation", "\nchunk_root_generation\t", le64_get(d->chunk_root_generation));
	emit_u64(e, "root_level", "\nroot_level\t\t", d->root_level);
	emit_u64(e, "chunk_root", "\nchunk_root\t\t", le64_get(d->chunk_root));
	emit_u64(e, "chunk_root_level", "\nchunk_root_level\t", d->chunk_root_level);
	emit_u64(e, "log_root", "\nlog_root\t\t", le64_get(d->log_root));
	emit_u64(e, "log_root_transid", "\nlog_root_transid (deprecated)\t", le64_get(d->log_root_transid));
	emit_u64(e, "log_root_level", "\nlog_root_level\t\t", d->log_root_level);
	emit_u64(e, "total_bytes", "\ntotal_bytes\t\t", le64_get(d->total_bytes));
	emit_u64(e, "bytes_used", "\nbytes_used\t\t", le64_get(d->bytes_used));
	emit_u64(e, "sectorsize", "\nsectorsize\t\t", le32_get(d->sectorsize));
	emit_u64(e, "nodesize", "\nnodesize\t\t", le32_get(d->nodesize));
	emit_u64(e, "leafsize", "\nleafsize (deprecated)\t", le32_get(d->leafsize));
	emit_u64(e, "stripesize", "\nstripesize\t\t", le32_get(d->stripesize));
	emit_u64(e, "root_dir", "\nroot_dir\t\t", le64_get(d->root_dir_objectid));
	emit_u64(e, "num_devices", "\nnum_devices\t\t", le64_get(d->num_devices));
	emit_x64(e, "compat_flags", "\ncompat_flags\t\t", le64_get(d->compat_flags));
	emit_x64(e, "compat_ro_flags", "\ncompat_ro_flags\t\t", le64_get(d->compat_ro_flags));
	render_bits(e, "compat_ro_flags_names", le64_get(d->compat_ro_flags), compat_ro_name);
	emit_x64(e, "incompat_flags", "\nincompat_flags\t\t", le64_get(d->incompat_flags));
	render_bits(e, "incompat_flags_names", le64_get(d->incompat_flags), incompat_name);
	emit_u64(e, "cache_generation", "\ncache_generation\t", le64_get(d->cache_generation));
	emit_u64(e, "uuid_tree_generation", "\nuuid_tree_generation\t", le64_get(d->uuid_tree_generation));
}

static void render_device(struct emit *e, const struct disk_super *d)
{
	const struct disk_dev_item *dev = &d->dev_item;
	const uint8_t *fsid =
		le64_get(d->incompat_flags) & INCOMPAT_METADATA_UUID ? d->metadata_uuid : d->fsid;
	bool ours = !memcmp(dev->fsid, fsid, sizeof(dev->fsid));

	emit_object(e, "dev_item");
	emit_uuid(e, "uuid", "\ndev_item.uuid\t\t", dev->uuid);
	emit_uuid(e, "fsid", "\ndev_item.fsid\t\t", dev->fsid);
	emit_bool(e, "fsid_matches", ours);
	emit_text(e, ours ? " [match]" : " [DON'T MATCH]");
	emit_u64(e, "type", "\ndev_item.type\t\t", le64_get(dev->type));
	emit_u64(e, "total_bytes", "\ndev_item.total_bytes\t", le64_get(dev->total_bytes));
	emit_u64(e, "bytes_used", "\ndev_item.bytes_used\t", le64_get(dev->bytes_used));
	emit_u64(e, "io_align", "\ndev_item.io_align\t", le32_get(dev->io_align));
	emit_u64(e, "io_width", "\ndev_item.io_width\t", le32_get(dev->io_width));
	emit_u64(e, "sector_size", "\ndev_item.sector_size\t", le32_get(dev->sector_size));
	emit_u64(e, "devid", "\ndev_item.devid\t\t", le64_get(dev->devid));
	emit_u64(e, "dev_group", "\ndev_item.dev_group\t", le32_get(dev->dev_group));
	emit_u64(e, "seek_speed", "\ndev_item.seek_speed\t", dev->seek_speed);
	emit_u64(e, "bandwidth", "\ndev_item.bandwidth\t", dev->bandwidth);
	emit_u64(e, "generation", "\ndev_item.generation\t", le64_get(dev->generation));
	emit_text(e, "\n");
	emit_object_end(e);
}

static int array_too_short(struct btrkit_error *err)
{
	return err_corrupt(err, "sys_chunk_array_size", "system chunk array ends inside an entry");
}

/* Renders entry @i of the array, whose key is inside the array. */
static int render_chunk(struct emit *e, struct reader *r, uint64_t i, struct btrkit_error *err)
{
	static const struct item_ctx ctx;	/* not used to render a chunk */
	const struct disk_key *dk = reader_take(r, sizeof(*dk));
	const struct disk_chunk *chunk;
	struct item item = { 0 };

	item.key = key_get(dk);
	if (e->form == EMIT_TEXT)
		emit_u64(e, "", "\titem ", i);
	key_emit(e, "key", " ", &item.key);
	emit_text(e, "\n");
	if (item.key.type != KEY_CHUNK_ITEM)
		return err_corrupt(err, "sys_chunk_array", "system chunk array has an item of type %u", item.key.type);
	chunk = reader_peek(r, chunk_item_size(1));
	if (!chunk)
		return array_too_short(err);
	if (!le16_get(chunk->num_stripes))
		return err_corrupt(err, "num_stripes", "system chunk has no stripes");
	item.size = (uint32_t)chunk_item_size(le16_get(chunk->num_stripes));
	item.data = reader_take(r, item.size);
	if (!item.data)
		return array_too_short(err);
	emit_object(e, "item");
	item_type_chunk.render(e, &ctx, &item, 0);
	emit_object_end(e);
	return 0;
}

/* Renders the array as far as it can be parsed. @return 0, or the error that stopped the parser */
static int render_chunks(struct emit *e, const struct disk_super *d, struct btrkit_error *err)
{
	uint32_t size = le32_get(d->sys_chunk_array_size);
	struct reader r = reader_of(d->sys_chunk_array, size);
	int ret = 0;

	emit_array(e, "sys_chunk_array");
	if (size > sizeof(d->sys_chunk_array))
		ret = err_corrupt(err, "sys_chunk_array_size", "system chunk array has invalid size %u", size);
	for (uint64_t i = 0; !ret && reader_left(&r); i++) {
		if (reader_left(&r) < sizeof(struct disk_key)) {
			ret = array_too_short(err);
			break;
		}
		emit_object(e, NULL);
		ret = render_chunk(e, &r, i, err);
		emit_object_end(e);
	}
	emit_array_end(e);
	return ret;
}

static void render_backup_root(struct emit *e, const char *key, const char *words, le64 bytenr, le64 generation,
			       uint8_t level)
{
	emit_object(e, key);
	emit_text(e, "\t\t");
	emit_u64(e, "bytenr", words, le64_get(bytenr));
	emit_u64(e, "generation", "\tgen: ", le64_get(generation));
	emit_u64(e, "level", "\tlevel: ", level);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void render_backup(struct emit *e, const struct disk_root_backup *b, bool extent_tree_v2)
{
	render_backup_root(e, "tree_root", "backup_tree_root:\t", b->tree_root, b->tree_root_gen, b->tree_root_level);
	render_backup_root(e, "chunk_root", "backup_chunk_root:\t", b->chunk_root, b->chunk_root_gen,
			   b->chunk_root_level);
	render_backup_root(e, extent_tree_v2 ? "block_group_root" : "extent_root",
			   extent_tree_v2 ? "backup_block_group_root:\t" : "backup_extent_root:\t",
			   b->extent_root, b->extent_root_gen, b->extent_root_level);
	render_backup_root(e, "fs_root", "backup_fs_root:\t\t", b->fs_root, b->fs_root_gen, b->fs_root_level);
	render_backup_root(e, "dev_root", "backup_dev_root:\t", b->dev_root, b->dev_root_gen, b->dev_root_level);
	render_backup_root(e, "csum_root", "csum_root:\t", b->csum_root, b->csum_root_gen, b->csum_root_level);
	emit_u64(e, "total_bytes", "\t\tbackup_total_bytes:\t", le64_get(b->total_bytes));
	emit_u64(e, "bytes_used", "\n\t\tbackup_bytes_used:\t", le64_get(b->bytes_used));
	emit_u64(e, "num_devices", "\n\t\tbackup_num_devices:\t", le64_get(b->num_devices));
	emit_text(e, "\n\n");
}

int super_render(struct emit *e, const struct disk_super *d, bool full, unsigned flags, struct btrkit_error *err)
{
	bool extent_tree_v2 = le64_get(d->incompat_flags) & INCOMPAT_EXTENT_TREE_V2;
	int ret;

	render_csum(e, d);
	render_identity(e, d, flags);
	render_roots(e, d);
	render_device(e, d);
	if (!full)
		return 0;
	emit_text(e, "sys_chunk_array[2048]:\n");
	ret = render_chunks(e, d, err);
	emit_text(e, "backup_roots[4]:\n");
	emit_array(e, "backup_roots");
	for (unsigned i = 0; i < SUPER_BACKUPS; i++) {
		const struct disk_root_backup *b = &d->backups[i];

		if (!le64_get(b->tree_root) && !le64_get(b->tree_root_gen))
			continue;
		emit_object(e, NULL);
		emit_u64(e, "slot", "\tbackup ", i);
		emit_text(e, ":\n");
		render_backup(e, b, extent_tree_v2);
		emit_object_end(e);
	}
	emit_array_end(e);
	return ret;
}
