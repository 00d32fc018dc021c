// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether addresses lie in chunks. */
#include "lib/usage/chunks.h"

#include "lib/usage/state.h"
#include "lib/volume/volume.h"

static bool has(const struct volume_chunk *c, uint64_t address)
{
	return address >= c->logical && address - c->logical < c->length;
}

bool usage_in_chunk(const struct usage_work *w, uint64_t start, uint64_t length, size_t *hint)
{
	const struct volume *v = w->fs->volume;
	const struct volume_chunk *c;

	if (*hint >= volume_num_chunks(v) || !has(volume_chunk(v, *hint), start))
		*hint = volume_chunk_from(v, start);
	if (*hint >= volume_num_chunks(v))
		return false;
	c = volume_chunk(v, *hint);
	return has(c, start) && length <= c->length - (start - c->logical);
}
