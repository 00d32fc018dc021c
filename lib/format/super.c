// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/super.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"

#define SECTORSIZE_MIN 4096u
#define BLOCKSIZE_MAX 65536u

static bool is_block_size(uint32_t v)
{
	return v >= SECTORSIZE_MIN && v <= BLOCKSIZE_MAX && !(v & (v - 1));
}

void super_undo_mark(const uint8_t id[16], uint64_t offset, unsigned device, uint8_t ret[SUPER_SECTOR_SIZE])
{
	static const char text[] = "An undo of this device is unfinished. Run btrkit undo again.\n";
	const le64 bytenr = le64_put(offset), flags = le64_put(device), magic = le64_put(SUPER_MAGIC_UNDO);

	memset(ret, 0, SUPER_SECTOR_SIZE);
	memcpy(ret + offsetof(struct disk_super, fsid), id, 16);
	memcpy(ret + offsetof(struct disk_super, bytenr), &bytenr, sizeof(bytenr));
	memcpy(ret + offsetof(struct disk_super, flags), &flags, sizeof(flags));
	memcpy(ret + offsetof(struct disk_super, magic), &magic, sizeof(magic));
	memcpy(ret + SUPER_SECTOR_SIZE / 2, text, sizeof(text));
}

int super_refuse_undo_mark(const struct disk_super *d, struct btrkit_error *err)
{
	if (le64_get(d->magic) != SUPER_MAGIC_UNDO)
		return 0;
	return err_because(err, BTRKIT_CAUSE_UNDO_UNFINISHED,
			   err_set(err, BTRKIT_NOT_BTRFS,
				   "not a btrfs filesystem: an undo is unfinished, run btrkit undo again"));
}

static int check_identity(const struct disk_super *d, uint64_t offset, const struct csum_kind **kind,
			  struct btrkit_error *err)
{
	uint8_t sum[CSUM_SIZE_MAX];

	if (super_refuse_undo_mark(d, err))
		return -EMEDIUMTYPE;
	if (le64_get(d->magic) != SUPER_MAGIC)
		return err_because(err, BTRKIT_CAUSE_NO_SUPERBLOCK,
				   err_set(err, BTRKIT_NOT_BTRFS, "not a btrfs filesystem"));
	*kind = csum_kind_find(le16_get(d->csum_type));
	if (!*kind)
		return err_corrupt(err, "csum_type", "superblock has unknown checksum type %u", le16_get(d->csum_type));
	if (!(*kind)->compute)
		return err_because(err, BTRKIT_CAUSE_FEATURE,
				   err_set(err, BTRKIT_UNSUPPORTED, "checksum type %s is not supported",
					   (*kind)->name));
	(*kind)->compute(d->fsid, SUPER_SIZE - sizeof(d->csum), sum);
	if (memcmp(sum, d->csum, (*kind)->size))
		return err_because(err, BTRKIT_CAUSE_CSUM, err_corrupt(err, "csum", "superblock checksum mismatch"));
	if (le64_get(d->bytenr) != offset)
		return err_because(err, BTRKIT_CAUSE_BYTENR,
				   err_corrupt(err, "bytenr", "superblock has the address of another one, %" PRIu64,
					       le64_get(d->bytenr)));
	return 0;
}

static int check_address(uint64_t v, uint32_t sectorsize, const char *field, struct btrkit_error *err)
{
	if (v & (sectorsize - 1))
		return err_corrupt(err, field, "superblock has an unaligned address %" PRIu64, v);
	return 0;
}

static int verify_fields(const struct super *s, struct btrkit_error *err)
{
	const struct disk_super *d = &s->disk;
	uint32_t array = le32_get(d->sys_chunk_array_size);
	int ret;

	if (!is_block_size(s->sectorsize))
		return err_corrupt(err, "sectorsize", "superblock has invalid sectorsize %" PRIu32, s->sectorsize);
	if (!is_block_size(s->nodesize) || s->nodesize < s->sectorsize)
		return err_corrupt(err, "nodesize", "superblock has invalid nodesize %" PRIu32, s->nodesize);
	if (le32_get(d->leafsize) != s->nodesize)
		return err_corrupt(err, "leafsize", "superblock has leafsize %" PRIu32 ", nodesize %" PRIu32,
				   le32_get(d->leafsize), s->nodesize);
	if (s->root_level >= LEVELS_MAX)
		return err_corrupt(err, "root_level", "superblock has invalid root level %u", s->root_level);
	if (s->chunk_root_level >= LEVELS_MAX)
		return err_corrupt(err, "chunk_root_level", "superblock has invalid chunk root level %u",
				   s->chunk_root_level);
	if (s->log_root_level >= LEVELS_MAX)
		return err_corrupt(err, "log_root_level", "superblock has invalid log root level %u",
				   s->log_root_level);
	ret = check_address(s->root, s->sectorsize, "root", err);
	if (!ret)
		ret = check_address(s->chunk_root, s->sectorsize, "chunk_root", err);
	if (!ret)
		ret = check_address(s->log_root, s->sectorsize, "log_root", err);
	if (ret)
		return ret;
	if (array > SUPER_SYS_CHUNKS_SIZE ||
	    array < sizeof(struct disk_key) + sizeof(struct disk_chunk) + sizeof(struct disk_stripe))
		return err_corrupt(err, "sys_chunk_array_size",
				   "superblock has a system chunk array of invalid size %" PRIu32, array);
	if (!s->num_devices)
		return err_corrupt(err, "num_devices", "superblock has no devices");
	if (s->chunk_root_generation > s->generation)
		return err_corrupt(err, "chunk_root_generation",
				   "superblock has chunk root generation %" PRIu64 " above its own, %" PRIu64,
				   s->chunk_root_generation, s->generation);
	if (memcmp(d->dev_item.fsid, s->metadata_uuid, sizeof(s->metadata_uuid)))
		return err_corrupt(err, "dev_item.fsid", "superblock's device item belongs to another filesystem");
	return 0;
}

