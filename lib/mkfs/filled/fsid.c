// SPDX-License-Identifier: LGPL-2.1-or-later
/* Derives the fsid from the source and the options. */
#include "lib/mkfs/filled/fsid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/csum.h"
#include "lib/base/le.h"
#include "lib/base/uuid.h"

/* Returns a digest of everything in the filesystem except UUIDs. */
static uint64_t digest_source(const struct mkfs_fill *fill)
{
	const struct csum_kind *hash = csum_kind_find(BTRKIT_CSUM_XXHASH64);
	const struct source *s = fill->source;
	struct {
		le64 so_far, field[12];
	} all = { .so_far = le64_put(fill->contents->digest) };
#define MIX() hash->compute(&all, sizeof(all), (uint8_t *)&all.so_far)

	/* Identify inodes by their final numbers: their order in memory depends on timing. */
	for (uint32_t i = 0; i < s->num_inodes; i++) {
		const struct source_inode *n = &s->inodes[s->in_order[i]];
		const struct source_xattrs *x = n->xattrs;

		memset(all.field, 0, sizeof(all.field));
		all.field[0] = le64_put(S_ISDIR(n->mode) ? n->count : n->size);
		all.field[1] = le64_put((uint64_t)n->mode << 32 | n->nlink);
		all.field[2] = le64_put((uint64_t)n->uid << 32 | n->gid);
		all.field[3] = le64_put((uint64_t)n->rdev << 32 | n->number);
		all.field[4] = le64_put((uint64_t)n->mtime.sec);
		all.field[5] = le64_put((uint64_t)n->mtime.nsec << 32 | n->subvolume);
		all.field[6] = le64_put(n->flags);
		/*
		 * Contents of archives were digested without inode numbers, so include which of them belong to this
		 * file.
		 */
		if (S_ISREG(n->mode)) {
			all.field[7] = le64_put(s->inodes[n->contents].first);
			all.field[8] = le64_put(s->inodes[n->contents].count);
		}
		if (n->text && S_ISLNK(n->mode))
			hash->compute(n->text, n->size, (uint8_t *)&all.field[7]);
		MIX();
		for (uint32_t k = 0; x && k < x->n; k++) {
			hash->compute(x->at[k].name, x->at[k].name_len, (uint8_t *)&all.field[8]);
			hash->compute(x->at[k].value, x->at[k].value_len, (uint8_t *)&all.field[9]);
			MIX();
		}
		for (uint32_t k = 0; S_ISDIR(n->mode) && k < n->count; k++) {
			const struct source_entry *e = &s->entries[n->first + k];
			const struct source_inode *target = &s->inodes[e->inode];

			hash->compute(e->name, e->len, (uint8_t *)&all.field[10]);
			all.field[11] = le64_put((uint64_t)target->subvolume << 32 | target->number);
			MIX();
		}
	}
	for (uint32_t i = 0; i < s->num_subvolumes; i++) {
		memset(all.field, 0, sizeof(all.field));
		all.field[0] = le64_put(s->subvolumes[i].readonly);
		all.field[1] = le64_put(s->subvolumes[i].is_default);
		MIX();
	}
#undef MIX
	return le64_get(all.so_far);
}

int mkfs_derive_fsid(const struct mkfs_plan *p, const struct mkfs_fill *fill, bool fits, uint8_t *fsid,
		     struct btrkit_error *err)
{
	static const uint8_t space[16] = { 0x62, 0x74, 0x72, 0x6b, 0x69, 0x74 };
	const struct btrkit_mkfs_options *o = &p->opts;
	uint64_t bytes = o->byte_count;
	le64 given[2] = { 0 };
	char name[1024];

	if (o->device_uuid)
		memcpy(given, o->device_uuid, sizeof(given));
	/* Include the sizes of all devices, unless the size follows from the contents. */
	for (unsigned d = 0; d < p->num_devices && !fits; d++)
		bytes = bytes * 31 + p->devices[d].total_bytes;
	snprintf(name, sizeof(name),
		 "%016" PRIx64 " %u %u %u %u %u %d %" PRIx64 " %" PRIx64 " %u %d %" PRId64 " %u %" PRIu64
		 " %u %u %" PRIu64 " %016" PRIx64 "%016" PRIx64 " %s",
		 digest_source(fill), o->nodesize, o->sectorsize, o->data, o->metadata, o->csum, o->mixed, o->incompat,
		 o->compat_ro, o->compression, o->compression_level, o->time, p->num_devices, o->free_bytes,
		 o->free_percent, o->flags & BTRKIT_MKFS_QUOTA, bytes, le64_get(given[0]), le64_get(given[1]),
		 o->label ? o->label : "");
	return base_uuid_derive(space, name, strlen(name), fsid, err);
}
