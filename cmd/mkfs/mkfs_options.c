// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cmd/mkfs/mkfs.h"
#include "cmd/nearest.h"

const struct cmd_option mkfs_options[] = {
	{ 'd', "data", "PROFILE", "profile for data: single (the default), dup, raid0, raid1,\n"
				  "raid1c3, raid1c4, raid10, raid5 or raid6" },
	{ 'm', "metadata", "PROFILE", "profile for metadata; the default is dup on one device,\n"
				      "raid1 on several, single with --mixed" },
	{ 'M', "mixed", NULL, "keep data and metadata in the same block groups" },
	{ OPT_CSUM, "csum", "TYPE", "checksum algorithm: crc32c (the default), xxhash, sha256\n"
				    "or blake2" },
	{ OPT_CHECKSUM, "checksum", "TYPE", "the same as --csum" },
	{ 'n', "nodesize", "SIZE", "size of tree blocks, 4k to 64k (default: 16k; with --mixed,\nthe sectorsize)" },
	{ 's', "sectorsize", "SIZE", "size of data blocks, 4k to 64k (default: 4k)" },
	{ 'O', "features", "LIST", "features to turn on or, after a ^, off, separated by\n"
				   "commas; list-all lists them" },
	{ 'R', "runtime-features", "LIST", "deprecated: as --features, for quota and free-space-tree" },
	{ 'L', "label", "LABEL", "label, at most 255 bytes" },
	{ 'U', "uuid", "UUID", "UUID of the filesystem (default: random)" },
	{ OPT_DEVICE_UUID, "device-uuid", "UUID", "UUID of the first device (default: random)" },
	{ 'b', "byte-count", "SIZE", "use only this much of each device" },
	{ 'K', "nodiscard", NULL, "do not discard the contents of the devices first" },
	{ OPT_UNDO, "undo", "FILE", "save what is overwritten in the new FILE, for btrkit undo;\n"
				    "discard nothing" },
	{ 'r', "rootdir", "DIR", "fill the filesystem with the contents of DIR; several are\n"
				 "layers, the lowest first" },
	{ OPT_TAR, "tar", "FILE", "fill it with the contents of an archive, compressed or not;\n"
				  "- is the standard input; several are layers, as --rootdir" },
	{ OPT_MANIFEST, "manifest", "FILE", "fill it with what a composefs dumpfile lists; - is the\n"
					    "standard input" },
	{ OPT_BASEDIR, "basedir", "DIR", "directory with the contents of the files in a manifest" },
	{ 'u', "subvol", "[TYPE:]DIR", "make DIR, a path in the source, a subvolume; TYPE is rw (the\n"
				       "default), ro, default or default-ro (repeatable)" },
	{ OPT_INODE_FLAGS, "inode-flags", "FLAGS:PATH", "set flags on PATH in the source and everything below:\n"
							"nodatacow, nodatasum (repeatable)" },
	{ OPT_COMPRESS, "compress", "ALGO[:LEVEL]", "compress files: no (the default), zlib (1 to 9), lzo, zstd\n"
						    "(1 to 15)" },
	{ OPT_EXCLUDE, "exclude", "PATTERN", "leave out matching files (repeatable)" },
	{ OPT_WITH_XATTR, "with-xattr", "PATTERN", "always include matching extended attributes (repeatable)" },
	{ OPT_WITHOUT_XATTR, "without-xattr", "PATTERN", "leave out matching extended attributes (repeatable)" },
	{ OPT_ROOT_OWNER, "root-owner", "UID:GID", "set the owner of the top directory" },
	{ OPT_WHITEOUTS, "whiteouts", NULL, "with --tar or --manifest: copy whiteouts of layers\n"
					    "unchanged, as files" },
	{ OPT_ACCEPT_CHANGES, "accept-changes", NULL, "take files in --rootdir that change meanwhile as they were\n"
						      "found first; exit with 1 then" },
	{ OPT_SORT, "sort", "FILE", "order the contents of files by FILE: lines of a path and a\n"
				    "priority" },
	{ OPT_REFLINK, "reflink", NULL, "share the blocks of files in --rootdir instead of copying" },
	{ OPT_SHRINK, "shrink", NULL, "make it as small as its contents allow, also on a device" },
	{ OPT_FREE, "free", "SIZE|N%", "leave this much free if the size follows from the contents" },
	{ OPT_SIZE_ONLY, "size-only", NULL, "only print the size that it would have; DEV may be omitted" },
	{ OPT_DETERMINISTIC, "deterministic", NULL, "make equal bytes from equal sources and options" },
	{ OPT_VERIFY, "verify", NULL, "read back what was written and compare it with the source" },
	{ OPT_THREADS, "threads", "N", "use N threads (default: one for each processor)" },
	{ 'f', "force", NULL, "overwrite an existing filesystem or partition table" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	{ 'q', "quiet", NULL, "print nothing but errors and warnings" },
	{ 'v', "verbose", NULL, "print more details" },
	{ 'V', "version", NULL, "print the version and exit" },
	{ 0 },
};

/* The last one is single, which has no flag. */
const struct mkfs_profile mkfs_profiles[MKFS_PROFILES] = {
	{ "RAID0", BTRKIT_PROFILE_RAID0, 0x8, 0 },	 { "RAID1", BTRKIT_PROFILE_RAID1, 0x10, 1 },
	{ "RAID1C3", BTRKIT_PROFILE_RAID1C3, 0x200, 2 }, { "RAID1C4", BTRKIT_PROFILE_RAID1C4, 0x400, 3 },
	{ "RAID10", BTRKIT_PROFILE_RAID10, 0x40, 1 },	 { "RAID5", BTRKIT_PROFILE_RAID5, 0x80, 1 },
	{ "RAID6", BTRKIT_PROFILE_RAID6, 0x100, 2 },	 { "DUP", BTRKIT_PROFILE_DUP, 0x20, 0 },
	{ "single", BTRKIT_PROFILE_SINGLE, 0, 0 },
};

const char *const mkfs_csums[4] = { "crc32c", "xxhash64", "sha256", "blake2b" };

static enum btrkit_profile parse_profile(const struct command *cmd, const char *option, const char *name)
{
	struct cmd_nearest nearest = { .given = name };
	struct cmd_hint hint;

	for (size_t i = 0; i < MKFS_PROFILES; i++) {
		if (!strcasecmp(name, mkfs_profiles[i].name))
			return mkfs_profiles[i].profile;
		cmd_nearest_try(&nearest, mkfs_profiles[i].name);
	}
	cmd_usage_error(cmd, "%s: '%s' is unknown%s", option, name, cmd_nearest_hint(&nearest, "", &hint));
}

static enum btrkit_csum parse_csum(const struct command *cmd, const char *name)
{
	static const struct {
		const char *name;
		enum btrkit_csum csum;
	} names[] = {
		{ "crc32c", BTRKIT_CSUM_CRC32C },     { "xxhash", BTRKIT_CSUM_XXHASH64 },
		{ "xxhash64", BTRKIT_CSUM_XXHASH64 }, { "sha256", BTRKIT_CSUM_SHA256 },
		{ "blake2", BTRKIT_CSUM_BLAKE2B },    { "blake2b", BTRKIT_CSUM_BLAKE2B },
	};

	struct cmd_nearest nearest = { .given = name };
	struct cmd_hint hint;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcasecmp(name, names[i].name))
			return names[i].csum;
		cmd_nearest_try(&nearest, names[i].name);
	}
	cmd_usage_error(cmd, "--csum: '%s' is unknown%s", name, cmd_nearest_hint(&nearest, "", &hint));
}

