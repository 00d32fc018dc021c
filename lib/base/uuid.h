/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_UUID_H
#define BTRKIT_BASE_UUID_H

#include <string.h>

#include <btrkit/error.h>

#define UUID_SIZE 16
#define UUID_TEXT 37 /* size of a UUID as text, including the null byte */

/* Formats @uuid as text. @return @text */
const char *base_uuid_text(const uint8_t uuid[UUID_SIZE], char text[UUID_TEXT]);

/* Whether the UUID is all zeros, which stands for no UUID. */
static inline bool base_uuid_is_none(const uint8_t uuid[UUID_SIZE])
{
	static const uint8_t none[UUID_SIZE];

	return !memcmp(uuid, none, sizeof(none));
}

/* Generates a random UUID. */
int base_uuid_random(uint8_t ret[16], struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Derives a version 5 UUID (RFC 4122) from the namespace @from and a name of @len bytes. Equal input gives the same
 * UUID.
 * @return 0; -EOPNOTSUPP: build without libuuid
 */
int base_uuid_derive(const uint8_t from[16], const void *name, size_t len, uint8_t ret[16],
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
