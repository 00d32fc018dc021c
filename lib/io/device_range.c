// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/device_range.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/loop.h>

#define SECTOR 512u /* the unit of sysfs, independent of the device's sectors */
#define ATTRIBUTE 300

/* Reads the first line of a sysfs file, without the newline. */
static bool read_line(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, ret, size - 1);
	close(fd);
	if (len < 0)
		return false;
	ret[len] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

static bool read_number(dev_t dev, const char *attribute, uint64_t *ret)
{
	char path[ATTRIBUTE], line[32];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(dev), minor(dev), attribute);
	if (!read_line(path, line, sizeof(line)))
		return false;
	*ret = strtoull(line, NULL, 10);
	return true;
}

static bool read_device(const char *path, dev_t *ret)
{
	unsigned ma, mi;
	char line[32];

	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%u:%u", &ma, &mi) != 2)
		return false;
	*ret = makedev(ma, mi);
	return true;
}

/* Finds the disk of a partition, whose sysfs directory is the parent of the partition's. */
static bool disk_of(dev_t dev, dev_t *disk, uint64_t *start)
{
	char path[ATTRIBUTE];
	uint64_t sectors;

	if (!read_number(dev, "partition", &sectors) || !read_number(dev, "start", &sectors))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
	*start = sectors * SECTOR;
	return read_device(path, disk);
}

/* Translates a device range on a partition to its disk; other device ranges are returned unchanged. */
static struct device_range device_range_on_disk(const struct device_range *device_range)
{
	struct device_range ret = *device_range;
	uint64_t start;

	if (device_range->block && disk_of(device_range->dev, &ret.dev, &start))
		ret.start += start;
	return ret;
}

struct device_range device_range_of(const struct stat *st, uint64_t start, uint64_t len)
{
	const bool block = S_ISBLK(st->st_mode);

	return (struct device_range){ block, block ? st->st_rdev : st->st_dev, block ? 0 : st->st_ino, start, len };
}

/* Asks the loop driver. @return whether the loop device could be opened */
static bool ask_loop(const struct loop *loop, struct device_range *behind, bool *bound)
{
	struct loop_info64 info = { 0 }; /* initialized because valgrind does not know what the ioctl writes */
	char path[sizeof(loop->name) + 8];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", loop->name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISBLK(st.st_mode) || st.st_rdev != loop->dev) {
		close(fd);
		return false;
	}
	*bound = !ioctl(fd, LOOP_GET_STATUS64, &info);
	close(fd);
	*behind = (struct device_range){ .block = info.lo_rdevice,
					 .dev = info.lo_rdevice ? info.lo_rdevice : info.lo_device,
					 .ino = info.lo_rdevice ? 0 : info.lo_inode,
					 .start = info.lo_offset,
					 .len = info.lo_sizelimit };
	return true;
}

