// SPDX-License-Identifier: LGPL-2.1-or-later
/* Registers a new filesystem with Linux. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/mkfs/mkfs.h"

/* The argument of the ioctl of /dev/btrfs-control that scans a device. */
struct scan_args {
	int64_t unused;
	char path[4088];
};
#define SCAN_DEVICE _IOW(0x94, 4, struct scan_args)

static bool is_block_device(const char *device)
{
	struct stat st;

	return !stat(device, &st) && S_ISBLK(st.st_mode);
}

/* @return 0 or an errno */
static int tell(const char *device)
{
	struct scan_args args = { 0 };
	int control = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC), ret = 0;

	if (control < 0)
		return errno;
	snprintf(args.path, sizeof(args.path), "%s", device);
	if (ioctl(control, SCAN_DEVICE, &args) < 0)
		ret = errno;
	close(control);
	return ret;
}

/* Where udev is running it does the same a moment later. A failure does not matter for a single device. */
void mkfs_register(const struct command *cmd, const struct mkfs_request *req)
{
	for (size_t i = 0; i < req->num_devices; i++) {
		struct cmd_note note = { cmd, req->devices[i] };
		int failed = is_block_device(req->devices[i]) ? tell(req->devices[i]) : 0;
		char line[128];

		if (!failed || req->num_devices == 1)
			continue;
		snprintf(line, sizeof(line), "cannot register it with Linux: %s", strerror(failed));
		cmd_note(&note, line);
	}
}