int super_decode(const struct disk_super *d, uint64_t offset, struct super *ret, struct btrkit_error *err)
{
	const struct csum_kind *kind = NULL;
	struct super s;
	int r;

	r = check_identity(d, offset, &kind, err);
	if (r)
		return r;
	s = (struct super){
		.disk = *d,
		.csum = kind,
		.bytenr = le64_get(d->bytenr),
		.flags = le64_get(d->flags),
		.generation = le64_get(d->generation),
		.root = le64_get(d->root),
		.chunk_root = le64_get(d->chunk_root),
		.log_root = le64_get(d->log_root),
		.chunk_root_generation = le64_get(d->chunk_root_generation),
		.root_level = d->root_level,
		.chunk_root_level = d->chunk_root_level,
		.log_root_level = d->log_root_level,
		.total_bytes = le64_get(d->total_bytes),
		.bytes_used = le64_get(d->bytes_used),
		.num_devices = le64_get(d->num_devices),
		.sectorsize = le32_get(d->sectorsize),
		.nodesize = le32_get(d->nodesize),
		.compat = le64_get(d->compat_flags),
		.compat_ro = le64_get(d->compat_ro_flags),
		.incompat = le64_get(d->incompat_flags),
		.cache_generation = le64_get(d->cache_generation),
		.uuid_tree_generation = le64_get(d->uuid_tree_generation),
		.devid = le64_get(d->dev_item.devid),
	};
	memcpy(s.fsid, d->fsid, sizeof(s.fsid));
	memcpy(s.dev_uuid, d->dev_item.uuid, sizeof(s.dev_uuid));
	memcpy(s.metadata_uuid, s.incompat & INCOMPAT_METADATA_UUID ? d->metadata_uuid : d->fsid,
	       sizeof(s.metadata_uuid));
	/* Check features first, because unknown ones may change the meaning of fields. */
	r = features_check_read(&s, err);
	if (!r)
		r = verify_fields(&s, err);
	if (!r)
		*ret = s;
	return r;
}

struct item_ctx super_item_ctx(const struct super *s)
{
	return (struct item_ctx){
		.sectorsize = s->sectorsize,
		.nodesize = s->nodesize,
		.csum_type = s->csum->type,
		.csum_size = s->csum->size,
		.incompat = s->incompat,
		.compat_ro = s->compat_ro,
		.generation = s->generation,
	};
}

int super_next_chunk(const struct super *s, uint32_t *pos, struct item *item, struct btrkit_error *err)
{
	uint32_t size = le32_get(s->disk.sys_chunk_array_size), left = size - *pos;
	const uint8_t *at = s->disk.sys_chunk_array + *pos;
	const struct disk_chunk *chunk;
	size_t need;

	if (!left)
		return 1;
	if (left < sizeof(struct disk_key) + sizeof(struct disk_chunk))
		return err_corrupt(err, "sys_chunk_array", "system chunk array ends inside an entry");
	chunk = (const struct disk_chunk *)(at + sizeof(struct disk_key));
	need = sizeof(struct disk_chunk) + le16_get(chunk->num_stripes) * sizeof(struct disk_stripe);
	if (left < sizeof(struct disk_key) + need)
		return err_corrupt(err, "sys_chunk_array", "system chunk array ends inside an entry");
	item->key = key_get((const struct disk_key *)at);
	if (item->key.type != KEY_CHUNK_ITEM)
		return err_corrupt(err, "sys_chunk_array", "system chunk array has an entry of type %u",
				   item->key.type);
	item->data = at + sizeof(struct disk_key);
	item->size = (uint32_t)need;
	*pos += (uint32_t)(sizeof(struct disk_key) + need);
	return 0;
}