static const uint8_t *parse_uuid(const struct command *cmd, const char *option, const char *s, uint8_t to[16])
{
	static const char pattern[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	unsigned digits = 0;
	size_t i;

	memset(to, 0, 16);
	for (i = 0; pattern[i]; i++) {
		unsigned char c = (unsigned char)s[i];

		if (pattern[i] == '-' ? c != '-' : !isxdigit(c))
			break;
		if (c == '-')
			continue;
		to[digits / 2] = (uint8_t)(to[digits / 2] << 4 | (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10));
		digits++;
	}
	if (pattern[i] || s[i])
		cmd_usage_error(cmd, "%s: '%s' is not a UUID", option, s);
	return to;
}

static uint32_t block_size(const struct command *cmd, const char *option, const char *s)
{
	uint64_t v = cmd_size(cmd, option, s);

	/* For the library 0 means the default. */
	if (!v || v > UINT32_MAX)
		cmd_usage_error(cmd, "%s: '%s' is not a block size", option, s);
	return (uint32_t)v;
}

/* @return whether the option is about properties of the filesystem */
static bool take_property(const struct command *cmd, struct mkfs_request *req, int c)
{
	struct btrkit_mkfs_options *o = &req->opts;

	switch (c) {
	case 'M':
		o->mixed = true;
		return true;
	case OPT_CSUM:
	case OPT_CHECKSUM:
		o->csum = parse_csum(cmd, optarg);
		return true;
	case 'n':
		o->nodesize = block_size(cmd, "--nodesize", optarg);
		return true;
	case 's':
		o->sectorsize = block_size(cmd, "--sectorsize", optarg);
		return true;
	case 'O':
	case 'R':
		mkfs_take_features(cmd, o, optarg, c == 'R');
		req->old_features |= c == 'R';
		return true;
	case 'L':
		o->label = optarg;
		return true;
	case 'U':
		o->fsid = parse_uuid(cmd, "--uuid", optarg, req->fsid);
		return true;
	case OPT_DEVICE_UUID:
		o->device_uuid = parse_uuid(cmd, "--device-uuid", optarg, req->device_uuid);
		return true;
	case 'b':
		o->byte_count = cmd_size(cmd, "--byte-count", optarg);
		return true;
	default:
		return false;
	}
}

/* Options about how the filesystem is made, and about output. */
static void take_manner(const struct command *cmd, struct mkfs_request *req, int c)
{
	switch (c) {
	case 'K':
		req->opts.flags &= ~(unsigned)BTRKIT_MKFS_DISCARD;
		break;
	case OPT_UNDO:
		req->undo = optarg;
		break;
	case 'f':
		req->force = true;
		break;
	case OPT_FORMAT:
		req->json = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON) == BTRKIT_FORMAT_JSON;
		break;
	case 'q':
		req->verbosity = 0;
		break;
	case 'v':
		req->verbosity++;
		break;
	case 'V':
		printf("btrkit mkfs, part of btrkit %s\nbuilt with %s\n", btrkit_version(), btrkit_build_features());
		exit(cmd_close_stdout(cmd, EXIT_DONE));
	default:
		break;
	}
}

