// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIG (300ull << 30)

static bool is_image(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, name, strlen(name)) && !strcmp(base + strlen(name), ".img");
}

static struct sparse *make_big(void)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct sparse *s = sparse_create(BIG, NULL);
	struct btrkit_io *io = sparse_io(s);

	opts.flags = BTRKIT_MKFS_REPRODUCIBLE;
	opts.fsid = (const uint8_t *)"three superblocks";
	if (btrkit_mkfs(&io, 1, &opts, NULL, NULL))
		exit(98);
	return s;
}

static struct sparse *image_of(const struct kind *kind, char **images)
{
	if (!kind->image)
		return make_big();
	for (; *images; images++)
		if (is_image(*images, kind->image))
			return sparse_import(*images);
	fprintf(stderr, "%s.img is not given\n", kind->image);
	exit(2);
}

static int prepare(struct sparse *s, const struct kind *kind, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_io *io = sparse_io(s);
	struct btrkit_fs *fs;
	int ret = btrkit_fs_open(&io, 1, &opts, &fs, err);

	if (ret)
		return ret;
	ret = kind->prepare(fs, err);
	btrkit_fs_close(fs);
	return ret;
}

struct sparse *base_of(const struct kind *kind, char **images)
{
	struct sparse *s = image_of(kind, images);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[512];

	if (kind->prepare && prepare(s, kind, &err)) {
		fprintf(stderr, "%s: %s\n", kind->name, btrkit_error_format(&err, line, sizeof(line)));
		exit(1);
	}
	return s;
}
