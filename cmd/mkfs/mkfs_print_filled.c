// SPDX-License-Identifier: LGPL-2.1-or-later
/* The output of mkfs about the contents: the lines of mkfs.btrfs, and numbers. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/mkfs/mkfs.h"

#define LEVEL_DEFAULT 3 /* of zlib and zstd */

static void print_source(const struct btrkit_mkfs_source *s)
{
	static const char *const names[] = { [BTRKIT_SOURCE_DIRECTORY] = "Rootdir from:",
					     [BTRKIT_SOURCE_ARCHIVE] = "Archive from:",
					     [BTRKIT_SOURCE_MANIFEST] = "Manifest from:" };
	char path[PATH_MAX];

	printf("%-20s%s\n", names[s->kind], realpath(s->path, path) ? path : s->path);
	for (size_t i = 0; i < s->num_layers; i++)
		printf("%-20s%s\n", "  Layer over it:", realpath(s->layers[i], path) ? path : s->layers[i]);
}

static void print_compression(const struct mkfs_request *req)
{
	static const char *const names[] = { "no", "zlib", "lzo", "zstd" };
	const struct btrkit_mkfs_options *o = &req->opts;
	int level = o->compression_level;

	if (req->level_given && !level)
		level = o->compression == BTRKIT_COMPRESSION_LZO ? 1 : LEVEL_DEFAULT;
	printf("%-20s%s", "  Compress:", names[o->compression]);
	if (level)
		printf(":%d", level);
	printf("\n");
}

static void print_numbers(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	char from[32], to[32];

	printf("%-20s%" PRIu64 "\n", "  Inodes:", r->inodes);
	printf("%-20s%" PRIu64 ", %s\n", "  Files with data:", r->files, mkfs_pretty(r->file_bytes, from));
	if (r->compressor)
		printf("%-20s%s to %s, library version %s\n", "  Compressed:", mkfs_pretty(r->compressed_from, from),
		       mkfs_pretty(r->compressed_to, to), r->compressor);
	if (req->opts.flags & BTRKIT_MKFS_VERIFY)
		printf("%-20s%" PRIu64 " inodes, %" PRIu64 " bytes of files\n", "  Verified:", r->verified,
		       r->verified_bytes);
	if (req->opts.flags & BTRKIT_MKFS_FIT)
		printf("%-20s%" PRIu64 " bytes\n", "  Image size:", r->total_bytes);
}

void mkfs_print_filled(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	const struct btrkit_mkfs_source *s = req->opts.source;

	print_source(s);
	print_compression(req);
	for (size_t i = 0; i < s->num_subvolumes; i++)
		printf("  Subvolume (%s%s):  %s%s\n", s->subvolumes[i].is_default ? "d" : "",
		       s->subvolumes[i].readonly ? "ro" : "rw", s->subvolumes[i].is_default ? "" : " ",
		       s->subvolumes[i].path);
	for (size_t i = 0; i < s->num_inode_flags; i++)
		printf("  Inode flags (%s):  %s\n", s->inode_flags[i].nodatacow ? "NODATACOW" : "NODATASUM",
		       s->inode_flags[i].path);
	printf("%-20s%s\n", "  Shrink:", req->shrink ? "yes" : "no");
	print_numbers(req, r);
}
