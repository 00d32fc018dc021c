// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/attribute.h"

#include <string.h>

#include "lib/base/le.h"
#include "lib/format/feature_bits.h"

static const struct attribute_method methods[] = {
	{ "zlib", 0 },
	{ "lzo", INCOMPAT_COMPRESS_LZO },
	{ "zstd", INCOMPAT_COMPRESS_ZSTD },
};

const struct attribute_method *attribute_method_of(const void *value, size_t size)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const size_t len = strlen(methods[i].name);

		if (size >= len && !memcmp(value, methods[i].name, len))
			return &methods[i];
	}
	return NULL;
}

bool attribute_compression_valid(const void *value, size_t size)
{
	return !size || attribute_method_of(value, size) || (size == 2 && !memcmp(value, "no", 2)) ||
	       (size == 4 && !memcmp(value, "none", 4));
}

unsigned attribute_capability(const void *value, size_t size, uint32_t *flags)
{
	/* Sizes of the revisions, from revision 1 on. */
	static const size_t sizes[] = { 12, 20, 24 };
	const le32 *magic = value;
	unsigned revision;

	if (size < sizeof(*magic))
		return 0;
	revision = le32_get(*magic) >> 24;
	*flags = le32_get(*magic) & 0xffffff;
	return revision - 1 < sizeof(sizes) / sizeof(sizes[0]) && sizes[revision - 1] == size ? revision : 0;
}
