// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/format/feature_bits.h"

static bool is_image(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, name, strlen(name)) && !strcmp(base + strlen(name), ".img");
}

static bool random_uuids;

void base_use_random_uuids(void)
{
	random_uuids = true;
}

static struct disks make(const struct made *made)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disks d = { .n = made->devices };
	struct btrkit_io *io[DISKS_MAX];
	uint8_t fsid[16] = "made for crashes";
	char line[512];

	if (random_uuids && getentropy(fsid, sizeof(fsid)))
		exit(99);
	opts.flags = BTRKIT_MKFS_REPRODUCIBLE;
	opts.fsid = fsid;
	opts.data = made->data;
	opts.metadata = made->metadata;
	opts.nodesize = made->nodesize;
	if (made->no_group_tree)
		opts.compat_ro &= ~(uint64_t)COMPAT_RO_BLOCK_GROUP_TREE;
	for (unsigned i = 0; i < d.n; i++) {
		d.at[i] = sparse_create(made->size, NULL);
		io[i] = sparse_io(d.at[i]);
	}
	if (btrkit_mkfs(io, d.n, &opts, NULL, &err)) {
		fprintf(stderr, "mkfs: %s\n", btrkit_error_format(&err, line, sizeof(line)));
		exit(98);
	}
	return d;
}

static struct disks image_of(const struct kind *kind, char **images)
{
	if (!kind->image)
		return make(kind->made);
	for (; *images; images++)
		if (is_image(*images, kind->image))
			return disks_one(sparse_import(*images));
	fprintf(stderr, "%s.img is not given\n", kind->image);
	exit(2);
}

static int prepare(const struct disks *d, const struct kind *kind, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_io *io[DISKS_MAX];
	struct btrkit_fs *fs;
	int ret;

	for (unsigned i = 0; i < d->n; i++)
		io[i] = sparse_io(d->at[i]);
	ret = btrkit_fs_open(io, d->n, &opts, &fs, err);
	if (ret)
		return ret;
	ret = kind->prepare(fs, err);
	btrkit_fs_close(fs);
	return ret;
}

struct disks base_of(const struct kind *kind, char **images)
{
	struct disks d = image_of(kind, images);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[512];

	if (kind->prepare && prepare(&d, kind, &err)) {
		fprintf(stderr, "%s: %s\n", kind->name, btrkit_error_format(&err, line, sizeof(line)));
		exit(1);
	}
	return d;
}

unsigned spare_of(const struct kind *kind)
{
	return kind->image ? 0 : kind->made->spare;
}
