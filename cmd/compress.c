// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "cmd/cmd.h"

bool cmd_compression(const struct command *cmd, const char *s, enum btrkit_compression *kind, int *level)
{
	static const struct {
		const char *name;
		enum btrkit_compression kind;
		unsigned max;
	} kinds[] = { { "no", BTRKIT_COMPRESSION_NONE, 0 },
		      { "zlib", BTRKIT_COMPRESSION_ZLIB, 9 },
		      { "lzo", BTRKIT_COMPRESSION_LZO, 1 },
		      { "zstd", BTRKIT_COMPRESSION_ZSTD, 15 } };
	const size_t len = strcspn(s, ":");
	uint64_t n;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != len || strncmp(s, kinds[i].name, len))
			continue;
		n = s[len] ? cmd_number(cmd, "--compress", s + len + 1, false) : 0;
		if (n > kinds[i].max || (s[len] && !kinds[i].max))
			cmd_usage_error(cmd, "--compress: %s has no level '%s'", kinds[i].name, s + len + 1);
		/* Level 0 is the default. LZO has only one level. */
		*kind = kinds[i].kind;
		*level = kinds[i].kind == BTRKIT_COMPRESSION_LZO ? 0 : (int)n;
		return s[len];
	}
	cmd_usage_error(cmd, "--compress: '%s' is unknown", s);
}
