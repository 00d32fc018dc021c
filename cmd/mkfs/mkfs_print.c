// SPDX-License-Identifier: LGPL-2.1-or-later
/* The output of mkfs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cmd/mkfs/mkfs.h"

#define GROUP_DATA 0x1u
#define GROUP_SYSTEM 0x2u
#define GROUP_METADATA 0x4u
#define GROUP_TYPES (GROUP_DATA | GROUP_SYSTEM | GROUP_METADATA)

#define NO_HOLES 0x200u
#define FREE_SPACE_TREE 0x1u
#define BLOCK_GROUP_TREE 0x8u

bool mkfs_queue_value(const char *device, const char *name, char *to, size_t size)
{
	const char *mark = strrchr(device, '?');
	char path[512];
	struct stat st;
	FILE *f;
	bool found;

	if (stat(device, &st)) {
		/* The part after the question mark is for btrkit_io_open(). */
		snprintf(path, sizeof(path), "%.*s", mark ? (int)(mark - device) : 0, device);
		if (!mark || stat(path, &st))
			return false;
	}
	if (!S_ISBLK(st.st_mode))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/%s", major(st.st_rdev), minor(st.st_rdev), name);
	f = fopen(path, "r");
	if (!f) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../queue/%s", major(st.st_rdev), minor(st.st_rdev),
			 name);
		f = fopen(path, "r");
	}
	if (!f)
		return false;
	found = fgets(to, (int)size, f);
	fclose(f);
	if (found)
		to[strcspn(to, "\n")] = '\0';
	return found;
}

bool mkfs_is_ssd(const char *device)
{
	char rotational[8] = "1";

	mkfs_queue_value(device, "rotational", rotational, sizeof(rotational));
	return !strcmp(rotational, "0");
}

