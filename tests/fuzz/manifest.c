// SPDX-License-Identifier: LGPL-2.1-or-later
/* A manifest: any input ends in an error, or in a source whose names and inode numbers are in order. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/source/manifest.h"

static void check_source(const struct source *s)
{
	uint32_t entries = 0;

	for (uint32_t i = 0; i < s->num_inodes; i++) {
		const struct source_inode *inode = &s->inodes[s->in_order[i]];

		if (i && (inode->name == SOURCE_NONE || s->entries[inode->name].inode != s->in_order[i]))
			abort();
		if (!S_ISDIR(inode->mode))
			continue;
		for (uint32_t k = 0; k < inode->count; k++, entries++) {
			const struct source_entry *e = &s->entries[inode->first + k];

			if (e->parent != s->in_order[i] ||
			    source_lookup(s, e->parent, e->name, e->len) != inode->first + k)
				abort();
		}
	}
	if (entries != s->num_entries)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct btrkit_mkfs_subvolume subvolumes[] = { { "dir/sub", true, false } };
	static const struct btrkit_mkfs_inode_flags flags[] = { { "dir", true, false } };
	static const char *const exclude[] = { "*.o", "dir/*.a" };
	const struct btrkit_mkfs_source o = { .kind = BTRKIT_SOURCE_MANIFEST,
					      .path = "-",
					      .exclude = exclude,
					      .num_exclude = 2,
					      .subvolumes = subvolumes,
					      .inode_flags = flags,
					      .num_subvolumes = size % 3 == 0,
					      .num_inode_flags = size % 5 == 0 };
	const struct source_limits limits = { .symlink = 100, .xattr = 100 };
	struct manifest m = { 0 };
	int ret = source_create(&o, &limits, &m.s, NULL);

	if (ret)
		return 0;
	/* Nothing can be opened below this: contents are inline or missing. */
	m.s->state->roots[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (size && !ret) {
		const uint8_t *newline = memchr(data, '\n', size);
		const size_t len = newline ? (size_t)(newline - data) : size;
		char *line = malloc(len + 1);

		if (!line)
			break;
		memcpy(line, data, len);
		line[len] = '\0';
		ret = manifest_read_line(&m, line, len, NULL);
		free(line);
		data += len;
		size -= len;
		if (newline) {
			data++;
			size--;
		}
	}
	if (!ret)
		ret = manifest_finish(&m, NULL);
	if (!ret)
		ret = source_finish(m.s, NULL);
	if (!ret)
		check_source(m.s);
	manifest_free(&m);
	source_destroy(m.s);
	return 0;
}
