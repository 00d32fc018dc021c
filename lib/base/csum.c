// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/csum.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"

static void compute_crc32c(const void *data, size_t len, uint8_t *sum)
{
	le32 stored = le32_put(~crc32c(~0u, data, len));

	memcpy(sum, &stored, sizeof(stored));
}

static const struct csum_kind kinds[] = {
	{ 0, 4, "crc32c", compute_crc32c },
	{ 1, 8, "xxhash64", NULL },
	{ 2, 32, "sha256", NULL },
	{ 3, 32, "blake2b", NULL },
};

const struct csum_kind *csum_kind_find(uint16_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}
