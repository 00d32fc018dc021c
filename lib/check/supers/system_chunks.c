// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the system chunks in the superblock, which are needed to read the chunk tree, with the chunk tree. */
#include <string.h>

#include "lib/check/findings.h"
#include "lib/check/supers/system_chunks.h"
#include "lib/check/volume/volume.h"

static void report_system_chunk(const struct volume_check *v, const struct btrkit_key *key, const char *message)
{
	check_report_at(v->c, CHECK_SYSTEM_CHUNK, &(struct check_location){ OID_CHUNK_TREE, 0, key, "sys_chunk_array" },
			"%s", message);
}

void volume_system_chunk(struct volume_check *v, const struct item *item)
{
	struct item copy;
	uint32_t pos = 0;
	int ret;

	while (!(ret = super_next_chunk(&v->c->fs->super, &pos, &copy, NULL))) {
		if (key_cmp(&copy.key, &item->key))
			continue;
		if (copy.size != item->size || memcmp(copy.data, item->data, item->size))
			report_system_chunk(v, &item->key, "system chunk differs from its copy in the superblock");
		return;
	}
	/* A truncated array is reported as such. */
	if (ret > 0)
		report_system_chunk(v, &item->key, "system chunk has no copy in the superblock");
}

void volume_system_chunks(const struct volume_check *v)
{
	const struct known_chunk *chunks = v->chunks.at;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct item copy;
	uint32_t pos = 0;
	int ret;

	while (!(ret = super_next_chunk(&v->c->fs->super, &pos, &copy, &what))) {
		const struct known_chunk *found = NULL;

		for (size_t i = 0; i < v->chunks.n && !found; i++)
			if (chunks[i].type & BG_SYSTEM && chunks[i].logical == copy.key.offset)
				found = &chunks[i];
		if (copy.key.objectid != OID_FIRST_CHUNK_TREE || (!found && !v->c->chunks_lost))
			report_system_chunk(v, &copy.key,
					    "system chunk in the superblock is missing from the chunk tree");
	}
	if (ret < 0)
		check_report(v->c, CHECK_SYSTEM_CHUNK, &what);
}
