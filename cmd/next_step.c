// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cmd/next_step.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/print/next_step.h"

#define PARTITIONS_MAX 128	/* that are tried: what a GPT has unless it was made larger */
#define MAGIC_AT 65600		/* of the primary superblock's magic */

static const struct cmd_option *find_option(const struct command *cmd, const char *name)
{
	for (const struct cmd_option *o = cmd->options; o && o->id; o++)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static bool has_option(const struct command *cmd, const char *name)
{
	return find_option(cmd, name);
}

static void BTRKIT_PRINTF(2, 3) add(struct cmd_next_step *step, const char *fmt, ...)
{
	const size_t used = strlen(step->text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(step->text + used, sizeof(step->text) - used, fmt, args);
	va_end(args);
}

/* Not if a chunk needs the devices: the error names one, or what has no copy elsewhere. */
static void name_degraded(const struct command *cmd, const struct btrkit_error *err, struct cmd_next_step *step)
{
	if (has_option(cmd, "degraded") && !(err->places & BTRKIT_AT_LOGICAL) && !err->unmirrored)
		add(step, ", or write without %s by --degraded",
		    err->cause == BTRKIT_CAUSE_DEVICE_STALE ? "it" : "them");
}

/* How the command gets devices: by an option, as arguments, or from the machine, where it looks for them. */
static void name_devices(const struct command *cmd, struct cmd_next_step *step)
{
	const struct cmd_option *option = find_option(cmd, "device");

	if (option && option->arg)
		add(step, "; give each device with --device");
	else if (!strncmp(cmd->args, "DEV...", 6))
		add(step, "; give all devices");
	else
		add(step, "; attach all devices, which are found then (an image file by losetup)");
}

/* Whether a partition of a disk, or of an image of one, can be opened. @btrfs: whether it has a filesystem */
static bool find_partition(const char *device, unsigned number, bool *btrfs)
{
	char spec[4096 + 32], magic[8];
	struct btrkit_io *io;

	if ((size_t)snprintf(spec, sizeof(spec), "%s?partition=%u", device, number) >= sizeof(spec) ||
	    btrkit_io_open(spec, BTRKIT_IO_READ, &io, NULL))
		return false;
	*btrfs = io->size >= MAGIC_AT + sizeof(magic) &&
		 !btrkit_io_read(io, MAGIC_AT, magic, sizeof(magic), NULL) && !memcmp(magic, "_BHRfS_M", sizeof(magic));
	btrkit_io_close(io);
	return true;
}

/* If the device has a partition table: which partition has a filesystem. */
static void name_partition(const char *device, struct cmd_next_step *step)
{
	bool any = false, btrfs = false;

	/* Given with an offset or a partition, it has been looked for in the right place. */
	if (strrchr(device, '?'))
		return;
	for (unsigned n = 1; n <= PARTITIONS_MAX; n++) {
		const bool found = find_partition(device, n, &btrfs);

		any |= found;
		if (found && btrfs) {
			snprintf(step->text, sizeof(step->text), "; its partition %u is one: add ?partition=%u", n, n);
			return;
		}
	}
	if (any)
		snprintf(step->text, sizeof(step->text),
			 "; it has a partition table, and none of its partitions is one");
	else
		snprintf(step->text, sizeof(step->text),
			 "; no superblock was found at 64 KiB, 64 MiB or 256 GiB: blkid tells what it has");
}

/* A superblock that is used has no logical address. If it fails, none of its mirrors was valid. */
static void damaged(const struct command *cmd, const struct btrkit_error *err, struct cmd_next_step *step)
{
	if (err->places & BTRKIT_AT_LOGICAL)
		add(step, "; btrkit check lists all damage");
	else if (err->places & BTRKIT_AT_PHYSICAL && strcmp(cmd->name, "dump-super"))
		add(step, "; no mirror is valid either: btrkit dump-super -fa shows them");
}

const char *cmd_next_step(const struct command *cmd, const char *device, const struct btrkit_error *err,
			  struct cmd_next_step *step)
{
	*step->text = '\0';
	switch (err->cause) {
	case BTRKIT_CAUSE_NO_SUPERBLOCK:
		name_partition(device, step);
		break;
	case BTRKIT_CAUSE_LOG_TREE:
		add(step, "; mount it once, then Linux replays what was synced last, and unmount it");
		break;
	case BTRKIT_CAUSE_DEVICE_STALE:
		print_stale_step(err->unmirrored, step->text, sizeof(step->text));
		name_degraded(cmd, err, step);
		break;
	case BTRKIT_CAUSE_IN_USE:
		add(step, "; unmount it first%s", has_option(cmd, "force") && !strcmp(cmd->name, "check") ?
							  ", or give --force" : "");
		break;
	case BTRKIT_CAUSE_DEVICE_MISSING:
		name_devices(cmd, step);
		name_degraded(cmd, err, step);
		break;
	case BTRKIT_CAUSE_LOCKED:
		add(step, "; wait for that program, which fuser or lsof names");
		break;
	case BTRKIT_CAUSE_CSUM:
	case BTRKIT_CAUSE_BYTENR:
		damaged(cmd, err, step);
		break;
	case BTRKIT_CAUSE_FSID:
	case BTRKIT_CAUSE_OWNER:
	case BTRKIT_CAUSE_LEVEL:
	case BTRKIT_CAUSE_FIRST_KEY:
		add(step, "; btrkit check lists all damage");
		break;
	case BTRKIT_CAUSE_GENERATION:
		add(step, "; an older state may be whole: %s",
		    has_option(cmd, "backup") ? "btrkit dump-tree -R lists them, and --backup N uses one" :
						"mount -o ro,rescue=usebackuproot shows it");
		break;
	default:
		if (err->code == BTRKIT_TRUNCATED && err->places & BTRKIT_AT_DEVID)
			add(step, "; the device is shorter than its filesystem: copy the whole of it");
		break;
	}
	return step->text;
}
