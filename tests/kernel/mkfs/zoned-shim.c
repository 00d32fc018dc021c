// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LD_PRELOAD library: reports block devices as zoned, because neither a zoned device nor a kernel that emulates one is
 * available. ZONE_SIZE is in bytes; ZONES has type, condition and written bytes of the first zones, as `2.2.8192`,
 * separated by commas. Further zones are full.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/blkzoned.h>

#define SECTOR 512u

static uint64_t zone_sectors(void)
{
	const char *size = getenv("ZONE_SIZE");

	return size ? strtoull(size, NULL, 10) / SECTOR : 0;
}

static struct blk_zone zone_number(uint64_t number)
{
	struct blk_zone z = {
		.start = number * zone_sectors(),
		.len = zone_sectors(),
		.capacity = zone_sectors(),
		.type = BLK_ZONE_TYPE_SEQWRITE_REQ,
		.cond = BLK_ZONE_COND_FULL,
	};
	const char *at = getenv("ZONES");
	unsigned type, cond;
	uint64_t written;

	for (uint64_t i = 0; at && i < number; i++) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	z.wp = z.start + z.len;
	if (at && sscanf(at, "%u.%u.%" SCNu64, &type, &cond, &written) == 3) {
		z.type = (uint8_t)type;
		z.cond = (uint8_t)cond;
		z.wp = z.start + written / SECTOR;
	}
	return z;
}

static int report(int fd, struct blk_zone_report *r)
{
	const uint64_t first = r->sector / zone_sectors();
	const off_t size = lseek(fd, 0, SEEK_END);
	unsigned n = 0;

	while (n < r->nr_zones && (off_t)((first + n + 1) * zone_sectors() * SECTOR) <= size) {
		r->zones[n] = zone_number(first + n);
		n++;
	}
	r->nr_zones = n;
	r->flags = BLK_ZONE_REP_CAPACITY;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct stat st;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (zone_sectors() && !fstat(fd, &st) && S_ISBLK(st.st_mode)) {
		if (request == BLKGETZONESZ) {
			*(uint32_t *)arg = (uint32_t)zone_sectors();
			return 0;
		}
		if (request == BLKREPORTZONE)
			return report(fd, arg);
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
