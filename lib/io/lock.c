// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/err.h"

#define LOCK_TRIES 60
#define LOCK_WAIT_NS 50000000	/* three seconds in total */
#define ANCESTORS_MAX 1000	/* processes may start and end while their parents are looked up */

/* Reads the process and the device node of a line such as "1: FLOCK  ADVISORY  WRITE 4242 00:06:345 0 EOF". */
static bool parse_lock(const char *line, const struct stat *st, long *pid)
{
	unsigned major, minor;
	unsigned long inode;

	return sscanf(line, "%*u: FLOCK %*s %*s %ld %x:%x:%lu", pid, &major, &minor, &inode) == 4 &&
	       major == major(st->st_dev) && minor == minor(st->st_dev) && inode == st->st_ino;
}

/* Returns the parent of a process, 0 if it has none that is visible here. */
static long parent_of(long pid)
{
	char path[32], text[512] = "";
	const char *end;
	long parent;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The name of the program stands in parentheses, and may contain any byte. */
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %ld", &parent) == 1 ? parent : 0;
}

static bool is_ancestor(long pid)
{
	long p = getppid();

	for (unsigned i = 0; p > 0 && i < ANCESTORS_MAX; i++) {
		if (p == pid)
			return true;
		p = parent_of(p);
	}
	return false;
}

/* Whether this descriptor, which may be inherited, holds the lock that process @pid took. */
static bool holds_lock(const char *name, const struct stat *st, long pid)
{
	char path[300], line[256];
	bool found = false;
	long its;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "lock:", 5) && parse_lock(line + 5, st, &its) && its == pid;
	fclose(f);
	return found;
}

/* Whether the lock came with an inherited descriptor: a shell may have had it taken by a process that has ended. */
static bool is_inherited(const struct stat *st, long pid)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	const struct dirent *d;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (d = readdir(dir)))
		found = *d->d_name != '.' && holds_lock(d->d_name, st, pid);
	closedir(dir);
	return found;
}

/* Whether all locks on the device node are held by callers of this process, and there are any. */
static bool held_by_callers(const struct stat *st)
{
	FILE *f = fopen("/proc/locks", "re");
	bool any = false, all = true;
	char line[256];
	long pid;

	if (!f)
		return false;
	while (all && fgets(line, sizeof(line), f)) {
		if (!parse_lock(line, st, &pid))
			continue;
		any = true;
		all = is_ancestor(pid) || is_inherited(st, pid);
	}
	fclose(f);
	return any && all;
}

/* Workers of udev hold a shared lock while they probe a device, which they do briefly after every change, so waits. */
int io_lock_block(int fd, const struct stat *st, struct btrkit_error *err)
{
	const struct timespec wait = { 0, LOCK_WAIT_NS };

	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return err_system(err, errno, "cannot lock");
		if (held_by_callers(st))
			return 0;
		if (i >= LOCK_TRIES)
			return err_because(err, BTRKIT_CAUSE_LOCKED,
					   err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it"));
		nanosleep(&wait, NULL);
	}
	return 0;
}

int io_lock_file(int fd, uint64_t start, uint64_t len, struct btrkit_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_because(err, BTRKIT_CAUSE_LOCKED,
				   err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it"));
	return err_system(err, errno, "cannot lock");
}
