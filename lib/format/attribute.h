/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ATTRIBUTE_H
#define BTRKIT_FORMAT_ATTRIBUTE_H

/* Values of extended attributes that Linux looks into; acl.h has others. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTRIBUTE_CAPABILITY "security.capability"
#define ATTRIBUTE_PROPERTY "btrfs." /* what names of properties begin with, of which there is one: */
#define ATTRIBUTE_COMPRESSION "btrfs.compression"

struct attribute_method {
	const char *name;
	uint64_t incompat; /* the feature that goes along with it */
};

/* What a property says to compress with: NULL: nothing, or it is not valid. A level behind it says nothing to Linux. */
const struct attribute_method *attribute_method_of(const void *value, size_t size);
/* Whether it is one that Linux takes. */
bool attribute_compression_valid(const void *value, size_t size);

#define ATTRIBUTE_CAPABILITY_EFFECTIVE 1u /* the only flag beside the revision */
/* @return the revision of what a file is capable of, with its flags in *flags; 0: none that has this size */
unsigned attribute_capability(const void *value, size_t size, uint32_t *flags);

#endif
