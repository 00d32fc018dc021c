// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/zone.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/ioctl.h>

#include "config.h"
#include "lib/base/err.h"

#ifdef HAVE_BLKZONED
#include <linux/blkzoned.h>

#define SECTOR 512u /* the unit of reports, independent of the device's sectors */

static enum btrkit_zone_state state_of(const struct blk_zone *z)
{
	if (z->type == BLK_ZONE_TYPE_CONVENTIONAL)
		return BTRKIT_ZONE_CONVENTIONAL;
	if (z->cond == BLK_ZONE_COND_EMPTY)
		return BTRKIT_ZONE_EMPTY;
	return z->cond == BLK_ZONE_COND_FULL ? BTRKIT_ZONE_FULL : BTRKIT_ZONE_PARTLY;
}

int io_zone_of_block(int fd, uint64_t start, uint64_t offset, struct btrkit_zone *ret)
{
	union {
		struct blk_zone_report head;
		uint8_t room[sizeof(struct blk_zone_report) + sizeof(struct blk_zone)];
	} report = { .head = { .sector = (start + offset) / SECTOR, .nr_zones = 1 } };
	const struct blk_zone *z = report.head.zones;
	uint32_t sectors = 0;

	/* Kernels without support for zones return one of these errors. */
	if (ioctl(fd, BLKGETZONESZ, &sectors))
		return errno == ENOTTY || errno == EINVAL ? 1 : -errno;
	if (!sectors)
		return 1;
	if (ioctl(fd, BLKREPORTZONE, &report))
		return -errno;
	if (report.head.nr_zones != 1 || z->start < start / SECTOR)
		return -EIO;
	*ret = (struct btrkit_zone){
		.start = z->start * SECTOR - start,
		.length = z->len * SECTOR,
		.capacity = (report.head.flags & BLK_ZONE_REP_CAPACITY ? z->capacity : z->len) * SECTOR,
		.write_pointer = z->wp * SECTOR - start,
		.state = state_of(z),
	};
	return 0;
}
#else
int io_zone_of_block(int fd, uint64_t start, uint64_t offset, struct btrkit_zone *ret)
{
	(void)fd;
	(void)start;
	(void)offset;
	(void)ret;
	return 1;
}
#endif

int io_zone_below(struct btrkit_io *below, uint64_t offset, struct btrkit_zone *ret)
{
	return below->ops->zone ? below->ops->zone(below, offset, ret) : 1;
}

static bool is_possible(const struct btrkit_zone *z, uint64_t offset)
{
	if (offset < z->start || offset - z->start >= z->length || z->capacity > z->length ||
	    z->start + z->length < z->start)
		return false;
	return z->state != BTRKIT_ZONE_PARTLY ||
	       (z->write_pointer >= z->start && z->write_pointer - z->start <= z->capacity);
}

int io_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret, struct btrkit_error *err)
{
	struct btrkit_zone z = { 0 };
	int r = io_zone_below(io, offset, &z);

	if (r < 0)
		return err_system(err, r, "cannot get the zone at %" PRIu64, offset);
	if (!r && !is_possible(&z, offset))
		return err_corrupt(err, NULL,
				   "invalid zone at %" PRIu64 ": %" PRIu64 " bytes, capacity %" PRIu64
				   ", write pointer %" PRIu64,
				   z.start, z.length, z.capacity, z.write_pointer);
	if (!r)
		*ret = z;
	return r;
}
