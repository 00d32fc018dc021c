/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ATTRIBUTE_H
#define BTRKIT_FORMAT_ATTRIBUTE_H

/* Values of extended attributes that Linux interprets. For ACLs see acl.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTRIBUTE_CAPABILITY "security.capability"
#define ATTRIBUTE_PROPERTY "btrfs." /* prefix of properties; the only one is: */
#define ATTRIBUTE_COMPRESSION "btrfs.compression"

struct attribute_method {
	const char *name;
	uint64_t incompat; /* feature required by the method */
};

/* The compression method of the property; NULL: none, or an invalid value. Linux ignores a level after the name. */
const struct attribute_method *attribute_method_of(const void *value, size_t size);
/* Whether Linux accepts the value. */
bool attribute_compression_valid(const void *value, size_t size);

#define ATTRIBUTE_CAPABILITY_EFFECTIVE 1u /* the only flag besides the revision */
/* @return revision of the file capabilities, with their flags in *flags; 0: invalid revision or size */
unsigned attribute_capability(const void *value, size_t size, uint32_t *flags);

#endif