static void take_time(const struct command *cmd, struct btrkit_mkfs_options *o)
{
	const char *s = getenv("SOURCE_DATE_EPOCH");
	unsigned long long seconds;
	char *end;

	o->time = (int64_t)time(NULL);
	if (!s)
		return;
	errno = 0;
	seconds = strtoull(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end || errno || seconds > INT64_MAX)
		cmd_usage_error(cmd, "SOURCE_DATE_EPOCH: '%s' is not a number of seconds", s);
	o->time = (int64_t)seconds;
	if (o->fsid)
		o->flags |= BTRKIT_MKFS_REPRODUCIBLE;
}

/* As mkfs.btrfs 7.3 does, which takes no value but 1. */
static void take_seed(const struct command *cmd, struct btrkit_mkfs_options *o)
{
	const char *s = getenv("DETERMINISTIC_SEED");

	if (!s || strcmp(s, "1"))
		return;
	if (!o->fsid && !(o->flags & BTRKIT_MKFS_DETERMINISTIC))
		cmd_usage_error(cmd, "DETERMINISTIC_SEED=1 requires --uuid");
	o->flags |= BTRKIT_MKFS_REPRODUCIBLE;
}

/* Checks combinations of options, independently of the devices. */
static void verify_options(const struct command *cmd, const struct mkfs_request *req)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t min;

	if (btrkit_mkfs_min_size(&req->opts, req->num_devices ? req->num_devices : 1, &min, &err))
		cmd_usage_error(cmd, "%s", err.message);
}

void mkfs_parse(const struct command *cmd, int argc, char **argv, struct mkfs_request *req)
{
	struct btrkit_mkfs_options *o = &req->opts;
	const char *data = NULL, *metadata = NULL;
	int c;

	*req = (struct mkfs_request){ .opts = BTRKIT_MKFS_OPTIONS_INIT, .verbosity = 1 };
	o->flags |= BTRKIT_MKFS_DISCARD;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		if (c == 'd')
			data = optarg;
		else if (c == 'm')
			metadata = optarg;
		else if (!mkfs_take_source_option(cmd, req, c) && !take_property(cmd, req, c))
			take_manner(cmd, req, c);
	}
	cmd_check_args(cmd, argc, o->flags & BTRKIT_MKFS_DRY ? 0 : 1, -1);
	req->devices = (const char *const *)argv + optind;
	req->num_devices = (size_t)(argc - optind);
	if (o->incompat & MKFS_MIXED_GROUPS)
		o->mixed = true;
	if (data)
		o->data = parse_profile(cmd, "--data", data);
	if (metadata)
		o->metadata = parse_profile(cmd, "--metadata", metadata);
	if (!o->sectorsize)
		o->sectorsize = MKFS_SECTORSIZE;
	if (o->mixed && !o->nodesize)
		o->nodesize = o->sectorsize;
	if (req->undo)
		o->flags &= ~(unsigned)BTRKIT_MKFS_DISCARD;
	take_time(cmd, o);
	take_seed(cmd, o);
	mkfs_check_source(cmd, req);
	verify_options(cmd, req);
}
