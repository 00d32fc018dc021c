// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/uuid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "config.h"
#include "lib/base/err.h"

#ifdef HAVE_UUID
#include <uuid/uuid.h>
#endif

const char *base_uuid_text(const uint8_t uuid[UUID_SIZE], char text[UUID_TEXT])
{
	size_t at = 0;

	for (unsigned i = 0; i < UUID_SIZE; i++)
		at += (size_t)snprintf(text + at, UUID_TEXT - at, "%s%02x",
				       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return text;
}

int base_uuid_random(uint8_t ret[16], struct btrkit_error *err)
{
	uint8_t bytes[16];

	/* Requests of up to 256 bytes are never returned short. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_system(err, errno, "cannot get random numbers");
	/* Version 4, variant of RFC 4122. */
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	memcpy(ret, bytes, sizeof(bytes));
	return 0;
}

#ifdef HAVE_UUID
int base_uuid_derive(const uint8_t from[16], const void *name, size_t len, uint8_t ret[16], struct btrkit_error *err)
{
	(void)err;
	uuid_generate_sha1(ret, from, name, len);
	return 0;
}
#else
int base_uuid_derive(const uint8_t from[16], const void *name, size_t len, uint8_t ret[16], struct btrkit_error *err)
{
	(void)from;
	(void)name;
	(void)len;
	(void)ret;
	return err_set(err, BTRKIT_UNSUPPORTED, "deriving UUIDs is not supported: built without libuuid");
}
#endif
