/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_UUID_H
#define BTRKIT_BASE_UUID_H

#include <btrkit/error.h>

/* A random UUID. */
int base_uuid_random(uint8_t ret[16], struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The UUID that @name has in the space of @from: the same for the same two (version 5, RFC 4122).
 * @return 0; -EOPNOTSUPP in a build without libuuid
 */
int base_uuid_derive(const uint8_t from[16], const char *name, uint8_t ret[16],
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
