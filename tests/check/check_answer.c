// SPDX-License-Identifier: LGPL-2.1-or-later
/* What Linux answers to a filesystem that breaks one of its rules. */
#include "tests/check/check_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#define PAUSE 150000u /* microseconds */

static void answer(const char *what, int error)
{
	if (error)
		printf("ANSWER %s %d\n", what, error);
}

/* Commits, which also wakes what runs in the background: deletion of subvolumes and orphans, balance, UUID scan. */
static void commit(void)
{
	int fd = open(MNT, O_RDONLY | O_DIRECTORY);

	syncfs(fd);
	close(fd);
	usleep(PAUSE);
}

static void detach(void)
{
	if (umount2(MNT, 0)) {
		answer("umount", errno);
		umount2(MNT, MNT_DETACH);
	}
}

/* Prints the answer to a step of changes. @return false: the filesystem has turned read-only */
static bool changed(const char *what, int error)
{
	commit();
	commit();
	if (!check_is_read_only()) {
		answer(what, error);
		return true;
	}
	answer("forced", error ? error : EROFS);
	return false;
}

static void change(void)
{
	if (!changed("write", check_write()))
		return;
	/* A balance may lack the space or the devices that it needs. */
	check_move();
	if (changed("move", 0))
		changed("remove", check_remove());
}

void check_answer(const char *device, bool writable)
{
	if (mount(device, MNT, "btrfs", writable ? 0 : MS_RDONLY, NULL)) {
		answer("mount", errno);
		return;
	}
	if (writable)
		commit();
	check_read();
	for (int error = 1; error < CHECK_ERRNOS; error++)
		answer("read", check_failed[error] ? error : 0);
	if (writable)
		change();
	detach();
	if (!writable)
		return;
	if (mount(device, MNT, "btrfs", 0, NULL))
		answer("again", errno);
	else
		detach();
}
