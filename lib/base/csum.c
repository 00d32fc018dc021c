// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/csum.h"

#include <stdbool.h>
#include <string.h>

#include "config.h"
#include "lib/base/crc32c.h"
#include "lib/base/le.h"

#ifdef HAVE_XXHASH
#include <xxhash.h>
#endif
#ifdef HAVE_GCRYPT
#include <gcrypt.h>
#include <pthread.h>
#endif

/* Values of the superblock's csum_type. */
enum { CRC32C, XXHASH64, SHA256, BLAKE2B };

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
/* Neither function allocates memory or needs a handle. */
static void compute_sha256(const void *data, size_t len, uint8_t *sum)
{
	gcry_md_hash_buffer(GCRY_MD_SHA256, sum, data, len);
}

static void compute_blake2b(const void *data, size_t len, uint8_t *sum)
{
	gcry_md_hash_buffer(GCRY_MD_BLAKE2B_256, sum, data, len);
}

static pthread_once_t gcrypt_begun = PTHREAD_ONCE_INIT;

/* libgcrypt also initializes itself on first use, but not safely when several threads do that at the same time. */
static void begin_gcrypt(void)
{
	gcry_check_version(NULL);
}

/*
 * Checks first whether libgcrypt allows the algorithm: in FIPS mode, it aborts the program on use of one that is not
 * approved.
 */
static bool gcrypt_has(uint16_t type)
{
	pthread_once(&gcrypt_begun, begin_gcrypt);
	return !gcry_md_test_algo(type == BLAKE2B ? GCRY_MD_BLAKE2B_256 : GCRY_MD_SHA256);
}
#else
#define compute_sha256 NULL
#define compute_blake2b NULL
#endif

static const struct csum_kind kinds[] = {
	{ CRC32C, 4, "crc32c", compute_crc32c },
	{ XXHASH64, 8, "xxhash64", compute_xxhash64 },
	{ SHA256, 32, "sha256", compute_sha256 },
	{ BLAKE2B, 32, "blake2b", compute_blake2b },
};

#ifdef HAVE_GCRYPT
static const struct csum_kind refused[] = { { SHA256, 32, "sha256", NULL }, { BLAKE2B, 32, "blake2b", NULL } };
#endif

const struct csum_kind *csum_kind_find(uint16_t type)
{
#ifdef HAVE_GCRYPT
	if ((type == SHA256 || type == BLAKE2B) && !gcrypt_has(type))
		return &refused[type - SHA256];
#endif
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}