/* Like btrfs-progs, truncates below 1/1024 of the unit, and rounds the rest. */
const char *mkfs_pretty(uint64_t size, char to[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t last = size;
	unsigned unit = 0;

	for (; size >= 1024; size /= 1024, unit++)
		last = size;
	snprintf(to, 32, "%.2f%s", (double)((float)last / (unit ? 1024 : 1)), units[unit]);
	return to;
}

static void print_uuid(const uint8_t *uuid)
{
	for (unsigned i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static const struct mkfs_profile *profile_of(uint64_t type)
{
	const struct mkfs_profile *p = mkfs_profiles;

	while (p->flag && !(type & p->flag))
		p++;
	return p;
}

/* The profile of the block groups with @type. */
static const struct mkfs_profile *profile_made(const struct btrkit_mkfs_result *r, uint64_t type)
{
	unsigned i = 0;

	while (i + 1 < r->num_groups && !(r->groups[i].type & type))
		i++;
	return profile_of(r->groups[i].type);
}

static void print_groups(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	static const uint64_t types[] = { GROUP_DATA, GROUP_METADATA, GROUP_DATA | GROUP_METADATA, GROUP_SYSTEM };
	static const char *const names[] = { "  Data:", "  Metadata:", "  Data+Metadata:", "  System:" };
	char size[32];

	printf("Block group profiles:\n");
	for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (unsigned i = 0; i < r->num_groups; i++) {
			const struct btrkit_mkfs_group *g = &r->groups[i];

			if ((g->type & GROUP_TYPES) != types[t])
				continue;
			printf("%-20s%-8s %16s", names[t], profile_of(g->type)->name, mkfs_pretty(g->length, size));
			if (req->verbosity > 1)
				printf("  at %" PRIu64, g->logical);
			printf("\n");
		}
	}
}

static void print_devices(const struct mkfs_request *req)
{
	char size[32];

	printf("%-20s%zu\nDevices:\n   ID        SIZE  PATH\n", "Number of devices:", req->num_devices);
	for (size_t i = 0; i < req->num_devices; i++) {
		printf("%5zu  %10s  %s", i + 1, mkfs_pretty(req->opts.made[i].total_bytes, size), req->devices[i]);
		if (req->verbosity > 1 && req->num_devices > 1) {
			printf("  ");
			print_uuid(req->opts.made[i].uuid);
		}
		printf("\n");
	}
	printf("\n");
}

void mkfs_print_summary(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	char size[32];

	printf("btrkit %s\n\n", btrkit_version());
	if (req->opts.source)
		mkfs_print_filled(req, r);
	printf("%-20s%s\n", "Label:", req->opts.label ? req->opts.label : "(null)");
	printf("%-20s", "UUID:");
	print_uuid(r->fsid);
	if (req->opts.device_uuid || req->verbosity > 1) {
		printf("\n%-20s", "Device UUID:");
		print_uuid(r->device_uuid);
	}
	printf("\n%-20s%" PRIu32 "\n", "Node size:", r->nodesize);
	printf("%-20s%" PRIu32 "\t(CPU page size: %ld)\n", "Sector size:", r->sectorsize, sysconf(_SC_PAGESIZE));
	printf("%-20s%s\n", "Filesystem size:", mkfs_pretty(r->total_bytes, size));
	print_groups(req, r);
	printf("%-20s%s\n", "SSD detected:", mkfs_is_ssd(req->devices[0]) ? "yes" : "no");
	printf("%-20s%s\n", "Zoned device:", "no");
	printf("%-20s", "Features:");
	mkfs_print_features(r->incompat, r->compat_ro, req->opts.flags & BTRKIT_MKFS_QUOTA);
	printf("\n%-20s%s\n", "Checksum:", mkfs_csums[req->opts.csum]);
	print_devices(req);
}

static void warn_of_profiles(const struct mkfs_request *req, const struct btrkit_mkfs_result *r,
			     struct cmd_note *note)
{
	const struct mkfs_profile *data = profile_made(r, GROUP_DATA), *metadata = profile_made(r, GROUP_METADATA);
	const bool mixed = data == metadata && r->num_groups == 2;
	const struct {
		enum btrkit_profile profile;
		bool when;
		const char *text;
	} words[] = {
		{ BTRKIT_PROFILE_RAID5, true, "RAID5 and RAID6 have known problems in Linux, and are for tests only" },
		{ BTRKIT_PROFILE_RAID5, req->num_devices == 2, "RAID5 is not recommended on only 2 devices" },
		{ BTRKIT_PROFILE_RAID6,
		  data->profile != BTRKIT_PROFILE_RAID5 && metadata->profile != BTRKIT_PROFILE_RAID5,
		  "RAID5 and RAID6 have known problems in Linux, and are for tests only" },
		{ BTRKIT_PROFILE_RAID6, req->num_devices == 3, "RAID6 is not recommended on only 3 devices" },
		{ BTRKIT_PROFILE_DUP, req->num_devices > 1,
		  "DUP has both copies on one device: with several it is not recommended" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].when && (data->profile == words[i].profile || metadata->profile == words[i].profile))
			cmd_note(note, words[i].text);
	if (data->profile == BTRKIT_PROFILE_DUP && !mixed && mkfs_is_ssd(req->devices[0]))
		cmd_note(note, "the device may keep only one copy of DUP data, being an SSD");
	if (metadata->tolerates < data->tolerates)
		cmd_note(note, "metadata survives the loss of fewer devices than data does");
}

/*
 * Linux always supports the page size, and lists the other sizes in sysfs. 4096 is or will be supported on every
 * machine.
 */
static bool linux_takes_sectorsize(uint32_t size)
{
	FILE *f = fopen("/sys/fs/btrfs/features/supported_sectorsizes", "r");
	unsigned supported;
	bool found = size == MKFS_SECTORSIZE || size == sysconf(_SC_PAGESIZE);

	while (f && !found && fscanf(f, "%u", &supported) == 1)
		found = supported == size;
	if (f)
		fclose(f);
	return found;
}

void mkfs_warn(const struct command *cmd, const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	const struct btrkit_mkfs_options *o = &req->opts;
	struct cmd_note note = { cmd, req->devices[0] };
	char line[128];

	if (req->old_features)
		cmd_note(&note, "--runtime-features is deprecated: use --features");
	if (o->compat_ro & BLOCK_GROUP_TREE && (!(o->incompat & NO_HOLES) || !(o->compat_ro & FREE_SPACE_TREE)))
		cmd_note(&note, "without block-group-tree, which needs no-holes and free-space-tree");
	warn_of_profiles(req, r, &note);
	if (linux_takes_sectorsize(o->sectorsize))
		return;
	snprintf(line, sizeof(line), "sectorsize %" PRIu32 " is not this machine's page size: Linux may refuse it",
		 o->sectorsize);
	cmd_note(&note, line);
}
