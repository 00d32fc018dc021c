// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/csum.h"

#include <string.h>

#include "config.h"
#include "lib/base/crc32c.h"
#include "lib/base/le.h"

#ifdef HAVE_XXHASH
#include <xxhash.h>
#endif
#ifdef HAVE_GCRYPT
#include <gcrypt.h>
#endif

static void compute_crc32c(const void *data, size_t len, uint8_t *sum)
{
	le32 stored = le32_put(~crc32c(~0u, data, len));

	memcpy(sum, &stored, sizeof(stored));
}

#ifdef HAVE_XXHASH
static void compute_xxhash64(const void *data, size_t len, uint8_t *sum)
{
	le64 stored = le64_put(XXH64(data, len, 0));

	memcpy(sum, &stored, sizeof(stored));
}
#else
#define compute_xxhash64 NULL
#endif

#ifdef HAVE_GCRYPT
/* Both need neither memory nor a handle. */
static void compute_sha256(const void *data, size_t len, uint8_t *sum)
{
	gcry_md_hash_buffer(GCRY_MD_SHA256, sum, data, len);
}

static void compute_blake2b(const void *data, size_t len, uint8_t *sum)
{
	gcry_md_hash_buffer(GCRY_MD_BLAKE2B_256, sum, data, len);
}
#else
#define compute_sha256 NULL
#define compute_blake2b NULL
#endif

static const struct csum_kind kinds[] = {
	{ 0, 4, "crc32c", compute_crc32c },
	{ 1, 8, "xxhash64", compute_xxhash64 },
	{ 2, 32, "sha256", compute_sha256 },
	{ 3, 32, "blake2b", compute_blake2b },
};

const struct csum_kind *csum_kind_find(uint16_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}