/* If loop devices cannot be opened, use the file name in sysfs, which may be valid only in another mount namespace. */
static bool read_loop(const struct loop *loop, struct device_range *behind)
{
	char path[ATTRIBUTE], name[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", loop->name);
	if (!read_line(path, name, sizeof(name)) || stat(name, &st))
		return false;
	*behind = device_range_of(&st, 0, 0);
	return read_number(loop->dev, "loop/offset", &behind->start) &&
	       read_number(loop->dev, "loop/sizelimit", &behind->len);
}

bool loop_find(const char *name, struct loop *ret)
{
	struct loop loop = { 0 };
	char path[ATTRIBUTE];
	uint64_t sectors;
	bool bound = false;

	snprintf(loop.name, sizeof(loop.name), "%s", name);
	snprintf(path, sizeof(path), "/sys/block/%s/dev", loop.name);
	if (!read_device(path, &loop.dev))
		return false;
	if (!ask_loop(&loop, &loop.behind, &bound))
		bound = read_loop(&loop, &loop.behind);
	if (!bound)
		return false;
	/* The file may have grown since; the device could be resized to show that part. */
	if (!loop.behind.len && !loop.behind.block)
		loop.behind.len = UINT64_MAX;
	else if (read_number(loop.dev, "size", &sectors))
		loop.behind.len = sectors * SECTOR;
	*ret = loop;
	return true;
}

/* Finds the loop device that a block device is. */
static bool find_own_loop(dev_t dev, struct loop *ret)
{
	char link[ATTRIBUTE], path[PATH_MAX];
	const char *name;
	ssize_t len;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	name = strrchr(path, '/');
	return name && !strncmp(name + 1, "loop", 4) && loop_find(name + 1, ret);
}

static void push(struct device_ranges *p, const struct device_range *device_range)
{
	const struct device_range *top = p->n ? &p->at[p->n - 1] : NULL;

	/* A disk was already pushed, as it is no partition. */
	if (top && top->block == device_range->block && top->dev == device_range->dev && top->ino == device_range->ino)
		return;
	p->at[p->n++] = *device_range;
}

void device_ranges_find(const struct device_range *device_range, struct device_ranges *ret)
{
	struct device_range at = *device_range;
	struct loop loop;

	ret->n = ret->own = 0;
	while (ret->n + 2 <= DEVICE_RANGES_MAX) {
		push(ret, &at);
		at = device_range_on_disk(&at);
		push(ret, &at);
		if (!ret->own)
			ret->own = ret->n;
		if (!at.block || !find_own_loop(at.dev, &loop))
			return;
		loop.behind.start += at.start;
		loop.behind.len = at.len;
		at = loop.behind;
	}
}

static uint64_t end_of(const struct device_range *p)
{
	return p->len < UINT64_MAX - p->start ? p->start + p->len : UINT64_MAX;
}

struct device_range device_range_overlap(const struct device_range *a, const struct device_range *b)
{
	struct device_range both = *a;
	const uint64_t start = a->start > b->start ? a->start : b->start;
	const uint64_t end = end_of(a) < end_of(b) ? end_of(a) : end_of(b);

	both.start = start;
	both.len = 0;
	if (a->block == b->block && a->dev == b->dev && a->ino == b->ino && end > start)
		both.len = end - start;
	return both;
}

/* Finds a device node: in /dev by name, or by number in the directory of udev. */
static bool find_node(dev_t dev, const char *name, char *path, size_t size)
{
	for (unsigned i = 0; i < 2; i++) {
		struct stat st;

		if (i)
			snprintf(path, size, "/dev/block/%u:%u", major(dev), minor(dev));
		else
			snprintf(path, size, "/dev/%s", name);
		if (!stat(path, &st) && S_ISBLK(st.st_mode) && st.st_rdev == dev)
			return true;
	}
	return false;
}

static bool read_partition(const char *folder, const char *name, struct partition *ret, uint64_t *len)
{
	char attribute[PATH_MAX];
	uint64_t n;

	if (snprintf(attribute, sizeof(attribute), "%s/%s/dev", folder, name) >= (int)sizeof(attribute) ||
	    !read_device(attribute, &ret->dev) || !read_number(ret->dev, "partition", &n) ||
	    !read_number(ret->dev, "start", &n))
		return false;
	ret->start = n * SECTOR;
	if (!read_number(ret->dev, "size", &n))
		return false;
	*len = n * SECTOR;
	return true;
}

bool partition_find(dev_t disk, uint64_t start, uint64_t len, struct partition *ret)
{
	char folder[ATTRIBUTE];
	struct partition part;
	struct dirent *d;
	bool found = false;
	uint64_t size;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(disk), minor(disk));
	dir = opendir(folder);
	while (dir && !found && (d = readdir(dir)))
		found = d->d_name[0] != '.' && read_partition(folder, d->d_name, &part, &size) && part.start <= start &&
			start - part.start <= size && len <= size - (start - part.start) &&
			find_node(part.dev, d->d_name, part.path, sizeof(part.path));
	if (dir)
		closedir(dir);
	if (found)
		*ret = part;
	return found;
}
